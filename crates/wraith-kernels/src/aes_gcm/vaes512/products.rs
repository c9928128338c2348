//! Carry-less products of four blocks at a time.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::GROUP;
use crate::aes_gcm::ghash::{Powers, halves_added, reduce, reduce_wide};

/// Unreduced sums of carry-less products, of four blocks side by side.
pub(crate) struct Products {
    low: __m512i,
    middle: __m512i,
    high: __m512i,
}

/// Returns the powers for vector `i`.
#[target_feature(enable = "avx512f")]
#[inline]
pub(crate) fn four(powers: &Powers<'_>, i: usize) -> __m512i {
    let four: &[__m128i; 4] = powers.of_vector(i);
    // SAFETY: the reference covers 64 readable bytes.
    unsafe { _mm512_loadu_si512(four.as_ptr().cast()) }
}

/// Returns the powers for each vector of a group.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn every(powers: &Powers<'_>) -> [__m512i; GROUP] {
    [four(powers, 0), four(powers, 1), four(powers, 2), four(powers, 3)]
}

/// Returns the powers that advance each lane through a group that others follow: the first power of
/// each vector, in all lanes.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn lanes(powers: &Powers<'_>) -> [__m512i; GROUP] {
    let first = |i| {
        let [first, ..]: &[__m128i; 4] = powers.of_vector(i);
        _mm512_broadcast_i32x4(*first)
    };
    [first(0), first(1), first(2), first(3)]
}

impl Products {
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(crate) fn new() -> Self {
        let zero = _mm512_setzero_si512();
        Self { low: zero, middle: zero, high: zero }
    }

    /// Adds the products of four elements and four powers.
    #[target_feature(enable = "avx512f,vpclmulqdq")]
    #[inline]
    pub(crate) fn add(&mut self, elements: __m512i, powers: __m512i) {
        let low = _mm512_clmulepi64_epi128::<0x00>(elements, powers);
        let high = _mm512_clmulepi64_epi128::<0x11>(elements, powers);
        let middle_a = _mm512_clmulepi64_epi128::<0x01>(elements, powers);
        let middle_b = _mm512_clmulepi64_epi128::<0x10>(elements, powers);
        self.low = _mm512_xor_si512(self.low, low);
        self.high = _mm512_xor_si512(self.high, high);
        // 0x96 is the truth table of a ^ b ^ c.
        self.middle = _mm512_ternarylogic_epi64::<0x96>(self.middle, middle_a, middle_b);
    }

    /// Adds the products of a group and the powers for each of its vectors.
    #[target_feature(enable = "avx512f,vpclmulqdq")]
    #[inline]
    pub(super) fn add_group(&mut self, elements: &[__m512i; GROUP], powers: &[__m512i; GROUP]) {
        for (elements, powers) in elements.iter().zip(powers) {
            self.add(*elements, *powers);
        }
    }

    /// Adds products as [`Self::add`] does, with three multiplications, which is faster without
    /// interleaved work. `added` is the sum of the halves of the powers.
    ///
    /// Must not be mixed with [`Self::add`]. Call [`Self::complete`] after the last one.
    #[target_feature(enable = "avx512f,vpclmulqdq")]
    #[inline]
    pub(super) fn add_by_three(&mut self, elements: __m512i, powers: __m512i, added: __m512i) {
        let low = _mm512_clmulepi64_epi128::<0x00>(elements, powers);
        let high = _mm512_clmulepi64_epi128::<0x11>(elements, powers);
        let all = _mm512_clmulepi64_epi128::<0x00>(halves_added(elements), added);
        self.low = _mm512_xor_si512(self.low, low);
        self.high = _mm512_xor_si512(self.high, high);
        self.middle = _mm512_xor_si512(self.middle, all);
    }

    /// Subtracts the other two products from those of the added halves.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(super) fn complete(&mut self) {
        self.middle = _mm512_ternarylogic_epi64::<0x96>(self.middle, self.low, self.high);
    }

    /// Returns the reduced sum of all products.
    #[target_feature(enable = "avx512f,avx512bw,avx2,pclmulqdq")]
    #[inline]
    pub(crate) fn reduce(self) -> __m128i {
        let (low, high) = self.halves();
        reduce(sum_of_lanes(low), sum_of_lanes(high))
    }

    /// Returns the sums of each lane, reduced side by side.
    #[target_feature(enable = "avx512f,avx512bw,vpclmulqdq")]
    #[inline]
    pub(super) fn reduce_lanes(self) -> __m512i {
        let (low, high) = self.halves();
        reduce_wide(low, high)
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn halves(self) -> (__m512i, __m512i) {
        let low = _mm512_xor_si512(self.low, _mm512_bslli_epi128::<8>(self.middle));
        let high = _mm512_xor_si512(self.high, _mm512_bsrli_epi128::<8>(self.middle));
        (low, high)
    }
}

#[target_feature(enable = "avx512f,avx2")]
#[inline]
pub(super) fn sum_of_lanes(v: __m512i) -> __m128i {
    let half = _mm256_xor_si256(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64::<1>(v));
    _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half))
}
