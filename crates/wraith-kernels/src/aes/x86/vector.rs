//! Vectors of one, two or four blocks and their operations. They let [`wide`](super::wide) define
//! each mode once.
//!
//! Every function is inlined into a caller that enables the instructions: `wide::with_128`,
//! `with_256` or `with_512`.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

/// A vector of blocks.
///
/// # Safety
/// The functions may be called only on a processor that has the instructions of the width, AES and
/// carry-less multiplication.
pub(super) unsafe trait Vector: Copy {
    /// Number of blocks in the vector.
    const BLOCKS: usize;

    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(self, to: *mut u8);
    /// Returns a vector of copies of one block.
    unsafe fn broadcast(block: __m128i) -> Self;
    unsafe fn first(self) -> __m128i;
    unsafe fn last(self) -> __m128i;
    unsafe fn zero() -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn encrypt(self, key: Self) -> Self;
    unsafe fn encrypt_last(self, key: Self) -> Self;
    unsafe fn decrypt(self, key: Self) -> Self;
    unsafe fn decrypt_last(self, key: Self) -> Self;
    /// Returns the last block of `before` followed by all blocks of `self` but the last.
    unsafe fn behind(self, before: Self) -> Self;
    /// Reverses the bytes of each block.
    unsafe fn reversed(self) -> Self;
    /// Adds the number of blocks to the lower half of each block.
    unsafe fn counted_on(self) -> Self;
    /// Multiplies each block, as an XTS tweak, by x once for each block of the vector.
    unsafe fn tweaked_on(self) -> Self;
}

/// Implements [`Vector`] with the instructions of one width.
macro_rules! vector {
    (
        $vector:ty, $blocks:literal;
        $( fn $name:ident($($argument:tt)*) $(-> $result:ty)? $body:block )+
    ) => {
        // SAFETY: the functions use only the instructions of the width.
        unsafe impl Vector for $vector {
            const BLOCKS: usize = $blocks;

            $(
                #[inline(always)]
                #[allow(unused_unsafe, reason = "some operations need no instruction")]
                unsafe fn $name($($argument)*) $(-> $result)? {
                    // SAFETY: the trait's.
                    unsafe { $body }
                }
            )+
        }
    };
}

vector! {
    __m128i, 1;
    fn load(from: *const u8) -> Self { _mm_loadu_si128(from.cast()) }
    fn store(self, to: *mut u8) { _mm_storeu_si128(to.cast(), self) }
    fn broadcast(block: __m128i) -> Self { block }
    fn first(self) -> __m128i { self }
    fn last(self) -> __m128i { self }
    fn zero() -> Self { _mm_setzero_si128() }
    fn xor(self, other: Self) -> Self { _mm_xor_si128(self, other) }
    fn encrypt(self, key: Self) -> Self { _mm_aesenc_si128(self, key) }
    fn encrypt_last(self, key: Self) -> Self { _mm_aesenclast_si128(self, key) }
    fn decrypt(self, key: Self) -> Self { _mm_aesdec_si128(self, key) }
    fn decrypt_last(self, key: Self) -> Self { _mm_aesdeclast_si128(self, key) }
    fn behind(self, before: Self) -> Self { before }
    fn reversed(self) -> Self { _mm_shuffle_epi8(self, reversal()) }
    fn counted_on(self) -> Self { _mm_add_epi64(self, _mm_set_epi64x(0, 1)) }
    fn tweaked_on(self) -> Self {
        let out = _mm_srli_epi64::<63>(self);
        let low = _mm_clmulepi64_si128::<0x01>(out, _mm_set_epi64x(0, 0x87));
        let moved = _mm_xor_si128(_mm_slli_epi64::<1>(self), _mm_slli_si128::<8>(out));
        _mm_xor_si128(moved, low)
    }
}

vector! {
    __m256i, 2;
    fn load(from: *const u8) -> Self { _mm256_loadu_si256(from.cast()) }
    fn store(self, to: *mut u8) { _mm256_storeu_si256(to.cast(), self) }
    fn broadcast(block: __m128i) -> Self { _mm256_broadcastsi128_si256(block) }
    fn first(self) -> __m128i { _mm256_castsi256_si128(self) }
    fn last(self) -> __m128i { _mm256_extracti128_si256::<1>(self) }
    fn zero() -> Self { _mm256_setzero_si256() }
    fn xor(self, other: Self) -> Self { _mm256_xor_si256(self, other) }
    fn encrypt(self, key: Self) -> Self { _mm256_aesenc_epi128(self, key) }
    fn encrypt_last(self, key: Self) -> Self { _mm256_aesenclast_epi128(self, key) }
    fn decrypt(self, key: Self) -> Self { _mm256_aesdec_epi128(self, key) }
    fn decrypt_last(self, key: Self) -> Self { _mm256_aesdeclast_epi128(self, key) }
    fn behind(self, before: Self) -> Self { _mm256_permute2x128_si256::<0x21>(before, self) }
    fn reversed(self) -> Self { _mm256_shuffle_epi8(self, Self::broadcast(reversal())) }
    fn counted_on(self) -> Self { _mm256_add_epi64(self, _mm256_set_epi64x(0, 2, 0, 2)) }
    fn tweaked_on(self) -> Self {
        let out = _mm256_srli_epi64::<62>(self);
        let low = _mm256_clmulepi64_epi128::<0x01>(out, _mm256_set1_epi64x(0x87));
        let moved =
            _mm256_xor_si256(_mm256_slli_epi64::<2>(self), _mm256_bslli_epi128::<8>(out));
        _mm256_xor_si256(moved, low)
    }
}

vector! {
    __m512i, 4;
    fn load(from: *const u8) -> Self { _mm512_loadu_si512(from.cast()) }
    fn store(self, to: *mut u8) { _mm512_storeu_si512(to.cast(), self) }
    fn broadcast(block: __m128i) -> Self { _mm512_broadcast_i32x4(block) }
    fn first(self) -> __m128i { _mm512_castsi512_si128(self) }
    fn last(self) -> __m128i { _mm512_extracti32x4_epi32::<3>(self) }
    fn zero() -> Self { _mm512_setzero_si512() }
    fn xor(self, other: Self) -> Self { _mm512_xor_si512(self, other) }
    fn encrypt(self, key: Self) -> Self { _mm512_aesenc_epi128(self, key) }
    fn encrypt_last(self, key: Self) -> Self { _mm512_aesenclast_epi128(self, key) }
    fn decrypt(self, key: Self) -> Self { _mm512_aesdec_epi128(self, key) }
    fn decrypt_last(self, key: Self) -> Self { _mm512_aesdeclast_epi128(self, key) }
    fn behind(self, before: Self) -> Self { _mm512_alignr_epi64::<6>(self, before) }
    fn reversed(self) -> Self { _mm512_shuffle_epi8(self, Self::broadcast(reversal())) }
    fn counted_on(self) -> Self { _mm512_add_epi64(self, _mm512_set_epi64(0, 4, 0, 4, 0, 4, 0, 4)) }
    fn tweaked_on(self) -> Self {
        let out = _mm512_srli_epi64::<60>(self);
        let low = _mm512_clmulepi64_epi128::<0x01>(out, _mm512_set1_epi64(0x87));
        let moved = _mm512_slli_epi64::<4>(self);
        // 0x96 is the truth table of a ^ b ^ c.
        _mm512_ternarylogic_epi64::<0x96>(moved, _mm512_bslli_epi128::<8>(out), low)
    }
}

/// Returns a shuffle that reverses the bytes of a block.
#[inline(always)]
unsafe fn reversal() -> __m128i {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) }
}
