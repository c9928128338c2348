//! The products of `ifma`, one limb after another: the reference in its tests.
//!
//! This module is also compiled for targets for which `ifma` cannot be compiled. There it reports
//! itself as unavailable, because AWS-LC is faster.

use super::{LIMB_BITS, LIMB_MASK, Lanes};

/// Sets `out` to `a · b / 2^(52·steps)` modulo `n`, where `n · n0 = -1` modulo 2^52. `out`, `a` and
/// `b` are below `2n`, and `4n < 2^(52·steps)`.
pub(super) fn multiply<const V: usize, const UNIT: bool>(
    out: &mut [Lanes; V],
    a: &[Lanes; V],
    b: &[Lanes; V],
    n: &[Lanes; V],
    n0: u64,
    steps: usize,
) {
    let limbs = |number: &[Lanes; V]| -> Vec<u128> {
        number.iter().flat_map(|lanes| lanes.0).map(u128::from).collect()
    };
    let (a, b, n) = (limbs(a), limbs(b), limbs(n));
    let mut sum = vec![0; 8 * V + 1];
    for b in &b[..steps] {
        sum.iter_mut().zip(&a).for_each(|(sum, a)| *sum += a * b);
        let m = u128::from((sum[0] as u64).wrapping_mul(n0) & LIMB_MASK);
        sum.iter_mut().zip(&n).for_each(|(sum, n)| *sum += n * m);
        let carry = sum[0] >> LIMB_BITS;
        sum.rotate_left(1);
        sum[8 * V] = 0;
        sum[0] += carry;
    }
    let mut carry = 0;
    for (out, sum) in out.iter_mut().flat_map(|lanes| &mut lanes.0).zip(sum) {
        carry += sum;
        *out = carry as u64 & LIMB_MASK;
        carry >>= LIMB_BITS;
    }
}

#[cfg(any(test, not(all(target_arch = "x86_64", feature = "simd"))))]
/// Copies entry `index` of `table` to `out` and reads every entry.
pub(super) fn select<const V: usize>(out: &mut [Lanes; V], table: &[[Lanes; V]], index: usize) {
    *out = [Lanes::default(); V];
    for (number, entry) in table.iter().enumerate() {
        let difference = (number ^ index) as u64;
        let mask =
            std::hint::black_box(((difference | difference.wrapping_neg()) >> 63).wrapping_sub(1));
        for (out, lanes) in out.iter_mut().zip(entry) {
            out.0.iter_mut().zip(lanes.0).for_each(|(out, limb)| *out |= limb & mask);
        }
    }
}
