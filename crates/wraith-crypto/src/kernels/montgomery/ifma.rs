//! Almost-Montgomery products with AVX-512 IFMA: `a·b / 2^(52·steps) mod n`, below 2n for factors below 2n.
//!
//! Numbers are vectors of eight limbs of 52 bits. Each step takes one limb of `b`: it adds `a` times the limb and the multiple of `n` that
//! clears the lowest limb of the sum, and moves the sum down by one limb. A lane takes four numbers of 52 bits in each of at most 160 steps
//! and so stays below 2^62; carries are resolved once, at the end (Gueron, Krasnov: "Software implementation of modular exponentiation,
//! using advanced vector instructions architectures", 2012). The multiple depends on the lowest limb of the step before, which is the
//! critical path: what the lowest vector gets from `a` is added one step early, and nothing else waits for it.
//!
//! Expected on Zen 4, one multiply-add of 512 bits a cycle: 4 cycles for each of `steps · V`, thus 0.8–0.9 thousand cycles for 2048 bits and
//! 13 thousand for 8192.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{LIMB_MASK, Lanes};

/// Whether the processor has what the functions here need.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma")
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

/// `out = a · b / 2^(52·steps)` modulo `n`, where `n · n0 = -1` modulo 2^52. `out`, `a` and `b` are below `2n`, and `4n < 2^(52·steps)`.
/// `UNIT` says that `n0` is 1.
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
        // The multiply-add reads the low 52 bits of its factors only.
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

/// Limbs of 52 bits again, from sums of up to 64 bits. The number itself has no more than `8 · V` limbs.
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
        // At most 2^52 + 2^12 - 2: what is left to carry is one bit each. A lane makes a carry, or hands one on if it is all ones: an
        // addition of the two masks lets the carries run.
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

/// Of eight numbers side by side, as [`eight`](super::eight) has them, `a² / 2^(52·L)` modulo `n` if it is to `SQUARE`, else
/// `a / 2^(52·L)`: at most `n` more than the quotient without the remainder, and with limbs of 52 bits. `m` is memory.
#[target_feature(enable = "avx512f,avx512ifma")]
fn reduce_eight_ifma<const L: usize, const SQUARE: bool>(
    out: &mut [Lanes; L],
    a: &[Lanes; L],
    n: &[Lanes; L],
    n0: &Lanes,
    m: &mut [Lanes; L],
) {
    let zero = _mm512_setzero_si512();
    let mask = _mm512_set1_epi64(LIMB_MASK.cast_signed());
    let n0 = load(n0);
    // What the columns so far leave to the next one.
    let mut carried = zero;
    for column in 0..2 * L - 1 {
        let first = (column + 1).saturating_sub(L);
        let [mut low, mut high, mut low_n, mut high_n] = [zero; 4];
        if SQUARE {
            let half = column.div_ceil(2);
            for (x, y) in a[first..half].iter().zip(a[..=column - first].iter().rev()) {
                let (x, y) = (load(x), load(y));
                low = _mm512_madd52lo_epu64(low, x, y);
                high = _mm512_madd52hi_epu64(high, x, y);
            }
            (low, high) = (_mm512_add_epi64(low, low), _mm512_add_epi64(high, high));
            if column % 2 == 0 {
                let x = load(&a[half]);
                low = _mm512_madd52lo_epu64(low, x, x);
                high = _mm512_madd52hi_epu64(high, x, x);
            }
        } else if column < L {
            low = load(&a[column]);
        }
        let known = column.min(L);
        for (x, y) in m[first..known].iter().zip(n[..=column - first].iter().rev()) {
            let (x, y) = (load(x), load(y));
            low_n = _mm512_madd52lo_epu64(low_n, x, y);
            high_n = _mm512_madd52hi_epu64(high_n, x, y);
        }
        let mut sum = _mm512_add_epi64(_mm512_add_epi64(low, low_n), carried);
        if column < L {
            let (x, y) = (_mm512_madd52lo_epu64(zero, sum, n0), load(&n[0]));
            store(&mut m[column], x);
            sum = _mm512_madd52lo_epu64(sum, x, y);
            high_n = _mm512_madd52hi_epu64(high_n, x, y);
        } else {
            store(&mut out[column - L], _mm512_and_si512(sum, mask));
        }
        carried = _mm512_add_epi64(_mm512_add_epi64(high, high_n), _mm512_srli_epi64(sum, 52));
    }
    store(&mut out[L - 1], carried);
}

/// [`reduce_eight_ifma`], for those who know that the processor has what it takes.
#[inline(always)]
pub(super) fn reduce_eight<const L: usize, const SQUARE: bool>(
    out: &mut [Lanes; L],
    a: &[Lanes; L],
    n: &[Lanes; L],
    n0: &Lanes,
    m: &mut [Lanes; L],
) {
    // SAFETY: the processor has the features, as said above.
    unsafe { reduce_eight_ifma::<L, SQUARE>(out, a, n, n0, m) }
}

/// `out = a · b / 2^(52·steps)` modulo `n`, for those who have a [`Modulus`](super::Modulus), which is proof that the processor has what it takes.
#[inline(always)]
pub(super) fn multiply<const V: usize, const UNIT: bool>(
    out: &mut [Lanes; V],
    a: &[Lanes; V],
    b: &[Lanes; V],
    n: &[Lanes; V],
    n0: u64,
    steps: usize,
) {
    // SAFETY: the processor has the features, as said above.
    unsafe { multiply_ifma::<V, UNIT>(out, a, b, n, n0, steps) }
}

/// Entry `index` of `table`, whose every entry is read; for the same.
#[inline(always)]
pub(super) fn select<const V: usize>(out: &mut [Lanes; V], table: &[[Lanes; V]], index: usize) {
    // SAFETY: as above.
    unsafe { select_avx512(out, table, index) }
}
