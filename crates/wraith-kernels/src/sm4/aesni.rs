//! SM4 with the S-box of AES. Each of the two S-boxes is an inversion between affine maps, and
//! their fields are isomorphic. An affine map needs two shuffles of 16 bytes.
//!
//! The method is that of Saarinen's sm4ni (2018): SM4(x) = M(AES(P x + 0x3e)). The last round of
//! AES includes ShiftRows, which the shuffles after it undo. Eight blocks at a time take about 8
//! cycles per byte on Zen 4.
#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::{Block, P, RoundKeys, affine};

/// The values of an affine map for each low half of a byte, and for each high half.
type Halves = [[u8; 16]; 2];

const BEFORE: Halves = halves(P, 0x3e);
const AFTER: Halves = halves(0x480e_4c47_651d_bad3, 0x6c);

const fn halves(matrix: u64, constant: u8) -> Halves {
    let mut halves = [[0; 16]; 2];
    let mut i = 0;
    while i < 16 {
        halves[0][i as usize] = affine(matrix, i) ^ constant;
        halves[1][i as usize] = affine(matrix, i << 4);
        i += 1;
    }
    halves
}

/// The position of each byte before ShiftRows.
const UNSHIFT: [u8; 16] = [0, 13, 10, 7, 4, 1, 14, 11, 8, 5, 2, 15, 12, 9, 6, 3];
/// Reverses the bytes of each word.
const SWAP: [u8; 16] = [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12];

/// Encrypts `blocks` in place.
#[target_feature(enable = "aes,avx")]
pub(super) fn blocks(keys: &RoundKeys, blocks: &mut [Block]) {
    let (whole, rest) = blocks.as_chunks_mut();
    for eight in whole {
        beside::<2, 8>(keys, eight);
    }
    match rest.len() {
        0 => {}
        1..=4 => padded::<1, 4>(keys, rest),
        _ => padded::<2, 8>(keys, rest),
    }
}

#[target_feature(enable = "aes,avx")]
fn padded<const N: usize, const BLOCKS: usize>(keys: &RoundKeys, blocks: &mut [Block]) {
    let mut whole = [[0; 16]; BLOCKS];
    whole[..blocks.len()].copy_from_slice(blocks);
    beside::<N, BLOCKS>(keys, &mut whole);
    blocks.copy_from_slice(&whole[..blocks.len()]);
}

/// Encrypts `N` times four blocks side by side. `BLOCKS` must be `4 * N`.
#[target_feature(enable = "aes,avx")]
#[inline]
fn beside<const N: usize, const BLOCKS: usize>(keys: &RoundKeys, blocks: &mut [Block; BLOCKS]) {
    const { assert!(BLOCKS == 4 * N) };
    let swap = constant(&SWAP);
    let at = blocks.as_mut_ptr().cast::<__m128i>();
    let mut words = [[_mm_setzero_si128(); 4]; N];
    for (n, words) in words.iter_mut().enumerate() {
        for (i, vector) in words.iter_mut().enumerate() {
            // SAFETY: block 4n + i of 4N.
            *vector = _mm_shuffle_epi8(unsafe { _mm_loadu_si128(at.add(4 * n + i)) }, swap);
        }
        *words = transpose(*words);
    }
    for four in keys.plain.as_chunks::<4>().0 {
        for (i, key) in four.iter().enumerate() {
            for words in &mut words {
                let t = _mm_xor_si128(words[(i + 1) % 4], words[(i + 2) % 4]);
                let t = _mm_xor_si128(t, words[(i + 3) % 4]);
                let t = substitute(_mm_xor_si128(t, _mm_set1_epi32(*key as i32)));
                words[i] = _mm_xor_si128(words[i], linear(t));
            }
        }
    }
    for (n, words) in words.iter().enumerate() {
        let vectors = transpose([words[3], words[2], words[1], words[0]]);
        for (i, vector) in vectors.into_iter().enumerate() {
            // SAFETY: block 4n + i of 4N.
            unsafe { _mm_storeu_si128(at.add(4 * n + i), _mm_shuffle_epi8(vector, swap)) };
        }
    }
}

#[target_feature(enable = "avx")]
#[inline]
fn constant(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: the reference covers 16 readable bytes.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx")]
#[inline]
fn map(x: __m128i, halves: &Halves) -> __m128i {
    let low = _mm_set1_epi8(15);
    let high = _mm_and_si128(_mm_srli_epi16::<4>(x), low);
    let low = _mm_and_si128(x, low);
    _mm_xor_si128(
        _mm_shuffle_epi8(constant(&halves[0]), low),
        _mm_shuffle_epi8(constant(&halves[1]), high),
    )
}

#[target_feature(enable = "aes,avx")]
#[inline]
fn substitute(x: __m128i) -> __m128i {
    let x = _mm_aesenclast_si128(map(x, &BEFORE), _mm_setzero_si128());
    map(_mm_shuffle_epi8(x, constant(&UNSHIFT)), &AFTER)
}

/// Returns x ^ x<<<24 ^ (x ^ x<<<8 ^ x<<<16)<<<2 of each word.
#[target_feature(enable = "avx")]
#[inline]
fn linear(x: __m128i) -> __m128i {
    const LEFT_8: [u8; 16] = [3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14];
    const LEFT_16: [u8; 16] = [2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13];
    const LEFT_24: [u8; 16] = [1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12];
    let turned = |by| _mm_shuffle_epi8(x, constant(by));
    let inner = _mm_xor_si128(x, _mm_xor_si128(turned(&LEFT_8), turned(&LEFT_16)));
    let twice = _mm_or_si128(_mm_slli_epi32::<2>(inner), _mm_srli_epi32::<30>(inner));
    _mm_xor_si128(x, _mm_xor_si128(turned(&LEFT_24), twice))
}

/// Transposes blocks into words side by side, and back.
#[target_feature(enable = "avx")]
#[inline]
fn transpose([a, b, c, d]: [__m128i; 4]) -> [__m128i; 4] {
    let (ab_low, ab_high) = (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
    let (cd_low, cd_high) = (_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
    [
        _mm_unpacklo_epi64(ab_low, cd_low),
        _mm_unpackhi_epi64(ab_low, cd_low),
        _mm_unpacklo_epi64(ab_high, cd_high),
        _mm_unpackhi_epi64(ab_high, cd_high),
    ]
}
