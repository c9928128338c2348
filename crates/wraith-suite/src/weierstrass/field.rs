//! Arithmetic modulo a prime of at most N limbs: the operations of points, and their implementation
//! for any prime in Montgomery form.
//!
//! Every operation takes the same time for all numbers.

use std::hint::black_box;

use zeroize::Zeroize;

use wraith_kernels::inverse;

/// Limbs of a number, the least significant first.
pub(super) type Limbs<const N: usize> = [u64; N];

/// Arithmetic modulo the prime of a curve, in the form that is fastest for it.
///
/// [`Self::mul`], [`Self::sqr`], [`Self::normalize`], [`Self::negate`] and [`Self::enter`] return
/// settled numbers. Sums and differences need not be settled. Count the settled numbers summed in
/// each factor of a product: the two counts multiply to at most 9.
pub(super) trait Arithmetic<const N: usize>: Send + Sync {
    /// A field element. The default is zero.
    type Fe: Copy + Default + Send + Sync + Zeroize;

    fn prime(&self) -> &Limbs<N>;
    fn one(&self) -> Self::Fe;
    /// Converts a number below the prime to a field element.
    fn enter(&self, number: &Limbs<N>) -> Self::Fe;
    /// Converts a field element to a number below the prime.
    fn leave(&self, number: &Self::Fe) -> Limbs<N>;
    fn add(&self, a: &Self::Fe, b: &Self::Fe) -> Self::Fe;
    fn sub(&self, a: &Self::Fe, b: &Self::Fe) -> Self::Fe;
    fn mul(&self, a: &Self::Fe, b: &Self::Fe) -> Self::Fe;
    fn sqr(&self, a: &Self::Fe) -> Self::Fe;
    fn normalize(&self, a: &Self::Fe) -> Self::Fe;
    /// Returns 1 / a, or zero for zero.
    fn invert(&self, a: &Self::Fe) -> Self::Fe;
    /// Returns `a`, or `b` where `mask` is all ones.
    fn select(a: &Self::Fe, b: &Self::Fe, mask: u64) -> Self::Fe;
    /// Returns all ones if the number is zero, else zero.
    fn zero_mask(&self, a: &Self::Fe) -> u64;

    fn double(&self, a: &Self::Fe) -> Self::Fe {
        self.add(a, a)
    }

    fn negate(&self, a: &Self::Fe) -> Self::Fe {
        self.normalize(&self.sub(&Self::Fe::default(), a))
    }
}

/// A prime and its constants of Montgomery reduction.
///
/// Invariant: a number is stored times 2^(64 N), reduced to below the prime.
pub(super) struct Field<const N: usize> {
    pub(super) prime: Limbs<N>,
    /// 1 / prime modulo 2^64.
    inverse: u64,
    /// 2^(64 N), its square and its cube, modulo the prime.
    one: Limbs<N>,
    square: Limbs<N>,
    cube: Limbs<N>,
}

/// An element in Montgomery form.
#[derive(Clone, Copy)]
pub(super) struct Fe<const N: usize>(pub(super) Limbs<N>);

impl<const N: usize> Default for Fe<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Zeroize for Fe<N> {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl<const N: usize> Arithmetic<N> for Field<N> {
    type Fe = Fe<N>;

    fn prime(&self) -> &Limbs<N> {
        &self.prime
    }

    fn one(&self) -> Fe<N> {
        Fe(self.one)
    }

    fn enter(&self, number: &Limbs<N>) -> Fe<N> {
        Fe(Self::enter(self, number))
    }

    fn leave(&self, number: &Fe<N>) -> Limbs<N> {
        Self::leave(self, &number.0)
    }

    #[inline(always)]
    fn add(&self, a: &Fe<N>, b: &Fe<N>) -> Fe<N> {
        Fe(Self::add(self, &a.0, &b.0))
    }

    #[inline(always)]
    fn sub(&self, a: &Fe<N>, b: &Fe<N>) -> Fe<N> {
        let (difference, borrow) = sub(&a.0, &b.0);
        // Where `a` is a constant zero, the compiler would branch on whether `b` is zero.
        let mask = black_box(u64::from(borrow).wrapping_neg());
        Fe(add(&difference, &self.prime.map(|limb| limb & mask)).0)
    }

    #[inline(always)]
    fn mul(&self, a: &Fe<N>, b: &Fe<N>) -> Fe<N> {
        Fe(Self::mul(self, &a.0, &b.0))
    }

    #[inline(always)]
    fn sqr(&self, a: &Fe<N>) -> Fe<N> {
        Fe(Self::mul(self, &a.0, &a.0))
    }

    #[inline(always)]
    fn normalize(&self, a: &Fe<N>) -> Fe<N> {
        *a
    }

    fn invert(&self, a: &Fe<N>) -> Fe<N> {
        Fe(Self::mul(self, &self.invert_usual(&a.0), &self.cube))
    }

    #[inline(always)]
    fn select(a: &Fe<N>, b: &Fe<N>, mask: u64) -> Fe<N> {
        Fe(select(&a.0, &b.0, mask))
    }

