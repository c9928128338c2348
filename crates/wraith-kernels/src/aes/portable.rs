//! The `aes` crate, which computes several blocks at a time in hardware or in constant-time
//! software.

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use zeroize::ZeroizeOnDrop;

use crate::modes::{Block, BlockCipher};

#[derive(Clone)]
pub(super) enum Keys {
    Bits128(Aes128),
    Bits192(Aes192),
    Bits256(Aes256),
}

// The crate wipes its keys.
impl ZeroizeOnDrop for Keys {}

/// Evaluates an expression with the key of whichever size.
macro_rules! each_size {
    ($keys:expr, $key:ident => $done:expr) => {
        match $keys {
            Keys::Bits128($key) => $done,
            Keys::Bits192($key) => $done,
            Keys::Bits256($key) => $done,
        }
    };
}

impl BlockCipher for Keys {
    fn new(key: &[u8]) -> Option<Self> {
        match key.len() {
            16 => Aes128::new_from_slice(key).ok().map(Self::Bits128),
            24 => Aes192::new_from_slice(key).ok().map(Self::Bits192),
            32 => Aes256::new_from_slice(key).ok().map(Self::Bits256),
            _ => None,
        }
    }

    fn ecb_encrypt(&self, text: &mut [Block]) {
        each_size!(self, key => key.encrypt_blocks(Array::cast_slice_from_core_mut(text)));
    }

    fn ecb_decrypt(&self, text: &mut [Block]) {
        each_size!(self, key => key.decrypt_blocks(Array::cast_slice_from_core_mut(text)));
    }
}
