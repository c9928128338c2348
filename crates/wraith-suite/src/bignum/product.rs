//! Products of limbs. The time depends only on lengths.
//!
//! Own code multiplies short factors, AWS-LC long ones.

use wraith_aws_lc::bignum as aws;
use zeroize::Zeroizing;

use crate::Backend;

/// Limbs of the shorter factor below which rows are faster at any length.
const SHORT: usize = 9;
/// Limbs of the longer factor from which AWS-LC is faster than rows.
const LIBRARY: usize = 64;

/// Returns the implementation of products of two numbers of `limbs` limbs.
pub(super) fn backend(limbs: usize) -> Backend {
    match limbs {
        ..LIBRARY => Backend::Own("portable".into()),
        _ => Backend::AwsLc,
    }
}

/// Sets `out` to `a · b`. `out` is as long as both factors together, and neither is empty. Returns
/// `None` if AWS-LC has no memory.
pub(super) fn multiply(out: &mut [u64], a: &[u64], b: &[u64]) -> Option<()> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    match (long.len(), short.len()) {
        (4, 4) => columns::<4>(out, long, short),
        (8, 8) => columns::<8>(out, long, short),
        (..LIBRARY, _) | (_, ..SHORT) => rows(out, long, short),
        _ => out.copy_from_slice(&Zeroizing::new(aws::multiply(long, short)?)),
    }
    Some(())
}

/// Multiplies row by row, two limbs of `b` at a time: the carries of one row are added beside those
/// of the other, and each limb of `out` is read and written once for both.
fn rows(out: &mut [u64], a: &[u64], b: &[u64]) {
    out.fill(0);
    let (pairs, last) = b.as_chunks::<2>();
    for (i, &[first, second]) in pairs.iter().enumerate() {
        let (sums, end) = out[2 * i..].split_at_mut(a.len());
        let (mut carries, mut before) = ([0; 2], 0_u64);
        for (sum, &limb) in sums.iter_mut().zip(a) {
            (*sum, carries[0]) = limb.carrying_mul_add(first, *sum, carries[0]);
            (*sum, carries[1]) = before.carrying_mul_add(second, *sum, carries[1]);
            before = limb;
        }
        (end[0], end[1]) = before.carrying_mul_add(second, carries[0], carries[1]);
    }
    if let [factor] = last {
        let (sums, end) = out[b.len() - 1..].split_at_mut(a.len());
        for (sum, &limb) in sums.iter_mut().zip(a) {
            (*sum, end[0]) = limb.carrying_mul_add(*factor, *sum, end[0]);
        }
    }
}

/// Multiplies column by column, for a constant length, so that the loops are unrolled. Each limb of
/// `out` is a sum of products of limbs, in an accumulator of three limbs.
fn columns<const N: usize>(out: &mut [u64], a: &[u64], b: &[u64]) {
    let (Some(a), Some(b)) = (a.first_chunk::<N>(), b.first_chunk::<N>()) else { return };
    let Some((low, rest)) = out.split_first_chunk_mut::<N>() else { return };
    let Some(high) = rest.first_chunk_mut::<N>() else { return };
    let mut sum = Sum::default();
    for column in 0..N {
        for index in 0..=column {
            sum.add(a[index], b[column - index]);
        }
        low[column] = sum.shift();
    }
    for column in 0..N {
        for index in column + 1..N {
            sum.add(a[index], b[N + column - index]);
        }
        high[column] = sum.shift();
    }
}

/// A sum of products.
#[derive(Default)]
struct Sum {
    low: u128,
    high: u64,
}

impl Sum {
    #[inline(always)]
    fn add(&mut self, a: u64, b: u64) {
        let (low, is_carried) = self.low.overflowing_add(u128::from(a) * u128::from(b));
        self.low = low;
        self.high += u64::from(is_carried);
    }

    /// Returns the lowest limb and shifts the others down.
    #[inline(always)]
    fn shift(&mut self) -> u64 {
        let lowest = self.low as u64;
        self.low = self.low >> 64 | u128::from(self.high) << 64;
        self.high = 0;
        lowest
    }
}

/// Subtracts `b` from `a` and returns the borrow. `b` is not longer.
pub(super) fn subtract_assign(a: &mut [u64], b: &[u64]) -> u64 {
    assign(a, b, u64::borrowing_sub)
}

/// Adds `b` to `a` and returns the carry. `b` is not longer.
pub(super) fn add_assign(a: &mut [u64], b: &[u64]) -> u64 {
    assign(a, b, u64::carrying_add)
}

#[inline(always)]
fn assign(a: &mut [u64], b: &[u64], step: impl Fn(u64, u64, bool) -> (u64, bool)) -> u64 {
    let (low, high) = a.split_at_mut(b.len());
    let mut carry = false;
    for (a, &b) in low.iter_mut().zip(b) {
        (*a, carry) = step(*a, b, carry);
    }
    for a in high {
        (*a, carry) = step(*a, 0, carry);
    }
    u64::from(carry)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns limbs, of which a quarter are all zeros and a quarter all ones.
    fn limbs(count: usize, state: &mut u64) -> Vec<u64> {
        let next = || {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            match *state >> 62 {
                0 => 0,
                1 => u64::MAX,
                _ => *state ^ *state >> 29,
            }
        };
        std::iter::repeat_with(next).take(count).collect()
    }

    #[test]
    fn every_implementation_makes_the_products_of_aws_lc() {
        let mut state = 1;
        for (long, short) in (1..=70).flat_map(|long| (1..=long).map(move |short| (long, short))) {
            let (a, b) = (limbs(long, &mut state), limbs(short, &mut state));
            let expected = aws::multiply(&b, &a).unwrap();
            for multiply in [rows as fn(&mut [u64], &[u64], &[u64]), |out, a, b| {
                multiply(out, b, a).unwrap();
            }] {
                let mut product = vec![7; long + short];
                multiply(&mut product, &a, &b);
                assert_eq!(product, expected, "{long} by {short}");
            }
        }
    }
}
