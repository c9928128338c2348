//! Products of big integers with AVX-512 IFMA, of up to 64 limbs of 64 bits each.
//!
//! Factors are split into limbs of 52 bits, eight to a vector. Each step adds one factor times a
//! limb of the other. It then removes the lowest limb of the sum and shifts the rest down by one. A
//! lane accumulates two numbers of 52 bits in each of at most 80 steps, so carries can wait for the
//! end. The time depends only on lengths.
//!
//! Expected on Zen 4, at one multiply-add of 512 bits per cycle: 2 cycles for every vector and
//! step. That is 400 cycles for two factors of 2048 bits, plus a hundred or more for the splitting.
//! The portable twin is [`by_columns`].
#![allow(unsafe_code)]

/// Maximum length of a factor in limbs of 64 bits.
pub const LIMBS_MAX: usize = 64;
/// Returns whether the kernel of [`multiply`] may be used.
#[must_use]
pub fn is_available() -> bool {
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    {
        x86::KERNEL.is_available()
    }
    #[cfg(not(all(target_arch = "x86_64", feature = "simd")))]
    {
        false
    }
}

/// Sets `out` to `a · b`. `out` is as long as both factors together.
///
/// Returns `false`, and leaves `out` unchanged, without the kernel or if a factor has more than
/// [`LIMBS_MAX`] limbs.
#[must_use]
pub fn multiply(out: &mut [u64], a: &[u64], b: &[u64]) -> bool {
    let is_ours = a.len().max(b.len()) <= LIMBS_MAX && is_available();
    #[cfg(all(target_arch = "x86_64", feature = "simd"))]
    if is_ours {
        // SAFETY: the kernel is available, so the processor has the instructions.
        unsafe { x86::multiply(out, a, b) };
    }
    #[cfg(not(all(target_arch = "x86_64", feature = "simd")))]
    let _ = out;
    is_ours
}

