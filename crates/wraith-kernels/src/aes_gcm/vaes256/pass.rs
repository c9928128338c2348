//! AES in counter mode over groups of vectors of two blocks, interleaved with GHASH.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::part::Part;
use super::products::{Products, two};
use super::{GROUP, VECTOR};
use crate::aes_gcm::ghash::{Powers, integer, reversal};
use crate::aes_gcm::text::Start;

/// The state for all vectors of one text.
pub(super) struct Pass<'a, const KEYS: usize> {
    round_keys: &'a [__m128i; KEYS],
    /// Shuffle that reverses the bytes of each block.
    reverse: __m256i,
    /// The next two counter blocks, each reversed: the counter is the lowest word.
    counters: __m256i,
}

impl<'a, const KEYS: usize> Pass<'a, KEYS> {
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn new(round_keys: &'a [__m128i; KEYS], start: Start) -> Self {
        // Counter 1 is for the tag; the text begins with 2 (SP 800-38D §7.1).
        let offsets = _mm256_set_epi32(0, 0, 0, 1, 0, 0, 0, 0);
        let first = _mm256_broadcastsi128_si256(integer(start.next()));
        Self {
            round_keys,
            reverse: _mm256_broadcastsi128_si256(reversal()),
            counters: _mm256_add_epi32(first, offsets),
        }
    }

    /// Returns the key of a round for two blocks. A load costs less than keeping all keys in
    /// registers.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn round_key(&self, round: usize) -> __m256i {
        _mm256_broadcastsi128_si256(self.round_keys[round])
    }

    /// Returns the counter blocks of the next group after round 0.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) fn group(&mut self) -> [__m256i; GROUP] {
        let two = _mm256_set_epi32(0, 0, 0, 2, 0, 0, 0, 2);
        let mut states = [_mm256_setzero_si256(); GROUP];
        for state in &mut states {
            let blocks = _mm256_shuffle_epi8(self.counters, self.reverse);
            self.counters = _mm256_add_epi32(self.counters, two);
            *state = _mm256_xor_si256(blocks, self.round_key(0));
        }
        states
    }

    /// Computes the rounds of a group except the last, interleaved with GHASH.
    ///
    /// Between the rounds, the products of the ciphertext group at `at` and `powers` are added to
    /// `products`. The previous `hash` is included. The two use different parts of the processor,
    /// and neither waits for the other.
    ///
    /// `SEAL` and `WHOLE` only identify the call site, one of four. A function with one call site
    /// is inlined however long it is. Its vectors then stay in registers, which saves a quarter of
    /// the time.
    ///
    /// # Safety
    /// [`GROUP`] whole vectors are readable at `at`.
    #[target_feature(enable = "avx2,vaes,vpclmulqdq")]
    #[inline]
    pub(super) unsafe fn rounds_beside<const SEAL: bool, const WHOLE: bool>(
        &self,
        states: &mut [__m256i; GROUP],
        products: &mut Products,
        at: *const u8,
        hash: __m128i,
        powers: &Powers<'_>,
    ) {
        self.round(states, 1);
        self.round(states, 2);
        // The first vector comes last, because it waits for the previous hash.
        for i in (1..GROUP).rev() {
            // SAFETY: the vector is one of the group.
            let vector = unsafe { self.elements(at.wrapping_add(i * VECTOR)) };
            products.add(vector, two(powers, i));
            self.round(states, 2 + GROUP - i);
        }
        if KEYS > 11 {
            self.round(states, 10);
        }
        // SAFETY: the vector is the first of the group.
        let first = unsafe { self.elements(at) };
        let first = _mm256_xor_si256(first, _mm256_zextsi128_si256(hash));
        products.add(first, two(powers, 0));
        for round in 11..KEYS - 1 {
            self.round(states, round);
        }
    }

    /// Computes the rounds of a group except the last.
    #[target_feature(enable = "avx2,vaes")]
    #[inline]
    pub(super) fn rounds_alone(&self, states: &mut [__m256i; GROUP]) {
        for round in 1..KEYS - 1 {
            self.round(states, round);
        }
    }

    #[target_feature(enable = "avx2,vaes")]
    #[inline]
    fn round(&self, states: &mut [__m256i; GROUP], round: usize) {
        let key = self.round_key(round);
        for state in states {
            *state = _mm256_aesenc_epi128(*state, key);
        }
    }

    /// Computes the last round of a group and xors the text read at `from`. Writes the result to
    /// `to`.
    ///
    /// # Safety
    /// [`GROUP`] whole vectors are readable at `from` and writable at `to`.
    #[target_feature(enable = "avx2,vaes")]
    #[inline]
    pub(super) unsafe fn finish(&self, states: [__m256i; GROUP], from: *const u8, to: *mut u8) {
        let key = self.round_key(KEYS - 1);
        for (i, state) in states.into_iter().enumerate() {
            // SAFETY: the vector is one of the group.
            unsafe {
                let text = _mm256_loadu_si256(from.add(i * VECTOR).cast());
                let after = _mm256_aesenclast_epi128(state, _mm256_xor_si256(key, text));
                _mm256_storeu_si256(to.add(i * VECTOR).cast(), after);
            }
        }
    }

    /// Adds the products of the first `vectors` of `part` and `powers`, including the previous
    /// `hash`.
    #[target_feature(enable = "avx2,vpclmulqdq")]
    #[inline]
    pub(super) fn hash(
        &self,
        products: &mut Products,
        part: &Part,
        hash: __m128i,
        powers: &Powers<'_>,
        vectors: usize,
    ) {
        let mut hash = _mm256_zextsi128_si256(hash);
        if vectors == 0 {
            products.add(hash, two(powers, 0));
        }
        for i in 0..vectors.min(GROUP) {
            // SAFETY: the part has room for a group.
            let elements = unsafe { self.elements(part.start().add(i * VECTOR)) };
            products.add(_mm256_xor_si256(elements, hash), two(powers, i));
            hash = _mm256_setzero_si256();
        }
    }

    /// Loads two blocks as elements of the field.
    ///
    /// # Safety
    /// A whole vector is readable at `at`.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn elements(&self, at: *const u8) -> __m256i {
        // SAFETY: guaranteed by the caller.
        let blocks = unsafe { _mm256_loadu_si256(at.cast()) };
        _mm256_shuffle_epi8(blocks, self.reverse)
    }
}
