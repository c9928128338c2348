//! Products of limbs. The time depends only on lengths.
//!
//! Short factors are multiplied column by column, long ones by AWS-LC.

use wraith_aws_lc::bignum as aws;
use zeroize::Zeroizing;

use crate::Backend;

/// Limbs of the shorter factor below which columns are faster at any length.
const SHORT: usize = 9;
/// Limbs of the longer factor from which AWS-LC is faster than columns.
const LIBRARY: usize = 32;

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
    if long.len() < LIBRARY || short.len() < SHORT {
        columns(out, long, short);
    } else {
        out.copy_from_slice(&Zeroizing::new(aws::multiply(long, short)?));
    }
    Some(())
}

/// Multiplies column by column. Each limb of `out` is a sum of products of limbs, in an accumulator
/// of three limbs. This avoids the carry chain of a product by rows.
fn columns(out: &mut [u64], a: &[u64], b: &[u64]) {
    match (a.len(), b.len()) {
        (4, 4) => return columns_of::<4>(out, a, b),
        (8, 8) => return columns_of::<8>(out, a, b),
        (16, 16) => return columns_of::<16>(out, a, b),
        _ => {}
    }
    let mut sum = Sum::default();
    let count = out.len();
    for (column, out) in out.iter_mut().enumerate() {
        let first = (column + 1).saturating_sub(b.len());
        let end = a.len().min(column + 1);
        if column < count - 1 {
            let b = &b[column + 1 - end..=column - first];
            for (a, b) in a[first..end].iter().zip(b.iter().rev()) {
                sum.add(*a, *b);
            }
        }
        *out = sum.shift();
    }
}

/// Computes [`columns`] for a constant length, so that the loops are unrolled.
fn columns_of<const N: usize>(out: &mut [u64], a: &[u64], b: &[u64]) {
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
    let (low, high) = a.split_at_mut(b.len());
    let mut borrow = false;
    for (a, &b) in low.iter_mut().zip(b) {
        (*a, borrow) = a.borrowing_sub(b, borrow);
    }
    for a in high {
        (*a, borrow) = a.borrowing_sub(0, borrow);
    }
    u64::from(borrow)
}

/// Adds `b` to `a` and returns the carry. `b` is not longer.
pub(super) fn add_assign(a: &mut [u64], b: &[u64]) -> u64 {
    let (low, high) = a.split_at_mut(b.len());
    let mut carry = false;
    for (a, &b) in low.iter_mut().zip(b) {
        (*a, carry) = a.carrying_add(b, carry);
    }
    for a in high {
        (*a, carry) = a.carrying_add(0, carry);
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
    fn every_implementation_makes_the_products_that_columns_make() {
        let mut state = 1;
        for (long, short) in (1..=70).flat_map(|long| (1..=long).map(move |short| (long, short))) {
            let (a, b) = (limbs(long, &mut state), limbs(short, &mut state));
            let [mut slow, mut fast] = [0, 7].map(|limb| vec![limb; long + short]);
            columns(&mut slow, &a, &b);
            assert_eq!(aws::multiply(&b, &a).unwrap(), slow, "{long} by {short}");
            multiply(&mut fast, &b, &a).unwrap();
            assert_eq!(fast, slow, "{long} by {short}");
        }
    }
}