/// The product by columns: the portable twin.
pub fn by_columns(out: &mut [u64], a: &[u64], b: &[u64]) {
    out.fill(0);
    for (i, x) in a.iter().enumerate() {
        let mut carry = 0;
        for (j, y) in b.iter().enumerate() {
            (out[i + j], carry) = x.carrying_mul_add(*y, out[i + j], carry);
        }
        out[i + b.len()] = carry;
    }
}

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) mod x86 {
    use std::arch::x86_64::*;

    use zeroize::Zeroizing;

    use super::by_columns;
    use crate::detect::{Kernel, Purpose, needs};
    use crate::self_test::Inputs;

    /// Bits of an inner limb.
    const LIMB_BITS: usize = 52;
    const LIMB_MASK: i64 = (1 << LIMB_BITS) - 1;
    /// Size of eight inner limbs in bytes.
    const VECTOR_BYTES: usize = LIMB_BITS;

    pub(crate) static KERNEL: Kernel =
        Kernel::new("products of big integers", needs::IFMA_VBMI, Purpose::Keys, || {
            let mut inputs = Inputs::new();
            let (a, b) = (inputs.words::<17>(), inputs.words::<16>());
            [(17, 16), (13, 16), (8, 1), (1, 1), (6, 7)].into_iter().all(|(m, n)| {
                let [mut out, mut expected] = [[0; 33]; 2];
                let (out, expected) = (&mut out[..m + n], &mut expected[..m + n]);
                by_columns(expected, &a[..m], &b[..n]);
                // SAFETY: the processor has the instructions when a self-test runs.
                unsafe { multiply(out, &a[..m], &b[..n]) };
                out == expected
            })
        });

    /// Computes [`multiply`](super::multiply).
    #[target_feature(enable = "avx512f,avx512bw,avx512ifma,avx512vbmi")]
    pub(super) fn multiply(out: &mut [u64], a: &[u64], b: &[u64]) {
        let (a, b) = if a.len() >= b.len() { (a, b) } else { (b, a) };
        match vectors(a) {
            0..=2 => multiply_ifma::<2>(out, a, b),
            3 => multiply_ifma::<3>(out, a, b),
            4 => multiply_ifma::<4>(out, a, b),
            5 => multiply_ifma::<5>(out, a, b),
            6..=8 => multiply_ifma::<8>(out, a, b),
            _ => multiply_ifma::<10>(out, a, b),
        }
    }

    fn vectors(limbs: &[u64]) -> usize {
        (8 * limbs.len()).div_ceil(VECTOR_BYTES)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512ifma,avx512vbmi")]
    fn multiply_ifma<const V: usize>(out: &mut [u64], a: &[u64], b: &[u64]) {
        let zero = _mm512_setzero_si512();
        let mut factor = [zero; V];
        for (index, factor) in factor.iter_mut().enumerate() {
            *factor = cut(a, index);
        }
        let mut sum = [zero; V];
        let mut carries = Carries { below: zero, carry: 0 };
        let mut limbs = Zeroizing::new([0; 8]);
        let mut lowest = Zeroizing::new([0; 8]);
        for block in 0..vectors(b) {
            // SAFETY: `limbs` is 64 bytes.
            unsafe { _mm512_storeu_si512(limbs.as_mut_ptr().cast(), cut(b, block)) };
            for (&limb, lowest) in limbs.iter().zip(lowest.iter_mut()) {
                let limb = _mm512_set1_epi64(limb);
                let mut low = _mm512_madd52lo_epu64(sum[0], factor[0], limb);
                *lowest = _mm_cvtsi128_si64(_mm512_castsi512_si128(low));
                for v in 1..V {
                    let high = _mm512_madd52lo_epu64(sum[v], factor[v], limb);
                    let moved = _mm512_alignr_epi64(high, low, 1);
                    sum[v - 1] = _mm512_madd52hi_epu64(moved, factor[v - 1], limb);
                    low = high;
                }
                let moved = _mm512_alignr_epi64(zero, low, 1);
                sum[V - 1] = _mm512_madd52hi_epu64(moved, factor[V - 1], limb);
            }
            // SAFETY: `lowest` is 64 bytes.
            let lanes = unsafe { _mm512_loadu_si512(lowest.as_ptr().cast()) };
            join(out, block, carries.resolve(lanes));
        }
        for (index, lanes) in sum.into_iter().enumerate() {
            join(out, vectors(b) + index, carries.resolve(lanes));
        }
    }

    /// Returns a mask of the bytes in vector `index` of a number of `bytes` bytes.
    fn mask(bytes: usize, index: usize) -> __mmask64 {
        let count = bytes.saturating_sub(index * VECTOR_BYTES).min(VECTOR_BYTES);
        (1 << count) - 1
    }

    /// Returns eight limbs of 52 bits: limb `j` begins at byte 6.5 · j.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn cut(limbs: &[u64], index: usize) -> __m512i {
        const BYTES: [u8; 64] = {
            let mut bytes = [0; 64];
            let mut at = 0;
            while at < 64 {
                bytes[at] = (at / 8 * 13 / 2 + at % 8) as u8;
                at += 1;
            }
            bytes
        };
        let kept = mask(8 * limbs.len(), index);
        let start = limbs.as_ptr().cast::<i8>().wrapping_add(index * VECTOR_BYTES);
        // SAFETY: the mask selects only bytes of `limbs`, and `BYTES` has 64 bytes.
        let (bytes, order) = unsafe {
            (_mm512_maskz_loadu_epi8(kept, start), _mm512_loadu_si512(BYTES.as_ptr().cast()))
        };
        let spread = _mm512_permutexvar_epi8(order, bytes);
        let shifted = _mm512_srlv_epi64(spread, _mm512_set_epi64(4, 0, 4, 0, 4, 0, 4, 0));
        _mm512_and_si512(shifted, _mm512_set1_epi64(LIMB_MASK))
    }

    /// Writes eight limbs of 52 bits to their place in `out`. Limbs beyond its end are zero and are
    /// dropped.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn join(out: &mut [u64], index: usize, limbs: __m512i) {
        /// Two limbs are 13 bytes of 16.
        const BYTES: [u8; 64] = {
            let mut bytes = [0; 64];
            let mut at = 0;
            while at < VECTOR_BYTES {
                bytes[at] = (at / 13 * 16 + at % 13) as u8;
                at += 1;
            }
            bytes
        };
        let swapped = _mm512_shuffle_epi32(limbs, _MM_PERM_BADC);
        let pairs = _mm512_or_si512(
            _mm512_srlv_epi64(limbs, _mm512_set_epi64(12, 0, 12, 0, 12, 0, 12, 0)),
            _mm512_sllv_epi64(swapped, _mm512_set_epi64(64, 52, 64, 52, 64, 52, 64, 52)),
        );
        let kept = mask(8 * out.len(), index);
        let start = out.as_mut_ptr().cast::<i8>().wrapping_add(index * VECTOR_BYTES);
        // SAFETY: the mask selects only bytes of `out`, and `BYTES` has 64 bytes.
        unsafe {
            let order = _mm512_loadu_si512(BYTES.as_ptr().cast());
            _mm512_mask_storeu_epi8(start, kept, _mm512_permutexvar_epi8(order, pairs));
        }
    }

    /// The carries from vector to vector.
    struct Carries {
        /// The upper bits of the lanes of the previous vector.
        below: __m512i,
        carry: u16,
    }

    impl Carries {
        /// Normalizes sums of up to 64 bits to limbs of 52 bits.
        #[target_feature(enable = "avx512f")]
        fn resolve(&mut self, lanes: __m512i) -> __m512i {
            let mask = _mm512_set1_epi64(LIMB_MASK);
            let high = _mm512_srli_epi64(lanes, 52);
            let moved = _mm512_alignr_epi64(high, self.below, 7);
            self.below = high;
            // As in the products of `montgomery`, at most one bit is left to carry from each lane.
            let lanes = _mm512_add_epi64(_mm512_and_si512(lanes, mask), moved);
            let makes = u16::from(_mm512_cmpgt_epu64_mask(lanes, mask));
            let hands_on = u16::from(_mm512_cmpeq_epu64_mask(lanes, mask));
            let run = (makes << 1 | self.carry) + hands_on;
            self.carry = run >> 8;
            let gets = (run ^ hands_on) as u8;
            let lanes = _mm512_mask_add_epi64(lanes, gets, lanes, _mm512_set1_epi64(1));
            _mm512_and_si512(lanes, mask)
        }
    }
}
