//! AES-256 (FIPS 197) encryption of single blocks with the AES instructions of x86-64.
//!
//! Invariant: a [`RoundKeys`] exists only on a processor that has these instructions.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_aeskeygenassist_si128, _mm_cvtsi128_si64,
    _mm_set_epi64x, _mm_setzero_si128, _mm_shuffle_epi32, _mm_slli_si128, _mm_unpackhi_epi64,
    _mm_xor_si128,
};

use zeroize::{Zeroize, ZeroizeOnDrop};

/// AES-256 has 14 rounds, and one more key to begin with.
pub(super) const ROUND_KEYS: usize = 15;

/// The expanded key. Wiped when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct RoundKeys([__m128i; ROUND_KEYS]);

impl RoundKeys {
    /// Expands a key. `None` if this processor has no AES instructions.
    pub(crate) fn new(key: &[u8; 32]) -> Option<Self> {
        // SAFETY: the only requirement is that the processor has the instructions, which is checked first.
        std::arch::is_x86_feature_detected!("aes").then(|| Self(unsafe { expand(key) }))
    }

    /// The keys, in the order of the rounds.
    pub(super) fn schedule(&self) -> &[__m128i; ROUND_KEYS] {
        &self.0
    }

    /// One block.
    #[inline]
    pub(crate) fn encrypt(&self, block: &[u8; 16]) -> [u8; 16] {
        // SAFETY: `self` exists, so the processor has the instructions.
        unsafe { encrypt(&self.0, block) }
    }

    /// One block under two keys. The rounds of the two do not wait for each other.
    #[inline]
    pub(crate) fn encrypt_pair(a: &Self, b: &Self, block: &[u8; 16]) -> ([u8; 16], [u8; 16]) {
        // SAFETY: `a` exists, so the processor has the instructions.
        unsafe { encrypt_pair(&a.0, &b.0, block) }
    }
}

#[target_feature(enable = "aes")]
fn encrypt(keys: &[__m128i; ROUND_KEYS], block: &[u8; 16]) -> [u8; 16] {
    let mut state = _mm_xor_si128(load(block), keys[0]);
    for key in &keys[1..ROUND_KEYS - 1] {
        state = _mm_aesenc_si128(state, *key);
    }
    store(_mm_aesenclast_si128(state, keys[ROUND_KEYS - 1]))
}

#[target_feature(enable = "aes")]
fn encrypt_pair(
    a: &[__m128i; ROUND_KEYS],
    b: &[__m128i; ROUND_KEYS],
    block: &[u8; 16],
) -> ([u8; 16], [u8; 16]) {
    let block = load(block);
    let (mut state_a, mut state_b) = (_mm_xor_si128(block, a[0]), _mm_xor_si128(block, b[0]));
    for i in 1..ROUND_KEYS - 1 {
        state_a = _mm_aesenc_si128(state_a, a[i]);
        state_b = _mm_aesenc_si128(state_b, b[i]);
    }
    let last = ROUND_KEYS - 1;
    (store(_mm_aesenclast_si128(state_a, a[last])), store(_mm_aesenclast_si128(state_b, b[last])))
}

/// The key expansion of FIPS 197 §5.2 for 256-bit keys: two round keys from each round constant.
#[target_feature(enable = "aes")]
fn expand(key: &[u8; 32]) -> [__m128i; ROUND_KEYS] {
    let (low, high) = key.split_at(16);
    let mut keys = [_mm_setzero_si128(); ROUND_KEYS];
    keys[0] = load(low.try_into().expect("half of 32 bytes"));
    keys[1] = load(high.try_into().expect("half of 32 bytes"));
    expand_step::<0x01>(&mut keys, 2);
    expand_step::<0x02>(&mut keys, 4);
    expand_step::<0x04>(&mut keys, 6);
    expand_step::<0x08>(&mut keys, 8);
    expand_step::<0x10>(&mut keys, 10);
    expand_step::<0x20>(&mut keys, 12);
    expand_step::<0x40>(&mut keys, 14);
    keys
}

/// Makes round key `i`, and `i + 1` if there is one, from the two before.
#[target_feature(enable = "aes")]
fn expand_step<const ROUND_CONSTANT: i32>(keys: &mut [__m128i; ROUND_KEYS], i: usize) {
    // The last word of the key before: rotated, substituted, with the round constant.
    let word = _mm_aeskeygenassist_si128::<ROUND_CONSTANT>(keys[i - 1]);
    keys[i] = _mm_xor_si128(running_xor(keys[i - 2]), _mm_shuffle_epi32::<0xff>(word));
    if i + 1 < ROUND_KEYS {
        // The last word of the key just made: only substituted.
        let word = _mm_aeskeygenassist_si128::<0>(keys[i]);
        keys[i + 1] = _mm_xor_si128(running_xor(keys[i - 1]), _mm_shuffle_epi32::<0xaa>(word));
    }
}

/// Each word xored with all the words before it.
#[target_feature(enable = "aes")]
fn running_xor(words: __m128i) -> __m128i {
    let words = _mm_xor_si128(words, _mm_slli_si128::<4>(words));
    _mm_xor_si128(words, _mm_slli_si128::<8>(words))
}

#[target_feature(enable = "aes")]
#[inline]
fn load(block: &[u8; 16]) -> __m128i {
    let block = u128::from_le_bytes(*block);
    _mm_set_epi64x((block >> 64) as i64, block as i64)
}

#[target_feature(enable = "aes")]
#[inline]
fn store(block: __m128i) -> [u8; 16] {
    let low = _mm_cvtsi128_si64(block) as u64;
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(block, block)) as u64;
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}
