//! The key expansion of FIPS 197 §5.2.
//!
//! SubWord is computed as the last round of a block that holds the word in every column. With equal
//! columns ShiftRows changes nothing, and the round constant serves as the key of that round. This
//! takes half the time of the dedicated instruction.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

/// Number of round keys of the largest key: 14 rounds and the initial one.
pub(crate) const KEYS_MAX: usize = 15;

/// Returns a shuffle that copies the word at `byte` into every column, as it is or rotated by one
/// byte.
#[target_feature(enable = "aes,ssse3")]
#[inline]
fn column(byte: i32, rotated: bool) -> __m128i {
    let [a, b, c, d] = if rotated { [1, 2, 3, 0] } else { [0, 1, 2, 3] };
    _mm_set1_epi32((byte + a) | (byte + b) << 8 | (byte + c) << 16 | (byte + d) << 24)
}

/// Returns SubWord of the words of `from` that `shuffle` selects, xored with `constant`.
#[target_feature(enable = "aes,ssse3")]
#[inline]
fn substituted(from: __m128i, shuffle: __m128i, constant: i32) -> __m128i {
    _mm_aesenclast_si128(_mm_shuffle_epi8(from, shuffle), _mm_set1_epi32(constant))
}

/// Xors each word with all the words before it.
#[target_feature(enable = "aes,ssse3")]
#[inline]
fn running_xor(words: __m128i) -> __m128i {
    let words = _mm_xor_si128(words, _mm_slli_si128::<4>(words));
    _mm_xor_si128(words, _mm_slli_si128::<8>(words))
}

/// Returns the round keys of a key of 16, 24 or 32 bytes, followed by zeros.
#[target_feature(enable = "aes,ssse3")]
#[inline]
pub(crate) fn expand(key: &[u8]) -> [__m128i; KEYS_MAX] {
    let mut keys = [_mm_setzero_si128(); KEYS_MAX];
    expand_with(key, |round, key| keys[round] = key);
    keys
}

/// Passes each round key of a key of 16, 24 or 32 bytes to `take`, with its round number, as soon
/// as it is computed. Work in `take` does not delay the next round key.
#[target_feature(enable = "aes,ssse3")]
#[inline]
pub(crate) fn expand_with(key: &[u8], take: impl FnMut(usize, __m128i)) {
    match key.len() {
        16 => expand_128(key, take),
        24 => expand_192(key, take),
        _ => expand_256(key, take),
    }
}

#[target_feature(enable = "aes,ssse3")]
#[inline]
fn load(key: &[u8], at: usize) -> __m128i {
    let block: &[u8; 16] = key[at..].first_chunk().expect("the key is long enough");
    // SAFETY: the reference covers 16 readable bytes.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

#[target_feature(enable = "aes,ssse3")]
#[inline]
fn expand_128(key: &[u8], mut take: impl FnMut(usize, __m128i)) {
    let last = column(12, true);
    let mut four = load(key, 0);
    take(0, four);
    for (i, constant) in [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36].into_iter().enumerate() {
        four = _mm_xor_si128(running_xor(four), substituted(four, last, constant));
        take(i + 1, four);
    }
}

/// Computes six words at a time: four in one register and two in another. Two such steps make three
/// round keys.
#[target_feature(enable = "aes,ssse3")]
#[inline]
fn expand_192(key: &[u8], mut take: impl FnMut(usize, __m128i)) {
    let last = column(4, true);
    let mut four = load(key, 0);
    let mut two = _mm_srli_si128::<8>(load(key, 8));
    // The previous two words, for round keys that begin with them.
    let mut before = two;
    for i in 0..9 {
        if i > 0 {
            four = _mm_xor_si128(running_xor(four), substituted(two, last, 1 << (i - 1)));
            let last_of_four = _mm_shuffle_epi32::<0xff>(four);
            two = _mm_xor_si128(_mm_xor_si128(two, _mm_slli_si128::<4>(two)), last_of_four);
        }
        let round = 3 * (i / 2);
        if i % 2 == 0 {
            take(round, four);
            before = two;
        } else {
            take(round + 1, _mm_unpacklo_epi64(before, four));
            take(round + 2, _mm_unpacklo_epi64(_mm_srli_si128::<8>(four), two));
        }
    }
}

#[target_feature(enable = "aes,ssse3")]
#[inline]
fn expand_256(key: &[u8], mut take: impl FnMut(usize, __m128i)) {
    let (rotated, plain) = (column(12, true), column(12, false));
    let (mut even, mut odd) = (load(key, 0), load(key, 16));
    take(0, even);
    take(1, odd);
    for i in 0..7 {
        let round = 2 * i + 2;
        even = _mm_xor_si128(running_xor(even), substituted(odd, rotated, 1 << i));
        take(round, even);
        if round + 1 < KEYS_MAX {
            odd = _mm_xor_si128(running_xor(odd), substituted(even, plain, 0));
            take(round + 1, odd);
        }
    }
}

/// Returns the round keys of decryption (the equivalent inverse cipher, FIPS 197 §5.3.5).
#[target_feature(enable = "aes,ssse3")]
#[inline]
pub(crate) fn inverse(keys: &[__m128i; KEYS_MAX], rounds: usize) -> [__m128i; KEYS_MAX] {
    let mut inverse = [_mm_setzero_si128(); KEYS_MAX];
    for (to, from) in inverse.iter_mut().zip(keys[..=rounds].iter().rev()) {
        *to = _mm_aesimc_si128(*from);
    }
    inverse[0] = keys[rounds];
    inverse[rounds] = keys[0];
    inverse
}
