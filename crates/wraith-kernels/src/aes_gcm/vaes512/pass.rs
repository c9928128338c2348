//! AES in counter mode over groups of vectors of four blocks, interleaved with GHASH.
#![allow(unsafe_code)]

use std::arch::{asm, x86_64::*};

use super::products::Products;
use super::{GROUP, VECTOR};
use crate::aes_gcm::ghash::{integer, reversal};
use crate::aes_gcm::text::{Start, Text};

/// The state for all vectors of one text.
pub(super) struct Pass<'a, const KEYS: usize> {
    round_keys: &'a [__m128i; KEYS],
    /// The round keys of whole groups, once [held](Self::hold). Loads between the stores of the
    /// text would wait for stores to addresses that look alike.
    held: [__m512i; KEYS],
    /// Shuffle that reverses the bytes of each block.
    reverse: __m512i,
    /// The next four counter blocks, each reversed: the counter is the lowest word.
    counters: __m512i,
}

impl<'a, const KEYS: usize> Pass<'a, KEYS> {
    #[target_feature(enable = "avx512f,avx512bw,avx2")]
    #[inline]
    pub(super) fn new(round_keys: &'a [__m128i; KEYS], start: Start) -> Self {
        // Counter 1 is for the tag; the text begins with 2 (SP 800-38D §7.1).
        let offsets = _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0);
        let first = _mm512_broadcast_i32x4(integer(start.next()));
        Self {
            round_keys,
            held: [_mm512_setzero_si512(); KEYS],
            reverse: _mm512_broadcast_i32x4(reversal()),
            counters: _mm512_add_epi32(first, offsets),
        }
    }

    /// Loads the round keys for all whole groups.
    #[target_feature(enable = "avx512f")]
    #[inline]
    pub(super) fn hold(&mut self) {
        self.forget();
        for (held, key) in self.held.iter_mut().zip(self.round_keys) {
            *held = _mm512_broadcast_i32x4(*key);
        }
    }

    /// Hides the round keys from the compiler, so that it loads them where they are needed.
    ///
    /// Otherwise it would hold all of them, most on the stack, even for texts without a whole
    /// group.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.round_keys = not_known(self.round_keys);
    }

    /// Returns the key of a round for four blocks: the held one if the group is whole, else one
    /// loaded from memory.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn round_key<const WHOLE: bool>(&self, round: usize) -> __m512i {
        if WHOLE { self.held[round] } else { _mm512_broadcast_i32x4(self.round_keys[round]) }
    }

    /// Returns the next four counter blocks after round 0.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn next<const WHOLE: bool>(&mut self) -> __m512i {
        let blocks = _mm512_shuffle_epi8(self.counters, self.reverse);
        let four = _mm512_set_epi32(0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4);
        self.counters = _mm512_add_epi32(self.counters, four);
        _mm512_xor_si512(blocks, self.round_key::<WHOLE>(0))
    }

    /// Computes the rounds of a group except the last, interleaved with GHASH.
    ///
    /// Between the rounds, the products of a group of elements and `powers` are added to
    /// `products`. The two use different parts of the processor, and neither waits for the other.
    ///
    /// `SEAL` only identifies the call site, one of two for each `WHOLE`. A function with one call
    /// site is inlined however long it is, and its vectors then stay in registers.
    #[target_feature(enable = "avx512f,vaes,vpclmulqdq")]
    #[inline]
    pub(super) fn rounds_beside<const SEAL: bool, const WHOLE: bool>(
        &self,
        states: &mut [__m512i; GROUP],
        products: &mut Products,
        elements: &[__m512i; GROUP],
        powers: &[__m512i; GROUP],
    ) {
        self.three_rounds::<WHOLE>(states, 1);
        products.add(elements[3], powers[3]);
        self.three_rounds::<WHOLE>(states, 4);
        products.add(elements[2], powers[2]);
        self.three_rounds::<WHOLE>(states, 7);
        products.add(elements[1], powers[1]);
        // The rounds that only longer keys have.
        for round in 10..KEYS.min(14) - 1 {
            self.round::<WHOLE>(states, round);
        }
        // The first element comes last, because it waits for the previous hash.
        products.add(elements[0], powers[0]);
        if KEYS == 15 {
            self.round::<WHOLE>(states, 13);
        }
    }

    /// Computes the rounds of a group except the last.
    #[target_feature(enable = "avx512f,vaes")]
    #[inline]
    pub(super) fn rounds_alone<const WHOLE: bool>(&self, states: &mut [__m512i; GROUP]) {
        for round in 1..KEYS - 1 {
            self.round::<WHOLE>(states, round);
        }
    }

    #[target_feature(enable = "avx512f,vaes")]
    #[inline]
    fn three_rounds<const WHOLE: bool>(&self, states: &mut [__m512i; GROUP], first: usize) {
        self.round::<WHOLE>(states, first);
        self.round::<WHOLE>(states, first + 1);
        self.round::<WHOLE>(states, first + 2);
    }

    #[target_feature(enable = "avx512f,vaes")]
    #[inline]
    fn round<const WHOLE: bool>(&self, states: &mut [__m512i; GROUP], round: usize) {
        let key = self.round_key::<WHOLE>(round);
        for state in states {
            *state = _mm512_aesenc_epi128(*state, key);
        }
    }

    /// Computes the last round and xors the text.
    #[target_feature(enable = "avx512f,vaes")]
    #[inline]
    fn last<const WHOLE: bool>(&self, state: __m512i, text: __m512i) -> __m512i {
        _mm512_aesenclast_epi128(state, _mm512_xor_si512(self.round_key::<WHOLE>(KEYS - 1), text))
    }

    /// Returns the next four vectors of counter blocks, after round 0.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    pub(super) fn group<const WHOLE: bool>(&mut self) -> [__m512i; GROUP] {
        let mut states = [_mm512_setzero_si512(); GROUP];
        for state in &mut states {
            *state = self.next::<WHOLE>();
        }
        states
    }

    /// Returns the group of `text` at `offset`, as elements.
    ///
    /// # Safety
    /// [`GROUP`] whole vectors of `text` begin at `offset`.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    pub(super) unsafe fn load(&self, text: &Text, offset: usize) -> [__m512i; GROUP] {
        let from = text.from(offset);
        let mut elements = [_mm512_setzero_si512(); GROUP];
        for (i, elements) in elements.iter_mut().enumerate() {
            // SAFETY: the vector is within the text, which is readable at `from`.
            let vector = unsafe { _mm512_loadu_si512(from.add(i * VECTOR).cast()) };
            *elements = self.elements(vector);
        }
        elements
    }

    /// Computes the last round of a group and xors its text. Returns the bytes written, as
    /// elements.
    ///
    /// # Safety
    /// As for [`Self::load`].
    #[target_feature(enable = "avx512f,avx512bw,vaes")]
    #[inline]
    pub(super) unsafe fn finish(
        &self,
        states: [__m512i; GROUP],
        text: &Text,
        offset: usize,
    ) -> [__m512i; GROUP] {
        let from = text.from(offset);
        let to = text.to(offset);
        let mut elements = states;
        for (i, state) in elements.iter_mut().enumerate() {
            let at = i * VECTOR;
            // SAFETY: the vector is within the text, which is readable at `from` and writable at
            // `to`.
            let after = unsafe {
                let before = _mm512_loadu_si512(from.add(at).cast());
                let after = self.last::<true>(*state, before);
                _mm512_storeu_si512(to.add(at).cast(), after);
                after
            };
            *state = self.elements(after);
        }
        elements
    }

    /// Loads as [`Self::load`] does, but only the bytes of the masks.
    ///
    /// # Safety
    /// The bytes of the masks are within the text.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    pub(super) unsafe fn load_part(
        &self,
        text: &Text,
        offset: usize,
        masks: &[u64; GROUP],
    ) -> [__m512i; GROUP] {
        let from = text.from(offset);
        let mut elements = [_mm512_setzero_si512(); GROUP];
        for (i, elements) in elements.iter_mut().enumerate() {
            // SAFETY: only bytes of the mask are accessed, which are readable at `from`.
            let vector =
                unsafe { _mm512_maskz_loadu_epi8(masks[i], from.wrapping_add(i * VECTOR).cast()) };
            *elements = self.elements(vector);
        }
        elements
    }

    /// Finishes as [`Self::finish`] does, but only the bytes of the masks.
    ///
    /// # Safety
    /// As for [`Self::load_part`].
    #[target_feature(enable = "avx512f,avx512bw,vaes")]
    #[inline]
    pub(super) unsafe fn finish_part(
        &self,
        states: [__m512i; GROUP],
        text: &Text,
        offset: usize,
        masks: &[u64; GROUP],
    ) -> [__m512i; GROUP] {
        let from = text.from(offset);
        let to = text.to(offset);
        let mut elements = states;
        for (i, state) in elements.iter_mut().enumerate() {
            let (at, mask) = (i * VECTOR, masks[i]);
            // SAFETY: only bytes of the mask are accessed, which are readable at `from` and
            // writable at `to`.
            let after = unsafe {
                let before = _mm512_maskz_loadu_epi8(mask, from.wrapping_add(at).cast());
                let after = self.last::<false>(*state, before);
                _mm512_mask_storeu_epi8(to.wrapping_add(at).cast(), mask, after);
                after
            };
            *state = self.elements(_mm512_maskz_mov_epi8(mask, after));
        }
        elements
    }

    /// Returns four blocks as elements of the field.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn elements(&self, blocks: __m512i) -> __m512i {
        _mm512_shuffle_epi8(blocks, self.reverse)
    }
}

/// Returns the same reference, without the compiler's knowledge that it is the same.
#[inline]
fn not_known<T>(place: &T) -> &T {
    let mut at = std::ptr::from_ref(place);
    // SAFETY: the assembly does nothing, so the pointer is unchanged.
    unsafe {
        asm!("# {}", inout(reg) at, options(readonly, nostack, preserves_flags));
        &*at
    }
}
