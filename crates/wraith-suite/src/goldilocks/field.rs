//! Arithmetic modulo p = 2^448 − 2^224 − 1, in eight limbs of 56 bits.
//!
//! Invariant: limbs are below 2^60. A product has limbs below 2^56 + 2^16. Sums are not reduced, so
//! up to four products may be added or subtracted before the next multiplication; every formula in
//! this module stays below that.

use zeroize::Zeroize;

const LIMBS: usize = 8;
const MASK: u64 = (1 << 56) - 1;

/// 4 p, which keeps differences positive.
const FOUR_P: [u64; LIMBS] = {
    let mut limbs = [4 * MASK; LIMBS];
    limbs[4] = 4 * (MASK - 1);
    limbs
};

/// A number modulo p.
#[derive(Clone, Copy, Debug, Zeroize)]
pub(crate) struct Element([u64; LIMBS]);

impl Element {
    pub(crate) const ZERO: Self = Self::small(0);
    pub(crate) const ONE: Self = Self::small(1);

    pub(crate) const fn small(number: u32) -> Self {
        Self([number as u64, 0, 0, 0, 0, 0, 0, 0])
    }

    /// Returns the number of little-endian `bytes`, which may be p or more.
    pub(crate) fn from_bytes(bytes: &[u8; 56]) -> Self {
        let mut limbs = [0; LIMBS];
        for (limb, bytes) in limbs.iter_mut().zip(bytes.chunks_exact(7)) {
            *limb = bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        }
        Self(limbs)
    }

    /// Returns the little-endian bytes of the number below p.
    pub(crate) fn to_bytes(self) -> [u8; 56] {
        let mut bytes = [0; 56];
        for (bytes, limb) in bytes.chunks_exact_mut(7).zip(self.reduced()) {
            bytes.copy_from_slice(&limb.to_le_bytes()[..7]);
        }
        bytes
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }

