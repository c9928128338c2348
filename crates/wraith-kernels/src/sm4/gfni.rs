//! SM4 with GFNI and AVX2: eight or sixteen blocks, in words side by side.
//!
//! The S-box of SM4 is an inversion in the field of AES between affine maps, followed by a linear
//! layer. The state is kept as mapped by the inner map P, which is linear, and the outer maps are
//! merged. A round is then three instructions on the same input:
//!
//! - t = Y1 ^ Y2 ^ Y3 ^ k
//! - Y4 = Y0 ^ A(t) ^ B(t)<<<8 ^ B(t)<<<16 ^ C(t)<<<24, where each of A, B and C is an inversion
//!   and a matrix.
//!
//! This formulation is new here. On Zen 4: 16 blocks in 450 cycles.
#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::chain::plain;
use super::{A, B, Block, C, CONSTANTS, P, P_INVERSE, RoundKeys};

/// Expands four words to the round keys. The critical path from one round key to the next is the
/// S-box, two rotations and four sums.
#[target_feature(enable = "avx2,gfni")]
pub(super) fn expand(words: [u32; 4]) -> [u32; 32] {
    let inner = _mm_set1_epi64x(P as i64);
    let outer = _mm_set1_epi64x(0xf3ab_34a9_74a6_b589_u64 as i64);
    let word = |word: u32| _mm_cvtsi32_si128(word.cast_signed());
    let mut words = words.map(word);
    let mut keys = [0; 32];
    let constants = CONSTANTS.as_chunks::<4>().0;
    for (keys, constants) in keys.as_chunks_mut::<4>().0.iter_mut().zip(constants) {
        for i in 0..4 {
            let [a, b, c, d] = [0, 1, 2, 3].map(|k| words[(i + k) % 4]);
            let t = _mm_xor_si128(_mm_xor_si128(_mm_xor_si128(b, c), word(constants[i])), d);
            let t = _mm_gf2p8affine_epi64_epi8::<0x3e>(t, inner);
            let t = _mm_gf2p8affineinv_epi64_epi8::<0xd3>(t, outer);
            let turned_13 = _mm_xor_si128(_mm_slli_epi32::<13>(t), _mm_srli_epi32::<19>(t));
            let turned_23 = _mm_xor_si128(_mm_slli_epi32::<23>(t), _mm_srli_epi32::<9>(t));
            let next = _mm_xor_si128(_mm_xor_si128(a, t), _mm_xor_si128(turned_13, turned_23));
            words[i] = next;
            keys[i] = _mm_cvtsi128_si32(next).cast_unsigned();
        }
    }
    keys
}

/// Converts round keys to the form of [`RoundKeys::folded`].
#[target_feature(enable = "avx2,gfni")]
pub(super) fn fold(plain: &[u32; 32]) -> [u32; 32] {
    let swap = _mm256_broadcastsi128_si256(_mm_set_epi8(
        12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3,
    ));
    let mut folded = [0; 32];
    for (folded, plain) in folded.as_chunks_mut::<8>().0.iter_mut().zip(plain.as_chunks::<8>().0) {
        // SAFETY: the reference covers 32 readable bytes.
        let words = unsafe { _mm256_loadu_si256(plain.as_ptr().cast()) };
        let words = _mm256_shuffle_epi8(words, swap);
        let words = _mm256_gf2p8affine_epi64_epi8::<0x3e>(words, _mm256_set1_epi64x(P as i64));
        // SAFETY: the reference covers 32 writable bytes.
        unsafe { _mm256_storeu_si256(folded.as_mut_ptr().cast(), words) }
    }
    folded
}

/// Encrypts `blocks` in place.
#[target_feature(enable = "avx2,gfni")]
pub(super) fn blocks(keys: &RoundKeys, blocks: &mut [Block]) {
    let (sixteens, rest) = blocks.as_chunks_mut();
    for sixteen in sixteens {
        beside::<2, 16>(keys, sixteen);
    }
    match rest.len() {
        0 => {}
        1 => plain::one(keys, &mut rest[0]),
        2..=8 => padded::<1, 8>(keys, rest),
        _ => padded::<2, 16>(keys, rest),
    }
}

