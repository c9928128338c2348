//! The key expansion of FIPS 197 §5.2.
//!
//! The substitution of a word is the last round of a block that has it in every column: with equal columns ShiftRows changes
//! nothing, and the round constant is that round's key. This takes half the time of the instruction made for it.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::KEYS_MAX;

/// Shuffles that put the word at `byte` into every column, as it is or rotated by a byte.
#[target_feature(enable = "aes,ssse3")]
#[inline]
fn column(byte: i32, rotated: bool) -> __m128i {
    let [a, b, c, d] = if rotated { [1, 2, 3, 0] } else { [0, 1, 2, 3] };
    _mm_set1_epi32((byte + a) | (byte + b) << 8 | (byte + c) << 16 | (byte + d) << 24)
}

/// The words of `from` that `shuffle` picks, substituted, xored with `constant`.
#[target_feature(enable = "aes,ssse3")]
#[inline]
fn substituted(from: __m128i, shuffle: __m128i, constant: i32) -> __m128i {
    _mm_aesenclast_si128(_mm_shuffle_epi8(from, shuffle), _mm_set1_epi32(constant))
}

/// Each word xored with all the words before it.
#[target_feature(enable = "aes,ssse3")]
#[inline]
fn running_xor(words: __m128i) -> __m128i {
    let words = _mm_xor_si128(words, _mm_slli_si128::<4>(words));
    _mm_xor_si128(words, _mm_slli_si128::<8>(words))
}

/// The round keys of a key of 16, 24 or 32 bytes; zeros behind them.
#[target_feature(enable = "aes,ssse3")]
#[inline]
pub(crate) fn expand(key: &[u8]) -> [__m128i; KEYS_MAX] {
    match key.len() {
        16 => expand_128(key),
        24 => expand_192(key),
        _ => expand_256(key),
    }
}

#[target_feature(enable = "aes,ssse3")]
#[inline]
fn load(key: &[u8], at: usize) -> __m128i {
    let block: &[u8; 16] = key[at..].first_chunk().expect("the key is long enough");
    super::load(block)
}

#[target_feature(enable = "aes,ssse3")]
#[inline]
fn expand_128(key: &[u8]) -> [__m128i; KEYS_MAX] {
    let mut keys = [_mm_setzero_si128(); KEYS_MAX];
    let last = column(12, true);
    keys[0] = load(key, 0);
    for (i, constant) in [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36].into_iter().enumerate() {
        let word = substituted(keys[i], last, constant);
        keys[i + 1] = _mm_xor_si128(running_xor(keys[i]), word);
    }
    keys
}

/// Six words at a time: four in one register, two in another, written behind each other.
#[target_feature(enable = "aes,ssse3")]
#[inline]
fn expand_192(key: &[u8]) -> [__m128i; KEYS_MAX] {
    let mut keys = [_mm_setzero_si128(); KEYS_MAX];
    let last = column(4, true);
    let mut four = load(key, 0);
    let mut two = _mm_srli_si128::<8>(load(key, 8));
    for i in 0..9 {
        if i > 0 {
            four = _mm_xor_si128(running_xor(four), substituted(two, last, 1 << (i - 1)));
            let before = _mm_shuffle_epi32::<0xff>(four);
            two = _mm_xor_si128(_mm_xor_si128(two, _mm_slli_si128::<4>(two)), before);
        }
        // SAFETY: nine times 24 bytes have room in 15 times 16.
        unsafe {
            let to = keys.as_mut_ptr().cast::<u8>().add(24 * i);
            _mm_storeu_si128(to.cast(), four);
            _mm_storel_epi64(to.add(16).cast(), two);
        }
    }
    keys[13] = _mm_setzero_si128();
    keys
}

#[target_feature(enable = "aes,ssse3")]
#[inline]
fn expand_256(key: &[u8]) -> [__m128i; KEYS_MAX] {
    let mut keys = [_mm_setzero_si128(); KEYS_MAX];
    let (rotated, plain) = (column(12, true), column(12, false));
    keys[0] = load(key, 0);
    keys[1] = load(key, 16);
    for i in 0..7 {
        let at = 2 * i + 2;
        let word = substituted(keys[at - 1], rotated, 1 << i);
        keys[at] = _mm_xor_si128(running_xor(keys[at - 2]), word);
        if at + 1 < KEYS_MAX {
            let word = substituted(keys[at], plain, 0);
            keys[at + 1] = _mm_xor_si128(running_xor(keys[at - 1]), word);
        }
    }
    keys
}

/// The keys of decryption.
#[target_feature(enable = "aes,ssse3")]
#[inline]
pub(super) fn inverse(keys: &[__m128i; KEYS_MAX], rounds: usize) -> [__m128i; KEYS_MAX] {
    let mut inverse = [_mm_setzero_si128(); KEYS_MAX];
    for (to, from) in inverse.iter_mut().zip(keys[..=rounds].iter().rev()) {
        *to = _mm_aesimc_si128(*from);
    }
    inverse[0] = keys[rounds];
    inverse[rounds] = keys[0];
    inverse
}
