//! Almost-Montgomery products with AVX-512 IFMA: `a·b / 2^(52·steps) mod n`, below 2n for factors
//! below 2n.
//!
//! Numbers are vectors of eight limbs of 52 bits. Each step processes one limb of `b`:
//!
//! 1. It adds `a` times the limb.
//! 2. It adds the multiple of `n` that clears the lowest limb of the sum.
//! 3. It shifts the sum down by one limb.
//!
//! A lane accumulates four numbers of 52 bits in each of at most 160 steps and so stays below 2^62.
//! Carries are resolved once, at the end (Gueron, Krasnov: "Software implementation of modular
//! exponentiation, using advanced vector instructions architectures", 2012).
//!
//! The multiple of `n` depends on the lowest limb of the previous step; that is the critical path.
//! The contribution of `a` to the lowest vector is added one step early, so nothing else lies on
//! that path.
//!
//! Expected on Zen 4, at one multiply-add of 512 bits per cycle: 4 cycles for each step and vector
//! (`steps · V`). That is 0.8–0.9 thousand cycles for 2048 bits and 13 thousand for 8192.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{LIMB_MASK, Lanes, portable};
use crate::detect::{Kernel, Purpose, needs};
use crate::self_test::Inputs;

pub(crate) static KERNEL: Kernel =
    Kernel::new("powers modulo a number", needs::IFMA, Purpose::Keys, || {
        self_test::<3, false>() && self_test::<3, true>() && self_test::<5, true>()
    });

fn self_test<const V: usize, const UNIT: bool>() -> bool {
    let steps = 8 * V - 1;
    let mut inputs = Inputs::new();
    let mut number = || {
        let mut number = [Lanes::default(); V];
        for (index, limb) in number.iter_mut().flat_map(|lanes| &mut lanes.0).enumerate() {
            // Below n, and 4n below 2^(52·steps).
            *limb = if index < steps { inputs.word() & (LIMB_MASK >> 3) } else { 0 };
        }
        number
    };
    let (a, b, mut n) = (number(), number(), number());
    n[(steps - 1) / 8].0[(steps - 1) % 8] = LIMB_MASK >> 2;
    n[0].0[0] = if UNIT { LIMB_MASK } else { n[0].0[0] | 1 };
    let n0 = (0..5).fold(n[0].0[0], |inverse, _| {
        inverse.wrapping_mul(2_u64.wrapping_sub(n[0].0[0].wrapping_mul(inverse)))
    });
    let n0 = n0.wrapping_neg() & LIMB_MASK;
    let [mut fast, mut slow] = [[Lanes::default(); V]; 2];
    multiply::<V, UNIT>(&mut fast, &a, &b, &n, n0, steps);
    portable::multiply::<V, UNIT>(&mut slow, &a, &b, &n, n0, steps);
    let mut chosen = [Lanes::default(); V];
    select(&mut chosen, &[a, b, n], 1);
    fast.map(|lanes| lanes.0) == slow.map(|lanes| lanes.0)
        && chosen.map(|lanes| lanes.0) == b.map(|lanes| lanes.0)
}