    #[inline(always)]
    fn zero_mask(&self, a: &Fe<N>) -> u64 {
        zero_mask(&a.0)
    }
}

impl<const N: usize> Field<N> {
    /// Creates the field of an odd prime.
    pub(super) fn new(prime: Limbs<N>) -> Self {
        // Newton's method: each step doubles the number of correct bits.
        let inverse = (0..6).fold(1u64, |inverse, _| {
            inverse.wrapping_mul(2u64.wrapping_sub(prime[0].wrapping_mul(inverse)))
        });
        let mut one = [0; N];
        one[0] = 1;
        let mut field = Self { prime, inverse, one, square: one, cube: one };
        let double = |number: Limbs<N>| (0..64 * N).fold(number, |sum, _| field.add(&sum, &sum));
        let one = double(one);
        let square = double(one);
        field = Self { one, square, ..field };
        field.cube = field.mul(&square, &square);
        field
    }

    #[inline]
    pub(super) fn add(&self, a: &Limbs<N>, b: &Limbs<N>) -> Limbs<N> {
        let (sum, carry) = add(a, b);
        self.subtract_once(&sum, carry)
    }

    /// Returns the number `limbs + carry · 2^(64 N)`, minus the prime unless the prime is larger.
    #[inline]
    pub(super) fn subtract_once(&self, limbs: &Limbs<N>, carry: bool) -> Limbs<N> {
        let (difference, borrow) = sub(limbs, &self.prime);
        select(&difference, limbs, u64::from(borrow & !carry).wrapping_neg())
    }

    /// Returns a · b / 2^(64 N). One factor is below the prime; the other may be any number.
    #[inline]
    pub(super) fn mul(&self, a: &Limbs<N>, b: &Limbs<N>) -> Limbs<N> {
        let mut sum = [0; N];
        let mut top = 0u64;
        for &limb in b {
            let mut carry = 0;
            for j in 0..N {
                (sum[j], carry) = a[j].carrying_mul_add(limb, sum[j], carry);
            }
            let (above, overflow) = top.overflowing_add(carry);
            let factor = sum[0].wrapping_mul(self.inverse.wrapping_neg());
            let (_, mut carry) = factor.carrying_mul_add(self.prime[0], sum[0], 0);
            for j in 1..N {
                (sum[j - 1], carry) = factor.carrying_mul_add(self.prime[j], sum[j], carry);
            }
            let (last, second) = above.overflowing_add(carry);
            sum[N - 1] = last;
            top = u64::from(overflow) + u64::from(second);
        }
        self.subtract_once(&sum, top != 0)
    }

    /// Returns 1 / a of a number in the usual form, or zero for zero.
    pub(super) fn invert_usual(&self, a: &Limbs<N>) -> Limbs<N> {
        inverse::invert(a, &self.prime, self.inverse)
    }

    /// Converts any number to Montgomery form.
    pub(super) fn enter(&self, a: &Limbs<N>) -> Limbs<N> {
        self.mul(&self.square, a)
    }

    /// Converts a number out of Montgomery form.
    pub(super) fn leave(&self, a: &Limbs<N>) -> Limbs<N> {
        let mut one = [0; N];
        one[0] = 1;
        self.mul(a, &one)
    }
}

#[inline]
pub(super) fn add<const N: usize>(a: &Limbs<N>, b: &Limbs<N>) -> (Limbs<N>, bool) {
    let mut carry = false;
    let mut sum = [0; N];
    for i in 0..N {
        (sum[i], carry) = a[i].carrying_add(b[i], carry);
    }
    (sum, carry)
}

#[inline]
pub(super) fn sub<const N: usize>(a: &Limbs<N>, b: &Limbs<N>) -> (Limbs<N>, bool) {
    let mut borrow = false;
    let mut difference = [0; N];
    for i in 0..N {
        (difference[i], borrow) = a[i].borrowing_sub(b[i], borrow);
    }
    (difference, borrow)
}

/// Returns `a`, or `b` where `mask` is all ones.
#[inline]
pub(super) fn select<const N: usize>(a: &Limbs<N>, b: &Limbs<N>, mask: u64) -> Limbs<N> {
    std::array::from_fn(|i| a[i] ^ (mask & (a[i] ^ b[i])))
}

/// Returns all ones if the number is zero, else zero.
#[inline]
pub(super) fn zero_mask<const N: usize>(a: &Limbs<N>) -> u64 {
    let any = a.iter().fold(0, |any, limb| any | limb);
    black_box(((any | any.wrapping_neg()) >> 63).wrapping_sub(1))
}

/// Returns whether `a` is below `b`.
pub(super) fn is_below<const N: usize>(a: &Limbs<N>, b: &Limbs<N>) -> bool {
    sub(a, b).1
}

/// Returns the number of at most 8 N big-endian bytes.
pub(super) fn limbs<const N: usize>(bytes: &[u8]) -> Limbs<N> {
    let mut limbs = [0; N];
    for (limb, chunk) in limbs.iter_mut().zip(bytes.rchunks(8)) {
        *limb = chunk.iter().fold(0, |limb, &byte| limb << 8 | u64::from(byte));
    }
    limbs
}

/// Writes a number as big-endian bytes, at most 8 N.
pub(super) fn write<const N: usize>(limbs: &Limbs<N>, out: &mut [u8]) {
    for (chunk, limb) in out.rchunks_mut(8).zip(limbs) {
        let bytes = limb.to_be_bytes();
        chunk.copy_from_slice(&bytes[8 - chunk.len()..]);
    }
}
