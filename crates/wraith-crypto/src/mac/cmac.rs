//! CMAC over AES (NIST SP 800-38B, RFC 4493).

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::{Algorithm, Mac};
use crate::kernels::aes::{Aes, BLOCK};

/// A message being authenticated. Wiped when dropped.
pub struct CmacAes {
    algorithm: Algorithm,
    key: Aes,
    state: [u8; BLOCK],
    /// The last bytes, a whole block at most, because the last block is masked with a key of its own.
    kept: [u8; BLOCK],
    filled: usize,
}

impl CmacAes {
    /// A message under this key. `None` if it has not 16, 24 or 32 bytes.
    #[must_use]
    pub fn new(key: &[u8]) -> Option<Self> {
        let algorithm = match key.len() {
            16 => Algorithm::CmacAes128,
            24 => Algorithm::CmacAes192,
            _ => Algorithm::CmacAes256,
        };
        let key = Aes::new(key)?;
        Some(Self { algorithm, key, state: [0; BLOCK], kept: [0; BLOCK], filled: 0 })
    }

    /// The tag of everything taken in.
    #[must_use]
    pub fn finish(mut self) -> [u8; BLOCK] {
        let mut subkey = [0; BLOCK];
        self.key.encrypt_block(&mut subkey);
        subkey = double(subkey);
        if self.filled < BLOCK {
            self.kept[self.filled..].fill(0);
            self.kept[self.filled] = 0x80;
            subkey = double(subkey);
        }
        for (byte, key) in self.kept.iter_mut().zip(subkey) {
            *byte ^= key;
        }
        subkey.zeroize();
        self.key.cbc_mac(&mut self.state, &self.kept);
        self.state
    }
}

/// The product of a block and x (SP 800-38B §5.3).
const fn double(block: [u8; BLOCK]) -> [u8; BLOCK] {
    let block = u128::from_be_bytes(block);
    (block << 1 ^ (0_u128.wrapping_sub(block >> 127) & 0x87)).to_be_bytes()
}

impl Mac for CmacAes {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn update(&mut self, mut data: &[u8]) {
        if self.filled > 0 {
            let (now, later) = data.split_at(data.len().min(BLOCK - self.filled));
            self.kept[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            data = later;
        }
        if data.is_empty() {
            return;
        }
        // There is more, so what is kept is not the last block.
        if self.filled == BLOCK {
            self.key.cbc_mac(&mut self.state, &self.kept);
        }
        let (blocks, end) = data.split_at((data.len() - 1) / BLOCK * BLOCK);
        self.key.cbc_mac(&mut self.state, blocks);
        self.kept[..end.len()].copy_from_slice(end);
        self.filled = end.len();
    }

    fn finish_into(self: Box<Self>, out: &mut [u8]) {
        out[..BLOCK].copy_from_slice(&self.finish());
    }
}

impl Drop for CmacAes {
    fn drop(&mut self) {
        self.state.zeroize();
        self.kept.zeroize();
    }
}

impl ZeroizeOnDrop for CmacAes {}

impl std::fmt::Debug for CmacAes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CmacAes").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}
