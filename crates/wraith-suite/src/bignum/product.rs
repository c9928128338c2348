//! Products of limbs. The time depends only on lengths.
//!
//! - Short factors: column by column.
//! - From 9 limbs on: the AVX-512 kernel, if available.
//! - Long factors: three products of half the size (Karatsuba).

use wraith_kernels::product as kernel;
use zeroize::Zeroizing;

/// Limbs of the shorter factor from which the kernel is faster than columns.
const KERNEL: usize = 9;
/// Limbs of the factors from which three products of half the length are faster than columns.
const KARATSUBA: usize = 32;

/// Returns whether the kernel multiplies factors of `limbs` limbs.
pub(super) fn has_kernel(limbs: usize) -> bool {
    limbs >= KERNEL && kernel::is_available()
}

/// Sets `out` to `a · b`. `out` is as long as both factors together, and neither is empty.
pub(crate) fn multiply(out: &mut [u64], a: &[u64], b: &[u64]) {
    let most = if kernel::is_available() { kernel::LIMBS_MAX } else { KARATSUBA - 1 };
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    if long.len() <= most || short.len() < KERNEL {
        return whole(out, long, short);
    }
    let mut scratch = Zeroizing::new(vec![0; 4 * short.len()]);
    if long.len() == short.len() {
        return halves(out, long, short, &mut scratch, most);
    }
    // Pieces as long as the shorter factor, and a shorter rest.
    out.fill(0);
    let mut product = Zeroizing::new(vec![0; 2 * short.len()]);
    for (index, piece) in long.chunks(short.len()).enumerate() {
        let product = &mut product[..piece.len() + short.len()];
        if piece.len() == short.len() {
            halves(product, piece, short, &mut scratch, most);
        } else {
            whole(product, short, piece);
        }
        let carry = add_assign(&mut out[index * short.len()..], product);
        debug_assert_eq!(carry, 0);
    }
}

/// Multiplies without splitting.
fn whole(out: &mut [u64], a: &[u64], b: &[u64]) {
    if a.len().min(b.len()) < KERNEL || !kernel::multiply(out, a, b) {
        columns(out, a, b);
    }
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

/// Multiplies factors of equal length by halves. `scratch` has four times that length. Numbers of
/// up to `most` limbs are not split.
fn halves(out: &mut [u64], a: &[u64], b: &[u64], scratch: &mut [u64], most: usize) {
    let len = a.len();
    if len <= most || len % 2 == 1 {
        return whole(out, a, b);
    }
    let half = len / 2;
    let ((a_low, a_high), (b_low, b_high)) = (a.split_at(half), b.split_at(half));
    let (differences, scratch) = scratch.split_at_mut(len);
    let (a_difference, b_difference) = differences.split_at_mut(half);
    let a_negative = difference(a_difference, a_low, a_high);
    let b_negative = difference(b_difference, b_high, b_low);
    let (middle, scratch) = scratch.split_at_mut(len);
    halves(middle, a_difference, b_difference, scratch, most);
    let (low, high) = out.split_at_mut(len);
    halves(low, a_low, b_low, scratch, most);
    halves(high, a_high, b_high, scratch, most);
    // (a0 - a1)(b1 - b0) + a0·b0 + a1·b1 is the middle part. It is not negative, and has one bit
    // more than `len` limbs.
    let is_negative = a_negative ^ b_negative;
    let mut top = negate_if(middle, is_negative);
    top = top.wrapping_add(add_assign(middle, low)).wrapping_add(add_assign(middle, high));
    let carry = add_assign(&mut out[half..half + len], middle).wrapping_add(top);
    let carry = add_assign(&mut out[half + len..], &[carry]);
    debug_assert_eq!(carry, 0);
}

/// Sets `out` to `|a - b|`. Returns all ones if the difference is negative, else 0.
fn difference(out: &mut [u64], a: &[u64], b: &[u64]) -> u64 {
    let borrow = subtract(out, a, b);
    let mask = 0_u64.wrapping_sub(borrow);
    negate_if(out, mask);
    mask
}

/// Negates `number` (two's complement) if `mask` is all ones. Returns the limb that follows:
/// `mask`, or 0 if the number is 0.
fn negate_if(number: &mut [u64], mask: u64) -> u64 {
    let mut carry = mask & 1;
    for limb in number {
        let (sum, is_carried) = (*limb ^ mask).overflowing_add(carry);
        (*limb, carry) = (sum, u64::from(is_carried));
    }
    mask.wrapping_add(carry)
}

/// Subtracts `b` from `a` and returns the borrow. `b` is not longer.
pub(crate) fn subtract_assign(a: &mut [u64], b: &[u64]) -> u64 {
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

/// Sets `out` to `a - b` and returns the borrow. All have the same length.
fn subtract(out: &mut [u64], a: &[u64], b: &[u64]) -> u64 {
    let mut borrow = false;
    for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
        (*out, borrow) = a.borrowing_sub(b, borrow);
    }
    u64::from(borrow)
}

/// Adds `b` to `a` and returns the carry. `b` is not longer.
pub(crate) fn add_assign(a: &mut [u64], b: &[u64]) -> u64 {
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
    fn kernel_and_halves_make_the_products_that_columns_make() {
        let mut state = 1;
        for (long, short) in (1..=64).flat_map(|long| (1..=long).map(move |short| (long, short))) {
            let (a, b) = (limbs(long, &mut state), limbs(short, &mut state));
            let [mut slow, mut fast] = [0, 7].map(|limb| vec![limb; long + short]);
            columns(&mut slow, &a, &b);
            if kernel::multiply(&mut fast, &b, &a) {
                assert_eq!(fast, slow, "{long} by {short}");
            }
            if long == short {
                fast.fill(7);
                halves(&mut fast, &a, &b, &mut vec![0; 4 * long], 3);
                assert_eq!(fast, slow, "{long} by {short}");
            }
        }
        assert!(kernel::is_available() || !kernel::multiply(&mut [0; 2], &[1], &[1]));
    }
}
