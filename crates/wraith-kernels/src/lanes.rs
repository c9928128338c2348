//! Vectors of words in which all lanes compute the same function: the operations of hash functions,
//! for AVX-512 and AVX2.
//!
//! A kernel is written once, generic over its vector type. The functions of this module are inlined
//! into kernels that enable the processor features; no other code may call them.
#![allow(unsafe_code)]

use core::arch::x86_64::*;

/// A vector of words.
pub(crate) trait Lanes<W>: Copy {
    /// Number of lanes.
    const LANES: usize;

    fn splat(word: W) -> Self;
    /// Loads the first [`LANES`](Self::LANES) words.
    fn load(words: &[W]) -> Self;
    fn store(self, words: &mut [W]);
    fn add(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn rotate_right<const N: i32>(self) -> Self;
    fn shift_right<const N: i32>(self) -> Self;
    fn shift_left<const N: i32>(self) -> Self;
    /// Returns a ^ b ^ c.
    fn parity(a: Self, b: Self, c: Self) -> Self;
    /// Returns the bit of `b` where the bit of `a` is set, else the bit of `c`.
    fn choice(a: Self, b: Self, c: Self) -> Self;
    /// Returns the bits that are set in at least two of the three.
    fn majority(a: Self, b: Self, c: Self) -> Self;
    /// Returns a ^ (!b & c).
    fn chi(a: Self, b: Self, c: Self) -> Self;
}

macro_rules! avx512 {
    ($word:ty, $lanes:literal, $splat:ident, $add:ident, $ror:ident, $shr:ident, $shl:ident, $logic:ident) => {
        // Every unsafe block is sound: only kernels that enable AVX-512F call these functions. The
        // slices are at least as long as a vector.
        impl Lanes<$word> for __m512i {
            const LANES: usize = $lanes;

            #[inline(always)]
            fn splat(word: $word) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { $splat(word.cast_signed()) }
            }
            #[inline(always)]
            fn load(words: &[$word]) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { _mm512_loadu_si512(words[..$lanes].as_ptr().cast()) }
            }
            #[inline(always)]
            fn store(self, words: &mut [$word]) {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { _mm512_storeu_si512(words[..$lanes].as_mut_ptr().cast(), self) }
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { $add(self, other) }
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { _mm512_xor_si512(self, other) }
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { _mm512_or_si512(self, other) }
            }
            #[inline(always)]
            fn rotate_right<const N: i32>(self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { $ror::<N>(self) }
            }
            #[inline(always)]
            fn shift_right<const N: i32>(self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { $shr(self, _mm_cvtsi32_si128(N)) }
            }
            #[inline(always)]
            fn shift_left<const N: i32>(self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { $shl(self, _mm_cvtsi32_si128(N)) }
            }
            #[inline(always)]
            fn parity(a: Self, b: Self, c: Self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { $logic::<0x96>(a, b, c) }
            }
            #[inline(always)]
            fn choice(a: Self, b: Self, c: Self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { $logic::<0xca>(a, b, c) }
            }
            #[inline(always)]
            fn majority(a: Self, b: Self, c: Self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { $logic::<0xe8>(a, b, c) }
            }
            #[inline(always)]
            fn chi(a: Self, b: Self, c: Self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { $logic::<0xd2>(a, b, c) }
            }
        }
    };
}

macro_rules! avx2 {
    ($word:ty, $lanes:literal, $splat:ident, $add:ident, $shr:ident, $shl:ident) => {
        // Every unsafe block is sound: only kernels that enable AVX2 call these functions. The slices
        // are at least as long as a vector.
        impl Lanes<$word> for __m256i {
            const LANES: usize = $lanes;

            #[inline(always)]
            fn splat(word: $word) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { $splat(word.cast_signed()) }
            }
            #[inline(always)]
            fn load(words: &[$word]) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { _mm256_loadu_si256(words[..$lanes].as_ptr().cast()) }
            }
            #[inline(always)]
            fn store(self, words: &mut [$word]) {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { _mm256_storeu_si256(words[..$lanes].as_mut_ptr().cast(), self) }
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { $add(self, other) }
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { _mm256_xor_si256(self, other) }
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { _mm256_or_si256(self, other) }
            }
            #[inline(always)]
            fn rotate_right<const N: i32>(self) -> Self {
                let left = <$word>::BITS.cast_signed() - N;
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe {
                    _mm256_or_si256(
                        $shr(self, _mm_cvtsi32_si128(N)),
                        $shl(self, _mm_cvtsi32_si128(left)),
                    )
                }
            }
            #[inline(always)]
            fn shift_right<const N: i32>(self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { $shr(self, _mm_cvtsi32_si128(N)) }
            }
            #[inline(always)]
            fn shift_left<const N: i32>(self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { $shl(self, _mm_cvtsi32_si128(N)) }
            }
            #[inline(always)]
            fn parity(a: Self, b: Self, c: Self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { _mm256_xor_si256(a, _mm256_xor_si256(b, c)) }
            }
            #[inline(always)]
            fn choice(a: Self, b: Self, c: Self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { _mm256_xor_si256(c, _mm256_and_si256(a, _mm256_xor_si256(b, c))) }
            }
            #[inline(always)]
            fn majority(a: Self, b: Self, c: Self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe {
                    _mm256_or_si256(
                        _mm256_and_si256(a, b),
                        _mm256_and_si256(c, _mm256_or_si256(a, b)),
                    )
                }
            }
            #[inline(always)]
            fn chi(a: Self, b: Self, c: Self) -> Self {
                // SAFETY: the kernel has enabled the feature, and the words fill a vector.
                unsafe { _mm256_xor_si256(a, _mm256_andnot_si256(b, c)) }
            }
        }
    };
}

avx512!(
    u32,
    16,
    _mm512_set1_epi32,
    _mm512_add_epi32,
    _mm512_ror_epi32,
    _mm512_srl_epi32,
    _mm512_sll_epi32,
    _mm512_ternarylogic_epi32
);
avx512!(
    u64,
    8,
    _mm512_set1_epi64,
    _mm512_add_epi64,
    _mm512_ror_epi64,
    _mm512_srl_epi64,
    _mm512_sll_epi64,
    _mm512_ternarylogic_epi64
);
avx2!(u32, 8, _mm256_set1_epi32, _mm256_add_epi32, _mm256_srl_epi32, _mm256_sll_epi32);
avx2!(u64, 4, _mm256_set1_epi64x, _mm256_add_epi64, _mm256_srl_epi64, _mm256_sll_epi64);
