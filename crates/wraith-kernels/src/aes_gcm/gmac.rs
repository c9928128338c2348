//! GHASH of associated data in pieces, for GMAC.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use zeroize::{ZeroizeOnDrop, optimization_barrier};

use super::ghash::{BLOCK, GROUP_BYTES};
use super::key::{GcmKey, tag};
use super::text::Start;
use super::{Width, vaes256, vaes512};

/// The hash state. Wiped when dropped.
pub struct Ghash {
    hash: __m128i,
    /// Buffered bytes, less than a group.
    kept: [u8; GROUP_BYTES],
    filled: usize,
    /// Total number of bytes.
    len: u64,
    start: u128,
}

impl Drop for Ghash {
    fn drop(&mut self) {
        // SAFETY: every x86-64 processor has the instruction.
        self.hash = unsafe { _mm_setzero_si128() };
        self.kept = [0; GROUP_BYTES];
        self.start = 0;
        optimization_barrier(self);
    }
}

impl ZeroizeOnDrop for Ghash {}

impl Ghash {
    /// Starts a message.
    #[must_use]
    pub fn new(nonce: &[u8; 12]) -> Self {
        let start = Start::of_nonce(nonce).0;
        // SAFETY: every x86-64 processor has the instruction.
        let hash = unsafe { _mm_setzero_si128() };
        Self { hash, kept: [0; GROUP_BYTES], filled: 0, len: 0, start }
    }

    /// Authenticates the next piece.
    pub fn update<const KEYS: usize>(&mut self, key: &GcmKey<KEYS>, mut data: &[u8]) {
        self.len = self.len.wrapping_add(data.len() as u64);
        if self.filled > 0 {
            let (now, later) = data.split_at(data.len().min(GROUP_BYTES - self.filled));
            self.kept[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            data = later;
            if self.filled < GROUP_BYTES {
                return;
            }
            self.hash = groups(key, self.hash, &[self.kept]);
        }
        let (whole, rest) = data.as_chunks();
        self.hash = groups(key, self.hash, whole);
        self.kept[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
    }

    /// Returns the tag.
    pub fn finish<const KEYS: usize>(&self, key: &GcmKey<KEYS>) -> [u8; BLOCK] {
        // SAFETY: the key exists, so the processor has the instructions.
        unsafe {
            let hash = key.hash.continued(self.hash, &self.kept[..self.filled]);
            let lengths = u128::from(self.len.wrapping_mul(8)) << 64;
            let hash = key.hash.continued(hash, &lengths.to_be_bytes());
            tag(hash, key.tag_mask(Start(self.start)))
        }
    }
}

fn groups<const KEYS: usize>(
    key: &GcmKey<KEYS>,
    hash: __m128i,
    data: &[[u8; GROUP_BYTES]],
) -> __m128i {
    // SAFETY: the key exists, so the processor has the instructions of its width.
    unsafe {
        match key.width() {
            Width::Bits256 => vaes256::hash(&key.hash, hash, data),
            Width::Bits512 => vaes512::hash(&key.hash, hash, data),
        }
    }
}
