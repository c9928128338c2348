//! The field of 2^255 − 19 elements, on the arithmetic of fiat-crypto. That arithmetic is generated
//! code with a proof that it is correct and constant time.
//!
//! This module only combines its operations.

use std::hint::black_box;

use fiat_crypto::curve25519_64 as fiat;

/// The coefficient A of Curve25519, v² = u³ + A·u² + u.
pub(crate) const A: Field = Field::small(486_662);

/// A field element. Its limbs are not unique; its [bytes](Self::to_bytes) are.
#[derive(Clone, Copy)]
pub(crate) struct Field(fiat::fiat_25519_tight_field_element);

impl Field {
    pub(crate) const ZERO: Self = Self::small(0);
    pub(crate) const ONE: Self = Self::small(1);

    /// A square root of −1: 2^((p−1)/4), the even one.
    pub(crate) const ROOT_OF_MINUS_ONE: Self = Self::limbs([
        0x61b274a0ea0b0,
        0x0d5a5fc8f189d,
        0x7ef5e9cbd0c60,
        0x78595a6804c9e,
        0x2b8324804fc1d,
    ]);

    /// Returns the sum of `limbs[i]`·2^(51·i). The limbs are below 2^51.
    pub(crate) const fn limbs(limbs: [u64; 5]) -> Self {
        Self(fiat::fiat_25519_tight_field_element(limbs))
    }

    /// Returns `value`, which is below 2^51.
    pub(crate) const fn small(value: u64) -> Self {
        Self::limbs([value, 0, 0, 0, 0])
    }

    /// Parses little-endian bytes, modulo p. Ignores the top bit.
    pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Self {
        let mut bytes = *bytes;
        bytes[31] &= 0x7f;
        let mut out = Self::ZERO;
        fiat::fiat_25519_from_bytes(&mut out.0, &bytes);
        out
    }

    /// Parses little-endian bytes. Returns `None` unless the number is below p.
    pub(crate) fn from_canonical(bytes: &[u8; 32]) -> Option<Self> {
        let number = Self::from_bytes(bytes);
        (number.to_bytes() == *bytes).then_some(number)
    }

    /// Returns the little-endian bytes of the number below p.
    pub(crate) fn to_bytes(self) -> [u8; 32] {
        let mut out = [0; 32];
        fiat::fiat_25519_to_bytes(&mut out, &self.0);
        out
    }

    fn loose(self) -> fiat::fiat_25519_loose_field_element {
        let mut out = fiat::fiat_25519_loose_field_element([0; 5]);
        fiat::fiat_25519_relax(&mut out, &self.0);
        out
    }

    const fn carried(loose: &fiat::fiat_25519_loose_field_element) -> Self {
        let mut out = Self::ZERO;
        fiat::fiat_25519_carry(&mut out.0, loose);
        out
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let mut sum = fiat::fiat_25519_loose_field_element([0; 5]);
        fiat::fiat_25519_add(&mut sum, &self.0, &other.0);
        Self::carried(&sum)
    }

    pub(crate) const fn minus(self, other: Self) -> Self {
        let mut difference = fiat::fiat_25519_loose_field_element([0; 5]);
        fiat::fiat_25519_sub(&mut difference, &self.0, &other.0);
        Self::carried(&difference)
    }

    pub(crate) const fn negated(self) -> Self {
        Self::ZERO.minus(self)
    }

    pub(crate) fn times(self, other: Self) -> Self {
        let mut out = Self::ZERO;
        fiat::fiat_25519_carry_mul(&mut out.0, &self.loose(), &other.loose());
        out
    }

    pub(crate) fn squared(self) -> Self {
        self.squared_times(1)
    }

    /// Returns self^(2^`times`).
    fn squared_times(self, times: u32) -> Self {
        let mut out = self;
        for _ in 0..times {
            let base = out.loose();
            fiat::fiat_25519_carry_square(&mut out.0, &base);
        }
        out
    }

    /// Returns self^((p−5)/8), which is self^(2^252 − 3).
    ///
    /// For x ≠ 0 the result y has x²y⁴ = 1 if x is a square, and −1 if not. So xy² is 1 or −1 for
    /// squares, and ±√−1 for others. The inverse of x is x³y⁴ times that sign. One power thus
    /// yields squareness, root and inverse.
    pub(crate) fn power(self) -> Self {
        // `ones_n` is self^(2^n − 1).
        let ones_2 = self.squared().times(self);
        let ones_4 = ones_2.squared_times(2).times(ones_2);
        let ones_5 = ones_4.squared().times(self);
        let ones_10 = ones_5.squared_times(5).times(ones_5);
        let ones_20 = ones_10.squared_times(10).times(ones_10);
        let ones_40 = ones_20.squared_times(20).times(ones_20);
        let ones_50 = ones_40.squared_times(10).times(ones_10);
        let ones_100 = ones_50.squared_times(50).times(ones_50);
        let ones_200 = ones_100.squared_times(100).times(ones_100);
        let ones_250 = ones_200.squared_times(50).times(ones_50);
        ones_250.squared_times(2).times(self)
    }

    /// Returns whether the element is a square other than zero, and if so a root of its inverse.
    /// Either root may be returned.
    pub(crate) fn inverse_root(self) -> (bool, Self) {
        let y = self.power();
        let root = self.times(y.squared());
        let is_minus_one = root.equals(Self::ONE.negated());
        let inverse_root = Self::select(is_minus_one, y.times(Self::ROOT_OF_MINUS_ONE), y);
        (root.equals(Self::ONE) | is_minus_one, inverse_root)
    }

    pub(crate) fn equals(self, other: Self) -> bool {
        crate::equal(&self.to_bytes(), &other.to_bytes())
    }

    /// Returns whether the element is above (p−1)/2. In that case its double, minus p, is odd.
    pub(crate) fn is_upper_half(self) -> bool {
        self.plus(self).to_bytes()[0] & 1 == 1
    }

    /// Returns `yes` if `condition`, else `no`, without a branch.
    pub(crate) fn select(condition: bool, yes: Self, no: Self) -> Self {
        let mut out = Self::ZERO;
        // Hides from the compiler that there are only two cases, for which it could emit a branch.
        let condition = black_box(u8::from(condition));
        fiat::fiat_25519_selectznz(&mut out.0.0, condition, &no.0.0, &yes.0.0);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_of_minus_one_squared_is_minus_one() {
        let root = Field::ROOT_OF_MINUS_ONE;
        assert_eq!(root.squared().to_bytes(), Field::ONE.negated().to_bytes());
        assert_eq!(root.to_bytes()[0] & 1, 0);
    }

    #[test]
    fn a_power_tells_squares_and_inverses() {
        // 2 is not a square modulo p, because p mod 8 is 5.
        for (value, sign) in [(4, Field::ONE), (2, Field::ONE.negated())] {
            let x = Field::small(value);
            let y = x.power();
            let found = x.squared().times(y.squared().squared());
            assert_eq!(found.to_bytes(), sign.to_bytes());
            let inverse = x.times(y.squared().squared()).times(sign);
            assert_eq!(x.times(inverse).to_bytes(), Field::ONE.to_bytes());
        }
    }

    #[test]
    fn the_upper_half_begins_behind_half_of_p() {
        // (p−1)/2 = 2^254 − 10.
        let mut half = [0xff; 32];
        (half[0], half[31]) = (0xf6, 0x3f);
        let half = Field::from_bytes(&half);
        assert!(!Field::ZERO.is_upper_half());
        assert!(!half.is_upper_half());
        assert!(half.plus(Field::ONE).is_upper_half());
        assert!(Field::ONE.negated().is_upper_half());
    }
}
