//! Message authentication codes of SM4: CMAC (NIST SP 800-38B) and CBC-MAC (GB/T 15852.1).

use std::fmt;

use zeroize::ZeroizeOnDrop;

use super::{Algorithm, Mac};
use crate::kernels::sm4::{Block, Sm4, add};

/// CBC over a message, of which the last bytes are kept back until they are known to be the last: 1 to 16 of them, but for an empty message.
#[derive(Clone, ZeroizeOnDrop)]
struct Running {
    cipher: Sm4,
    state: Block,
    kept: Block,
    kept_len: usize,
}

impl Running {
    fn new(key: &[u8; 16]) -> Self {
        Self { cipher: Sm4::new(key), state: [0; 16], kept: [0; 16], kept_len: 0 }
    }

    fn update(&mut self, mut data: &[u8]) {
        if data.len() > 16 - self.kept_len {
            let (fill, rest) = data.split_at(16 - self.kept_len);
            self.kept[self.kept_len..].copy_from_slice(fill);
            self.cipher.absorb(&mut self.state, &[self.kept]);
            // At least one byte stays behind.
            let (blocks, last) = rest.split_at((rest.len() - 1) / 16 * 16);
            self.cipher.absorb(&mut self.state, blocks.as_chunks().0);
            (self.kept_len, data) = (0, last);
        }
        self.kept[self.kept_len..self.kept_len + data.len()].copy_from_slice(data);
        self.kept_len += data.len();
    }
}

/// CMAC with SM4. Wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct CmacSm4(Running);

impl CmacSm4 {
    /// Begins a message.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        Self(Running::new(key))
    }

    /// Takes in the next piece.
    pub fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    /// The tag.
    #[must_use]
    pub fn finish(mut self) -> [u8; 16] {
        let running = &mut self.0;
        let mut subkey = double(u128::from_be_bytes(running.cipher.encrypted([0; 16])));
        running.kept[running.kept_len..].fill(0);
        if running.kept_len < 16 {
            running.kept[running.kept_len] = 0x80;
            subkey = double(subkey);
        }
        add(&mut running.kept, &subkey.to_be_bytes());
        running.cipher.absorb(&mut running.state, &[running.kept]);
        running.state
    }
}

/// Times x in GF(2^128).
fn double(x: u128) -> u128 {
    x << 1 ^ (0_u128.wrapping_sub(x >> 127) & 0x87)
}

/// CBC-MAC with SM4, with zeros behind the message up to a whole block (padding method 1; an empty message is a block of zeros).
///
/// It authenticates messages of one length only: who sees tags of shorter ones can make those of longer ones, and a message and the same with
/// zeros behind it have one tag. [`CmacSm4`] has neither flaw. Wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct CbcMacSm4(Running);

impl CbcMacSm4 {
    /// Begins a message.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        Self(Running::new(key))
    }

    /// Takes in the next piece.
    pub fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    /// The tag.
    #[must_use]
    pub fn finish(mut self) -> [u8; 16] {
        let running = &mut self.0;
        running.kept[running.kept_len..].fill(0);
        running.cipher.absorb(&mut running.state, &[running.kept]);
        running.state
    }
}

macro_rules! mac {
    ($name:ident) => {
        impl Mac for $name {
            fn algorithm(&self) -> Algorithm {
                Algorithm::$name
            }

            fn update(&mut self, data: &[u8]) {
                self.update(data);
            }

            fn finish_into(self: Box<Self>, out: &mut [u8]) {
                out[..16].copy_from_slice(&self.finish());
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

mac!(CmacSm4);
mac!(CbcMacSm4);
