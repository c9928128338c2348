//! Arithmetic modulo the prime of SM2's curve, p = 2^256 − 2^224 − 2^96 + 2^64 − 1, in Montgomery
//! form and constant time.
//!
//! Invariant: `Fe` holds x · 2^256 mod p, below p.
//!
//! p is −1 modulo 2^64, so the factor that clears a limb of a product is that limb itself. The
//! multiple of p by that limb consists of shifts, so the Montgomery reduction needs no
//! multiplication. With BMI2 and ADX a product is 16 `mulx` and two carry chains ([`Adx`]).
//! Elsewhere the compiler translates [`Portable`].

use zeroize::Zeroize;

use super::super::inverse;
pub(super) use super::super::limbs::{
    Limbs, add, bytes, is_below, limbs, sub, subtract_once, zero_mask,
};

pub(crate) const P: Limbs =
    [0xffff_ffff_ffff_ffff, 0xffff_ffff_0000_0000, 0xffff_ffff_ffff_ffff, 0xffff_fffe_ffff_ffff];

/// An integer modulo p.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fe(pub(super) Limbs);

impl Zeroize for Fe {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// An implementation of the field operations.
pub(crate) trait Arithmetic: Copy {
    /// Returns a · b / 2^256.
    fn mul(a: &Fe, b: &Fe) -> Fe;
    /// Returns a² / 2^256.
    fn sqr(a: &Fe) -> Fe;
    /// Returns a + b.
    fn add(a: &Fe, b: &Fe) -> Fe;
    /// Returns a − b.
    fn sub(a: &Fe, b: &Fe) -> Fe;
}

/// Arithmetic for every processor.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// Arithmetic for processors with BMI2 and ADX.
#[derive(Clone, Copy)]
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) struct Adx;

/// 2^512 mod p, the factor that converts a number to Montgomery form.
const R2: Fe = Fe([
    0x0000_0002_0000_0003,
    0x0000_0002_ffff_ffff,
    0x0000_0001_0000_0001,
    0x0000_0004_0000_0002,
]);

impl Fe {
    pub(crate) const ZERO: Self = Self([0; 4]);
    /// 2^256 mod p.
    pub(crate) const ONE: Self = Self([1, 0xffff_ffff, 0, 0x1_0000_0000]);

    /// Returns the number of 32 big-endian bytes, or `None` unless it is below p.
    pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        Self::from_limbs(&limbs(bytes))
    }

    /// Returns the number of `limbs`, or `None` unless it is below p.
    pub(crate) fn from_limbs(limbs: &Limbs) -> Option<Self> {
        is_below(limbs, &P).then(|| Portable::mul(&Self(*limbs), &R2))
    }

    /// Returns the number, out of Montgomery form.
    pub(crate) fn to_limbs(self) -> Limbs {
        Portable::mul(&self, &Self([1, 0, 0, 0])).0
    }

    pub(crate) fn to_bytes(self) -> [u8; 32] {
        bytes(&self.to_limbs())
    }

    /// Returns all ones if the number is zero, else zero.
    #[inline(always)]
    pub(crate) fn zero_mask(&self) -> u64 {
        zero_mask(&self.0)
    }

    /// Returns `self`, or `other` where `mask` is all ones.
    #[inline(always)]
    pub(crate) fn select(&self, other: &Self, mask: u64) -> Self {
        Self(std::array::from_fn(|i| self.0[i] ^ (mask & (self.0[i] ^ other.0[i]))))
    }

    #[inline(always)]
    pub(crate) fn add(&self, other: &Self) -> Self {
        let (sum, carry) = add(&self.0, &other.0);
        Self(subtract_once(&sum, carry, &P))
    }

    #[inline(always)]
    pub(crate) fn double(&self) -> Self {
        self.add(self)
    }

    #[inline(always)]
    pub(crate) fn sub(&self, other: &Self) -> Self {
        let (difference, borrow) = sub(&self.0, &other.0);
        let mask = u64::from(borrow).wrapping_neg();
        // Adds p masked: its limbs are −1, −2^32, −1 and the top one, modulo 2^64.
        Self(add(&difference, &P.map(|limb| limb & mask)).0)
    }

    #[inline(always)]
    pub(crate) fn negate(&self) -> Self {
        Self::ZERO.sub(self)
    }

    /// Returns half of the number.
    #[inline(always)]
    pub(crate) fn half(&self) -> Self {
        let mask = (self.0[0] & 1).wrapping_neg();
        let (sum, carry) = add(&self.0, &P.map(|limb| limb & mask));
        let next = [sum[1], sum[2], sum[3], carry.into()];
        Self(std::array::from_fn(|i| sum[i] >> 1 | next[i] << 63))
    }
}