#[target_feature(enable = "avx512f")]
fn load(lanes: &Lanes) -> __m512i {
    // SAFETY: `lanes` is 64 bytes.
    unsafe { _mm512_loadu_si512(lanes.0.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
fn store(lanes: &mut Lanes, value: __m512i) {
    // SAFETY: `lanes` is 64 bytes.
    unsafe { _mm512_storeu_si512(lanes.0.as_mut_ptr().cast(), value) }
}

/// Sets `out` to `a · b / 2^(52·steps)` modulo `n`, where `n · n0 = -1` modulo 2^52.
///
/// `out`, `a` and `b` are below `2n`, and `4n < 2^(52·steps)`. `UNIT` states that `n0` is 1.
#[target_feature(enable = "avx512f,avx512ifma")]
fn multiply_ifma<const V: usize, const UNIT: bool>(
    out: &mut [Lanes; V],
    a: &[Lanes; V],
    b: &[Lanes; V],
    n: &[Lanes; V],
    n0: u64,
    steps: usize,
) {
    let zero = _mm512_setzero_si512();
    let n0 = _mm512_set1_epi64(n0.cast_signed());
    let mut sum = [zero; V];
    let mut b_now = _mm512_set1_epi64(b[0].0[0].cast_signed());
    sum[0] = _mm512_madd52lo_epu64(zero, load(&a[0]), b_now);
    for step in 0..steps {
        let b_next = b.get((step + 1) / 8).map_or(0, |lanes| lanes.0[(step + 1) % 8]);
        let b_next = _mm512_set1_epi64(b_next.cast_signed());
        // The multiply-add reads only the low 52 bits of its factors.
        let mut m = _mm512_broadcastq_epi64(_mm512_castsi512_si128(sum[0]));
        if !UNIT {
            m = _mm512_madd52lo_epu64(zero, m, n0);
        }
        let (mut a_low, mut n_low) = (load(&a[0]), load(&n[0]));
        let mut low = _mm512_madd52lo_epu64(sum[0], n_low, m);
        let carry = _mm512_maskz_srli_epi64(1, low, 52);
        let early = _mm512_madd52hi_epu64(zero, a_low, b_now);
        let early = _mm512_madd52lo_epu64(early, a_low, b_next);
        let early = _mm512_madd52hi_epu64(early, n_low, m);
        let early = _mm512_add_epi64(early, carry);
        for v in 1..V {
            let (a_high, n_high) = (load(&a[v]), load(&n[v]));
            let high = _mm512_madd52lo_epu64(sum[v], a_high, b_now);
            let high = _mm512_madd52lo_epu64(high, n_high, m);
            let moved = _mm512_alignr_epi64(high, low, 1);
            sum[v - 1] = if v == 1 {
                _mm512_add_epi64(moved, early)
            } else {
                let with_a = _mm512_madd52hi_epu64(moved, a_low, b_now);
                _mm512_madd52hi_epu64(with_a, n_low, m)
            };
            (low, a_low, n_low) = (high, a_high, n_high);
        }
        let moved = _mm512_alignr_epi64(zero, low, 1);
        let with_a = _mm512_madd52hi_epu64(moved, a_low, b_now);
        sum[V - 1] = _mm512_madd52hi_epu64(with_a, n_low, m);
        b_now = b_next;
    }
    resolve(out, &sum);
}

/// Normalizes sums of up to 64 bits to limbs of 52 bits. The number itself has at most `8 · V`
/// limbs.
#[target_feature(enable = "avx512f")]
fn resolve<const V: usize>(out: &mut [Lanes; V], sum: &[__m512i; V]) {
    let mask = _mm512_set1_epi64(LIMB_MASK.cast_signed());
    let one = _mm512_set1_epi64(1);
    let mut below = _mm512_setzero_si512();
    let mut carry_in = 0;
    for (out, &lanes) in out.iter_mut().zip(sum) {
        let high = _mm512_srli_epi64(lanes, 52);
        let moved = _mm512_alignr_epi64(high, below, 7);
        below = high;
        // At most 2^52 + 2^12 - 2, so at most one bit is left to carry from each lane. A lane
        // generates a carry, or propagates one if it is all ones. The addition of the two masks
        // ripples the carries.
        let lanes = _mm512_add_epi64(_mm512_and_si512(lanes, mask), moved);
        let makes = u16::from(_mm512_cmpgt_epu64_mask(lanes, mask));
        let hands_on = u16::from(_mm512_cmpeq_epu64_mask(lanes, mask));
        let run = (makes << 1 | carry_in) + hands_on;
        carry_in = run >> 8;
        let gets = (run ^ hands_on) as u8;
        let lanes = _mm512_mask_add_epi64(lanes, gets, lanes, one);
        store(out, _mm512_and_si512(lanes, mask));
    }
}

#[target_feature(enable = "avx512f")]
fn select_avx512<const V: usize>(out: &mut [Lanes; V], table: &[[Lanes; V]], index: usize) {
    let mut chosen = [_mm512_setzero_si512(); V];
    let wanted = _mm512_set1_epi64(index as i64);
    let mut number = _mm512_setzero_si512();
    for entry in table {
        let mask = _mm512_cmpeq_epu64_mask(number, wanted);
        for (chosen, lanes) in chosen.iter_mut().zip(entry) {
            *chosen = _mm512_mask_mov_epi64(*chosen, mask, load(lanes));
        }
        number = _mm512_add_epi64(number, _mm512_set1_epi64(1));
    }
    for (out, chosen) in out.iter_mut().zip(chosen) {
        store(out, chosen);
    }
}

/// Sets `out` to `a · b / 2^(52·steps)` modulo `n`. Callers have a [`Modulus`](super::Modulus),
/// which proves that the processor has the instructions.
#[inline(always)]
pub(super) fn multiply<const V: usize, const UNIT: bool>(
    out: &mut [Lanes; V],
    a: &[Lanes; V],
    b: &[Lanes; V],
    n: &[Lanes; V],
    n0: u64,
    steps: usize,
) {
    // SAFETY: a `Modulus` exists, so the processor has the features.
    unsafe { multiply_ifma::<V, UNIT>(out, a, b, n, n0, steps) }
}

/// Copies entry `index` of `table` to `out` and reads every entry. Callers have a
/// [`Modulus`](super::Modulus).
#[inline(always)]
pub(super) fn select<const V: usize>(out: &mut [Lanes; V], table: &[[Lanes; V]], index: usize) {
    // SAFETY: a `Modulus` exists, so the processor has the features.
    unsafe { select_avx512(out, table, index) }
}