    /// Returns the difference. `other` is at most a sum of three products.
    pub(crate) fn sub(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + FOUR_P[i] - other.0[i]))
    }

    pub(crate) fn negated(&self) -> Self {
        Self::ZERO.sub(self)
    }

    /// Returns the product. With a = a₀ + a₁ φ it is a₀ b₀ + a₁ b₁ + φ ((a₀ + a₁)(b₀ + b₁) − a₀
    /// b₀), because φ² = φ + 1.
    #[inline]
    pub(crate) fn mul(&self, other: &Self) -> Self {
        let (a, b) = (&self.0, &other.0);
        let (low_a, high_a) = halves(a);
        let (low_b, high_b) = halves(b);
        let low = half_product(&low_a, &low_b);
        let high = half_product(&high_a, &high_b);
        let both = half_product(&sum(&low_a, &high_a), &sum(&low_b, &high_b));
        Self::joined(&low, &high, &both)
    }

    /// Returns the square.
    #[inline]
    pub(crate) fn square(&self) -> Self {
        let (low, high) = halves(&self.0);
        Self::joined(&half_square(&low), &half_square(&high), &half_square(&sum(&low, &high)))
    }

    /// Multiplies by a number below about 2^20.
    #[inline]
    pub(crate) fn times(&self, number: u32) -> Self {
        carried(std::array::from_fn(|i| u128::from(self.0[i]) * u128::from(number)))
    }

    fn joined(low: &[u128; 7], high: &[u128; 7], both: &[u128; 7]) -> Self {
        let straight: [u128; 7] = std::array::from_fn(|i| low[i] + high[i]);
        let crossed: [u128; 7] = std::array::from_fn(|i| both[i] - low[i]);
        carried(std::array::from_fn(|i| match i {
            0..=2 => straight[i] + crossed[4 + i],
            3 => straight[3],
            4..=6 => straight[i] + crossed[i - 4] + crossed[i],
            _ => crossed[3],
        }))
    }

    /// Returns `self` to the power of 2^`times`.
    pub(crate) fn squared(&self, times: usize) -> Self {
        (0..times).fold(*self, |power, _| power.square())
    }

    /// Returns `self` to the power of 2^`n` − 1.
    fn power_of_ones(&self, n: usize) -> Self {
        let mut power = *self;
        let mut ones = 1;
        for bit in (0..n.ilog2()).rev() {
            power = power.squared(ones).mul(&power);
            ones *= 2;
            if n >> bit & 1 == 1 {
                power = power.square().mul(self);
                ones += 1;
            }
        }
        power
    }

    /// Returns `self` to the power of (p − 3) / 4 = 2^446 − 2^222 − 1.
    pub(crate) fn power_of_root(&self) -> Self {
        let ones = self.power_of_ones(222);
        ones.square().mul(self).squared(223).mul(&ones)
    }

    /// Returns the inverse, or zero for zero.
    pub(crate) fn inverse(&self) -> Self {
        self.power_of_root().squared(2).mul(self)
    }

    /// Returns whether the number is zero.
    pub(crate) fn is_zero(&self) -> bool {
        self.to_bytes().iter().fold(0, |all, byte| all | byte) == 0
    }

    /// Returns whether the number below p is odd.
    pub(crate) fn is_odd(&self) -> bool {
        self.reduced()[0] & 1 == 1
    }

    /// Sets `self` to `other` where `mask` is all ones. Leaves it unchanged where `mask` is zero.
    pub(crate) fn assign_where(&mut self, mask: u64, other: &Self) {
        for (limb, other) in self.0.iter_mut().zip(other.0) {
            *limb ^= mask & (*limb ^ other);
        }
    }

    /// Swaps `a` and `b` where `mask` is all ones.
    pub(crate) fn swap_where(mask: u64, a: &mut Self, b: &mut Self) {
        for (a, b) in a.0.iter_mut().zip(&mut b.0) {
            let change = mask & (*a ^ *b);
            *a ^= change;
            *b ^= change;
        }
    }

    /// Returns the limbs of the number below p.
    fn reduced(&self) -> [u64; LIMBS] {
        let mut limbs = carried(self.0.map(u128::from)).0;
        // The first pass carries at most one out of the last limb. The limbs are then too small for
        // a second such carry.
        for _ in 0..2 {
            let mut carry = 0;
            for limb in &mut limbs {
                *limb += carry;
                carry = *limb >> 56;
                *limb &= MASK;
            }
            limbs[0] += carry;
            limbs[4] += carry;
        }
        // The number is now below 2^448, which is slightly above p, so one subtraction is enough.
        let mut borrow = 0i64;
        let mut less = [0; LIMBS];
        for i in 0..LIMBS {
            let difference = limbs[i] as i64 - (FOUR_P[i] / 4) as i64 + borrow;
            less[i] = difference as u64 & MASK;
            borrow = difference >> 56;
        }
        // All ones if the number was already below p.
        let keep = borrow as u64;
        for i in 0..LIMBS {
            limbs[i] = limbs[i] & keep | less[i] & !keep;
        }
        limbs
    }
}

fn halves(limbs: &[u64; LIMBS]) -> ([u64; 4], [u64; 4]) {
    let [a, b, c, d, e, f, g, h] = *limbs;
    ([a, b, c, d], [e, f, g, h])
}

fn sum(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    std::array::from_fn(|i| a[i] + b[i])
}

#[inline(always)]
fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

#[inline(always)]
fn half_product(a: &[u64; 4], b: &[u64; 4]) -> [u128; 7] {
    let p = |i: usize, j: usize| product(a[i], b[j]);
    [
        p(0, 0),
        p(0, 1) + p(1, 0),
        p(0, 2) + p(1, 1) + p(2, 0),
        p(0, 3) + p(1, 2) + p(2, 1) + p(3, 0),
        p(1, 3) + p(2, 2) + p(3, 1),
        p(2, 3) + p(3, 2),
        p(3, 3),
    ]
}

