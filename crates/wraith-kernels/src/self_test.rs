//! Inputs of the self-tests: random bytes, different in each process.
//!
//! A self-test compares a kernel with its portable twin (P-256 has none) on random inputs whose
//! lengths lie around the borders of the kernel's blocks, and some with known answers. All
//! self-tests together take less than two milliseconds. They find a miscompiled kernel and a
//! processor that computes wrongly; the tests of the crate are far more thorough.

use std::hash::{BuildHasher, RandomState};

/// A generator of test inputs (SplitMix64). Not for secrets.
pub(crate) struct Inputs(u64);

impl Inputs {
    pub(crate) fn new() -> Self {
        // `RandomState` has keys from the operating system.
        Self(RandomState::new().hash_one(0))
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn words<const N: usize>(&mut self) -> [u64; N] {
        std::array::from_fn(|_| self.word())
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.word().to_le_bytes()[..chunk.len()]);
        }
        bytes
    }
}

/// Compares a compression function with its portable twin, for one to four blocks of `BLOCK` bytes.
#[allow(dead_code, reason = "two kernels need it")]
pub(crate) fn compresses_as<Word: From<u8> + Copy + PartialEq, const BLOCK: usize>(
    portable: impl Fn(&mut [Word; 8], &[u8]),
    kernel: impl Fn(&mut [Word; 8], &[u8]),
) -> bool {
    let data: [u8; 512] = Inputs::new().bytes();
    (1_u8..=4).all(|blocks| {
        let data = &data[..BLOCK * usize::from(blocks)];
        let (mut state, mut expected) = ([blocks.into(); 8], [blocks.into(); 8]);
        portable(&mut expected, data);
        kernel(&mut state, data);
        state == expected
    })
}
