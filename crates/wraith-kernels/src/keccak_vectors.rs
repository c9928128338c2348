//! Vectors of 64-bit words for [`keccak_lanes`](crate::keccak_lanes), with AVX-512 and AVX2.
//!
//! The functions of this module are inlined into kernels that enable the processor features; no
//! other code may call them.
#![allow(unsafe_code)]

use core::arch::x86_64::*;

/// A vector of words.
pub(crate) trait Lanes: Copy {
    /// Number of lanes.
    const LANES: usize;

    fn splat(word: u64) -> Self;
    /// Loads the first [`LANES`](Self::LANES) words.
    fn load(words: &[u64]) -> Self;
    fn store(self, words: &mut [u64]);
    fn xor(self, other: Self) -> Self;
    fn rotate_right<const N: i32>(self) -> Self;
    /// Returns a ^ b ^ c.
    fn parity(a: Self, b: Self, c: Self) -> Self;
    /// Returns a ^ (!b & c).
    fn chi(a: Self, b: Self, c: Self) -> Self;
}

macro_rules! lanes {
    ($vector:ty, $lanes:literal, $splat:ident, $load:ident, $store:ident, $xor:ident,
     $rotate:expr, $parity:expr, $chi:expr) => {
        impl Lanes for $vector {
            const LANES: usize = $lanes;

            #[inline(always)]
            fn splat(word: u64) -> Self {
                // SAFETY: the kernel has enabled the feature.
                unsafe { $splat(word.cast_signed()) }
            }
            #[inline(always)]
            fn load(words: &[u64]) -> Self {
                // SAFETY: as above, and the words fill a vector.
                unsafe { $load(words[..$lanes].as_ptr().cast()) }
            }
            #[inline(always)]
            fn store(self, words: &mut [u64]) {
                // SAFETY: as above, and the words fill a vector.
                unsafe { $store(words[..$lanes].as_mut_ptr().cast(), self) }
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                // SAFETY: the kernel has enabled the feature.
                unsafe { $xor(self, other) }
            }
            #[inline(always)]
            fn rotate_right<const N: i32>(self) -> Self {
                // SAFETY: the kernel has enabled the feature.
                unsafe { $rotate(self, N) }
            }
            #[inline(always)]
            fn parity(a: Self, b: Self, c: Self) -> Self {
                // SAFETY: the kernel has enabled the feature.
                unsafe { $parity(a, b, c) }
            }
            #[inline(always)]
            fn chi(a: Self, b: Self, c: Self) -> Self {
                // SAFETY: the kernel has enabled the feature.
                unsafe { $chi(a, b, c) }
            }
        }
    };
}

lanes!(
    __m512i,
    8,
    _mm512_set1_epi64,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_xor_si512,
    |v, n: i32| _mm512_rorv_epi64(v, _mm512_set1_epi64(n.into())),
    _mm512_ternarylogic_epi64::<0x96>,
    _mm512_ternarylogic_epi64::<0xd2>
);
lanes!(
    __m256i,
    4,
    _mm256_set1_epi64x,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_xor_si256,
    |v, n: i32| {
        let (right, left) = (_mm_cvtsi32_si128(n), _mm_cvtsi32_si128(64 - n));
        _mm256_or_si256(_mm256_srl_epi64(v, right), _mm256_sll_epi64(v, left))
    },
    |a, b, c| _mm256_xor_si256(a, _mm256_xor_si256(b, c)),
    |a, b, c| _mm256_xor_si256(a, _mm256_andnot_si256(b, c))
);