#[target_feature(enable = "avx2,gfni")]
fn padded<const N: usize, const BLOCKS: usize>(keys: &RoundKeys, blocks: &mut [Block]) {
    let mut whole = [[0; 16]; BLOCKS];
    whole[..blocks.len()].copy_from_slice(blocks);
    beside::<N, BLOCKS>(keys, &mut whole);
    blocks.copy_from_slice(&whole[..blocks.len()]);
}

/// Encrypts `N` times eight blocks side by side. `BLOCKS` must be `8 * N`.
#[target_feature(enable = "avx2,gfni")]
#[inline]
fn beside<const N: usize, const BLOCKS: usize>(keys: &RoundKeys, blocks: &mut [Block; BLOCKS]) {
    const { assert!(BLOCKS == 8 * N) };
    let (p, p_inverse) = (_mm256_set1_epi64x(P as i64), _mm256_set1_epi64x(P_INVERSE as i64));
    let at = blocks.as_mut_ptr().cast::<__m256i>();
    let mut words = [[_mm256_setzero_si256(); 4]; N];
    for (n, words) in words.iter_mut().enumerate() {
        for (i, vector) in words.iter_mut().enumerate() {
            // SAFETY: vector 4n + i of the 4N that the blocks fill.
            let plain = unsafe { _mm256_loadu_si256(at.add(4 * n + i)) };
            *vector = _mm256_gf2p8affine_epi64_epi8::<0>(plain, p);
        }
        *words = transpose(*words);
    }
    for four in keys.folded.as_chunks::<4>().0 {
        for (i, key) in four.iter().enumerate() {
            for words in &mut words {
                let t = _mm256_xor_si256(words[(i + 2) % 4], words[(i + 3) % 4]);
                let t = _mm256_xor_si256(t, _mm256_set1_epi32(*key as i32));
                let t = _mm256_xor_si256(t, words[(i + 1) % 4]);
                words[i] = _mm256_xor_si256(words[i], round(t));
            }
        }
    }
    for (n, words) in words.iter().enumerate() {
        let vectors = transpose([words[3], words[2], words[1], words[0]]);
        for (i, vector) in vectors.into_iter().enumerate() {
            let cipher = _mm256_gf2p8affine_epi64_epi8::<0>(vector, p_inverse);
            // SAFETY: vector 4n + i of the 4N that the blocks fill.
            unsafe { _mm256_storeu_si256(at.add(4 * n + i), cipher) };
        }
    }
}

/// Returns the term that a round xors onto the word it replaces. The bytes of a word are in memory
/// order, the highest first, so a rotation to the left goes to the right.
#[target_feature(enable = "avx2,gfni")]
#[inline]
fn round(t: __m256i) -> __m256i {
    let turn = |by: i32| {
        let turn = _mm_set_epi32(0x0f0e_0d0c, 0x0b0a_0908, 0x0706_0504, 0x0302_0100);
        let turned = match by {
            8 => _mm_or_si128(_mm_srli_epi32::<8>(turn), _mm_slli_epi32::<24>(turn)),
            16 => _mm_or_si128(_mm_srli_epi32::<16>(turn), _mm_slli_epi32::<16>(turn)),
            _ => _mm_or_si128(_mm_srli_epi32::<24>(turn), _mm_slli_epi32::<8>(turn)),
        };
        _mm256_broadcastsi128_si256(turned)
    };
    let a = _mm256_gf2p8affineinv_epi64_epi8::<0x63>(t, _mm256_set1_epi64x(A as i64));
    let b = _mm256_gf2p8affineinv_epi64_epi8::<0>(t, _mm256_set1_epi64x(B as i64));
    let c = _mm256_gf2p8affineinv_epi64_epi8::<0>(t, _mm256_set1_epi64x(C as i64));
    let b = _mm256_xor_si256(_mm256_shuffle_epi8(b, turn(8)), _mm256_shuffle_epi8(b, turn(16)));
    _mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_shuffle_epi8(c, turn(24)))
}

/// Transposes blocks side by side into words side by side, and back.
#[target_feature(enable = "avx2")]
#[inline]
fn transpose([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (ab_low, ab_high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let (cd_low, cd_high) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(ab_low, cd_low),
        _mm256_unpackhi_epi64(ab_low, cd_low),
        _mm256_unpacklo_epi64(ab_high, cd_high),
        _mm256_unpackhi_epi64(ab_high, cd_high),
    ]
}