/// Returns `number^(2^count)`.
#[inline(always)]
fn square_times<A: Arithmetic>(number: &Fe, count: usize) -> Fe {
    let mut square = A::sqr(number);
    for _ in 1..count {
        square = A::sqr(&square);
    }
    square
}

/// Returns 1 / `number`, or zero for zero.
#[inline(never)]
pub(crate) fn invert<A: Arithmetic>(number: &Fe) -> Fe {
    // p is −1 modulo 2^64. The plain inverse has a factor of 2^−256; two products with 2^512 make
    // that 2^256.
    let inverse = Fe(inverse::invert(&number.0, &P, u64::MAX));
    A::mul(&A::mul(&inverse, &R2), &R2)
}

/// Returns a number whose square is `number`, if there is one. As p is 3 modulo 4, it is the power
/// (p + 1) / 4.
///
/// In binary that exponent is 31 ones, a zero, 128 ones, 31 zeros, a one and 62 zeros.
pub(super) fn square_root<A: Arithmetic>(number: &Fe) -> Option<Fe> {
    let mut ones_31 = *number;
    for _ in 1..31 {
        ones_31 = A::mul(&A::sqr(&ones_31), number);
    }
    let ones_32 = A::mul(&A::sqr(&ones_31), number);
    let mut power = A::mul(&square_times::<A>(&ones_31, 33), &ones_32);
    for _ in 0..3 {
        power = A::mul(&square_times::<A>(&power, 32), &ones_32);
    }
    power = A::mul(&square_times::<A>(&power, 32), number);
    let root = square_times::<A>(&power, 62);
    (A::sqr(&root) == *number).then_some(root)
}

impl Arithmetic for Portable {
    #[inline]
    fn mul(a: &Fe, b: &Fe) -> Fe {
        Fe(reduce(&product(&a.0, &b.0)))
    }

    #[inline]
    fn sqr(a: &Fe) -> Fe {
        Self::mul(a, a)
    }

    #[inline(always)]
    fn add(a: &Fe, b: &Fe) -> Fe {
        a.add(b)
    }

    #[inline(always)]
    fn sub(a: &Fe, b: &Fe) -> Fe {
        a.sub(b)
    }
}

/// Divides a number of 512 bits by 2^256, modulo p. It is below p · 2^256.
fn reduce(product: &[u64; 8]) -> Limbs {
    let mut low = [product[0], product[1], product[2], product[3]];
    for _ in 0..4 {
        // Adds m · p, which ends in −m, and drops the limb of zeros. The rest is m · (1, 0, 0, 1) −
        // (u, v, u, v).
        let [m, ..] = low;
        let (u, v) = (m << 32, m >> 32);
        let (sum, _) = add(&[low[1], low[2], low[3], 0], &[m, 0, 0, m]);
        (low, _) = sub(&sum, &[u, v, u, v]);
    }
    let (sum, carry) = add(&low, &[product[4], product[5], product[6], product[7]]);
    subtract_once(&sum, carry, &P)
}

/// Returns a · b.
#[inline]
pub(super) fn product(a: &Limbs, b: &Limbs) -> [u64; 8] {
    let mut product = [0; 8];
    for i in 0..4 {
        let mut carry = 0;
        for j in 0..4 {
            (product[i + j], carry) = a[j].carrying_mul_add(b[i], product[i + j], carry);
        }
        product[i + 4] = carry;
    }
    product
}
