//! Carry-less products of two blocks at a time.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use crate::aes_gcm::ghash::{Powers, reduce};

/// Unreduced sums of carry-less products, of two blocks side by side.
pub(super) struct Products {
    low: __m256i,
    middle: __m256i,
    high: __m256i,
}

/// Returns the powers for vector `i`.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn two(powers: &Powers<'_>, i: usize) -> __m256i {
    let two: &[__m128i; 2] = powers.of_vector(i);
    // SAFETY: the reference covers 32 readable bytes.
    unsafe { _mm256_loadu_si256(two.as_ptr().cast()) }
}

impl Products {
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn new() -> Self {
        let zero = _mm256_setzero_si256();
        Self { low: zero, middle: zero, high: zero }
    }

    /// Adds the products of two elements and two powers.
    #[target_feature(enable = "avx2,vpclmulqdq")]
    #[inline]
    pub(super) fn add(&mut self, elements: __m256i, powers: __m256i) {
        let low = _mm256_clmulepi64_epi128::<0x00>(elements, powers);
        let high = _mm256_clmulepi64_epi128::<0x11>(elements, powers);
        let middle_a = _mm256_clmulepi64_epi128::<0x01>(elements, powers);
        let middle_b = _mm256_clmulepi64_epi128::<0x10>(elements, powers);
        self.low = _mm256_xor_si256(self.low, low);
        self.high = _mm256_xor_si256(self.high, high);
        self.middle = _mm256_xor_si256(self.middle, _mm256_xor_si256(middle_a, middle_b));
    }

    /// Returns the reduced sum of all products.
    #[target_feature(enable = "avx2,pclmulqdq")]
    #[inline]
    pub(super) fn reduce(self) -> __m128i {
        let low = _mm256_xor_si256(self.low, _mm256_bslli_epi128::<8>(self.middle));
        let high = _mm256_xor_si256(self.high, _mm256_bsrli_epi128::<8>(self.middle));
        reduce(sum_of_lanes(low), sum_of_lanes(high))
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn sum_of_lanes(v: __m256i) -> __m128i {
    _mm_xor_si128(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v))
}
