//! The end of a text, less than a group, in its own buffer, followed by zeros.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{GROUP, VECTOR};
use crate::aes_gcm::ghash::{BLOCK, GROUP_BYTES};
use crate::aes_gcm::short;

/// A buffer of one group. Invariant: the bytes after the text are zero whenever the buffer is
/// hashed.
#[repr(align(32))]
pub(super) struct Part([u8; GROUP_BYTES]);

impl Part {
    /// Loads the `left` bytes at `from`. `SEAL` is as in [`super::Pass::rounds_beside`].
    ///
    /// # Safety
    /// The bytes are readable and shorter than a group.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) unsafe fn load<const SEAL: bool>(from: *const u8, left: usize) -> Self {
        let mut part = Self([0; GROUP_BYTES]);
        let whole = left / VECTOR;
        for i in 0..whole.min(GROUP) {
            let at = i * VECTOR;
            // SAFETY: a whole vector is left at `at`, and the buffer has room for a group of
            // vectors.
            unsafe {
                let vector = _mm256_loadu_si256(from.add(at).cast());
                _mm256_store_si256(part.start_mut().add(at).cast(), vector);
            }
        }
        if !left.is_multiple_of(VECTOR) {
            let at = whole * VECTOR;
            // SAFETY: less than a vector is left at `at`, which is the place of a vector in the
            // buffer.
            unsafe {
                let vector = load_short(from.add(at), left - at);
                _mm256_store_si256(part.start_mut().add(at).cast(), vector);
            }
        }
        part
    }

    /// Writes the first `left` bytes to `to`, and clears the bytes after them in the buffer, which
    /// the rounds have changed.
    ///
    /// # Safety
    /// The bytes are writable and shorter than a group.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) unsafe fn store<const SEAL: bool>(&mut self, to: *mut u8, left: usize) {
        let whole = left / VECTOR;
        for i in 0..whole.min(GROUP) {
            let at = i * VECTOR;
            // SAFETY: a whole vector is left at `at`, and the buffer has room for a group of
            // vectors.
            unsafe {
                let vector = _mm256_load_si256(self.start().add(at).cast());
                _mm256_storeu_si256(to.add(at).cast(), vector);
            }
        }
        if !left.is_multiple_of(VECTOR) {
            let at = whole * VECTOR;
            // SAFETY: less than a vector is left at `at`, which is the place of a vector in the
            // buffer.
            unsafe {
                let place: *mut __m256i = self.start_mut().add(at).cast();
                let vector = store_short(to.add(at), left - at, _mm256_load_si256(place));
                _mm256_store_si256(place, vector);
            }
        }
    }

    pub(super) fn start(&self) -> *const u8 {
        self.0.as_ptr()
    }

    pub(super) fn start_mut(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
}

/// Loads the `n` bytes at `from`, followed by zeros.
///
/// # Safety
/// The bytes are readable and shorter than a vector.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn load_short(from: *const u8, n: usize) -> __m256i {
    // SAFETY: every read is within the `n` bytes.
    unsafe {
        if n < BLOCK {
            return _mm256_zextsi128_si256(register(short::load(from, n)));
        }
        let low = _mm_loadu_si128(from.cast());
        _mm256_set_m128i(register(short::load(from.add(BLOCK), n - BLOCK)), low)
    }
}

/// Writes the first `n` bytes of `vector` to `to`. Returns them, followed by zeros.
///
/// # Safety
/// The bytes are writable and shorter than a vector.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn store_short(to: *mut u8, n: usize, vector: __m256i) -> __m256i {
    let low = _mm256_castsi256_si128(vector);
    // SAFETY: every write is within the `n` bytes.
    unsafe {
        if n < BLOCK {
            return _mm256_zextsi128_si256(register(short::store(to, n, number(low))));
        }
        _mm_storeu_si128(to.cast(), low);
        let high = number(_mm256_extracti128_si256::<1>(vector));
        _mm256_set_m128i(register(short::store(to.add(BLOCK), n - BLOCK, high)), low)
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn register(number: u128) -> __m128i {
    _mm_set_epi64x((number >> 64) as i64, number as i64)
}

#[target_feature(enable = "avx2")]
#[inline]
fn number(register: __m128i) -> u128 {
    let low = _mm_cvtsi128_si64(register) as u64;
    let high = _mm_extract_epi64::<1>(register) as u64;
    u128::from(high) << 64 | u128::from(low)
}