#[inline(always)]
fn half_square(a: &[u64; 4]) -> [u128; 7] {
    let p = |i: usize, j: usize| product(a[i], a[j]);
    [
        p(0, 0),
        2 * p(0, 1),
        2 * p(0, 2) + p(1, 1),
        2 * (p(0, 3) + p(1, 2)),
        2 * p(1, 3) + p(2, 2),
        2 * p(2, 3),
        p(3, 3),
    ]
}

/// Carries each column, below 2^127, to the next one. The carry out of the last column is worth 1 +
/// φ.
#[inline(always)]
fn carried(mut columns: [u128; LIMBS]) -> Element {
    let mask = u128::from(MASK);
    for i in 0..LIMBS - 1 {
        columns[i + 1] += columns[i] >> 56;
        columns[i] &= mask;
    }
    let top = columns[7] >> 56;
    columns[7] &= mask;
    for i in [0, 4] {
        columns[i] += top;
        columns[i + 1] += columns[i] >> 56;
        columns[i] &= mask;
    }
    Element(columns.map(|column| column as u64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns p, least significant byte first.
    fn p() -> [u8; 56] {
        let mut bytes = [0xff; 56];
        bytes[28] = 0xfe;
        bytes
    }

    fn elements() -> impl Strategy<Value = Element> {
        let bytes = proptest::collection::vec(prop_oneof![Just(0), Just(0xff), any::<u8>()], 56);
        bytes.prop_map(|bytes| Element::from_bytes(&bytes.try_into().unwrap()))
    }

    /// Multiplies bit by bit, with additions only.
    fn slow_product(a: &Element, b: &Element) -> Element {
        let bits = b.to_bytes();
        (0..448).rev().fold(Element::ZERO, |sum, bit| {
            let twice = Element(carried(sum.add(&sum).0.map(u128::from)).0);
            if bits[bit / 8] >> (bit % 8) & 1 == 1 { twice.add(a) } else { twice }
        })
    }

    #[test]
    fn the_multiples_of_p_are_zero_and_its_neighbours_are_not() {
        let mut bytes = p();
        assert!(Element::from_bytes(&bytes).is_zero());
        assert!(Element(FOUR_P).is_zero());
        bytes[0] = 0xfe;
        assert_eq!(Element::from_bytes(&bytes).to_bytes(), bytes, "p − 1");
        assert_eq!(Element::from_bytes(&[0xff; 56]).to_bytes()[28..], {
            let mut phi = [0; 28];
            phi[0] = 1;
            phi
        });
        assert!(Element::ZERO.inverse().is_zero());
    }

    proptest! {
        #[test]
        fn products_are_those_of_the_slow_twin(a in elements(), b in elements()) {
            let expected = slow_product(&a, &b).to_bytes();
            prop_assert_eq!(a.mul(&b).to_bytes(), expected);
            prop_assert_eq!(b.mul(&a).to_bytes(), expected);
            prop_assert_eq!(a.square().to_bytes(), slow_product(&a, &a).to_bytes());
            prop_assert_eq!(a.times(39_081).to_bytes(), a.mul(&Element::small(39_081)).to_bytes());
        }

        #[test]
        fn the_largest_limbs_allowed_do_not_overflow(limbs in any::<[u64; 8]>(), a in elements()) {
            let large = Element(limbs.map(|limb| limb >> 4));
            let small = Element::from_bytes(&large.to_bytes());
            prop_assert_eq!(large.mul(&large).to_bytes(), small.square().to_bytes());
            prop_assert_eq!(large.square().to_bytes(), small.square().to_bytes());
            prop_assert_eq!(large.mul(&a).to_bytes(), small.mul(&a).to_bytes());
        }

        #[test]
        fn a_difference_adds_up_again_and_an_inverse_multiplies_to_one(a in elements(), b in elements()) {
            prop_assert_eq!(a.sub(&b).add(&b).to_bytes(), Element::from_bytes(&a.to_bytes()).to_bytes());
            prop_assert!(a.add(&a.negated()).is_zero());
            prop_assert!(a.is_zero() || a.mul(&a.inverse()).to_bytes() == Element::ONE.to_bytes());
        }
    }
}
