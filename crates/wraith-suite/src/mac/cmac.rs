//! CMAC (NIST SP 800-38B, RFC 4493) with AES and SM4, and CBC-MAC (GB/T 15852.1) with SM4.

use zeroize::Zeroize;

use super::{Algorithm, block_mac};
use wraith_kernels::aes::Aes;
use wraith_kernels::modes::{BLOCK, Block, BlockCipher, add};
use wraith_kernels::sm4::Sm4;

/// CBC over a message. The last 1 to 16 bytes are held back until they are known to be the last;
/// none if the message is empty so far. Wiped when dropped.
#[derive(Clone)]
struct CbcMacState<C: BlockCipher> {
    algorithm: Algorithm,
    cipher: C,
    state: Block,
    kept: Block,
    kept_len: usize,
}

impl<C: BlockCipher> CbcMacState<C> {
    const fn new(algorithm: Algorithm, cipher: C) -> Self {
        Self { algorithm, cipher, state: [0; BLOCK], kept: [0; BLOCK], kept_len: 0 }
    }

    fn update(&mut self, mut data: &[u8]) {
        if data.len() > BLOCK - self.kept_len {
            let (fill, rest) = data.split_at(BLOCK - self.kept_len);
            if self.kept_len > 0 {
                self.kept[self.kept_len..].copy_from_slice(fill);
                self.cipher.cbc_mac(&mut self.state, &[self.kept]);
                data = rest;
            }
            // At least one byte is held back.
            let (blocks, last) = data.split_at((data.len() - 1) / BLOCK * BLOCK);
            self.cipher.cbc_mac(&mut self.state, blocks.as_chunks().0);
            (self.kept_len, data) = (0, last);
        }
        self.kept[self.kept_len..self.kept_len + data.len()].copy_from_slice(data);
        self.kept_len += data.len();
    }

    /// Returns the CBC-MAC tag, with zero padding after the message.
    fn cbc_mac(&mut self) -> Block {
        self.kept[self.kept_len..].fill(0);
        self.cipher.cbc_mac(&mut self.state, &[self.kept]);
        self.state
    }

    /// Returns the CMAC tag. The subkey of the last block depends on whether that block is whole.
    fn cmac(&mut self) -> Block {
        let mut subkey = [0; BLOCK];
        self.cipher.encrypt_block(&mut subkey);
        subkey = double(subkey);
        if self.kept_len < BLOCK {
            self.kept[self.kept_len..].fill(0);
            self.kept[self.kept_len] = 0x80;
            subkey = double(subkey);
        }
        add(&mut self.kept, &subkey);
        subkey.zeroize();
        self.cipher.cbc_mac(&mut self.state, &[self.kept]);
        self.state
    }
}

/// Multiplies a block by x (SP 800-38B §5.3).
const fn double(block: Block) -> Block {
    let block = u128::from_be_bytes(block);
    (block << 1 ^ (0_u128.wrapping_sub(block >> 127) & 0x87)).to_be_bytes()
}

impl<C: BlockCipher> Drop for CbcMacState<C> {
    fn drop(&mut self) {
        self.state.zeroize();
        self.kept.zeroize();
    }
}

/// CMAC with AES. Wiped when dropped.
#[derive(Clone)]
pub struct CmacAes(CbcMacState<Aes>);

impl CmacAes {
    /// Starts a message. Returns `None` unless the key has 16, 24 or 32 bytes.
    #[must_use]
    pub fn new(key: &[u8]) -> Option<Self> {
        let algorithm = match key.len() {
            16 => Algorithm::CmacAes128,
            24 => Algorithm::CmacAes192,
            _ => Algorithm::CmacAes256,
        };
        Some(Self(CbcMacState::new(algorithm, Aes::new(key)?)))
    }
}

/// Defines a MAC with SM4.
macro_rules! sm4_mac {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone)]
        pub struct $name(CbcMacState<Sm4>);

        impl $name {
            /// Starts a message.
            #[must_use]
            pub fn new(key: &[u8; 16]) -> Self {
                Self(CbcMacState::new(Algorithm::$name, Sm4::new(key)))
            }
        }
    };
}

sm4_mac!(/** CMAC with SM4. Wiped when dropped. */ CmacSm4);
sm4_mac! {
    /// CBC-MAC with SM4, with zero padding to a whole block (padding method 1; an empty message is
    /// one block of zeros). Wiped when dropped.
    ///
    /// It authenticates only messages of one fixed length. An attacker with tags of shorter
    /// messages can forge tags of longer ones, and a message with zeros appended has the same tag.
    /// [`CmacSm4`] has neither flaw.
    CbcMacSm4
}

block_mac!(CmacAes, cmac);
block_mac!(CmacSm4, cmac);
block_mac!(CbcMacSm4, cbc_mac);
