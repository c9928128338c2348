//! Points of y² = x³ − 3x + b in Jacobian coordinates, and point multiplication. `kernels::sm2`
//! does the same for one curve and explains the method.

use std::hint::black_box;

use zeroize::Zeroize;

use super::field::{Arithmetic, Limbs};
use wraith_kernels::digits;

/// Bits of a window, and number of points in its table.
const BITS: usize = 5;
const POINTS: usize = 1 << (BITS - 1);

/// A point in affine coordinates. (0, 0) represents the point at infinity.
#[derive(Clone, Copy, Default)]
pub(super) struct Affine<Fe> {
    pub(super) x: Fe,
    pub(super) y: Fe,
}

/// A point in Jacobian coordinates: (X, Y, Z) is (X / Z², Y / Z³). Z = 0, as in the default, is the
/// point at infinity. All coordinates are settled.
#[derive(Clone, Copy, Default)]
pub(super) struct Jacobian<Fe> {
    pub(super) x: Fe,
    pub(super) y: Fe,
    pub(super) z: Fe,
}

impl<Fe: Zeroize> Zeroize for Jacobian<Fe> {
    fn zeroize(&mut self) {
        self.x.zeroize();
        self.y.zeroize();
        self.z.zeroize();
    }
}

/// The multiples 1 to 16 of 2^(5i) · G, for each window i.
pub(super) type BaseTable<Fe> = Vec<[Affine<Fe>; POINTS]>;

/// Returns the number of windows of scalars below an order of `bits` bits.
const fn windows(bits: usize) -> usize {
    bits / BITS + 1
}

/// The operations on points.
pub(super) trait Points<const N: usize>: Arithmetic<N> {
    fn jacobian(&self, point: &Affine<Self::Fe>) -> Jacobian<Self::Fe> {
        let none = self.zero_mask(&point.x) & self.zero_mask(&point.y);
        let z = Self::select(&self.one(), &Self::Fe::default(), none);
        Jacobian { x: point.x, y: point.y, z }
    }

    fn affine(&self, point: &Jacobian<Self::Fe>) -> Affine<Self::Fe> {
        let inverse = self.invert(&point.z);
        let square = self.sqr(&inverse);
        let cube = self.mul(&square, &inverse);
        Affine { x: self.mul(&point.x, &square), y: self.mul(&point.y, &cube) }
    }

    fn is_infinity(&self, point: &Jacobian<Self::Fe>) -> bool {
        self.zero_mask(&point.z) != 0
    }

    #[inline(always)]
    fn select_point(
        a: &Jacobian<Self::Fe>,
        b: &Jacobian<Self::Fe>,
        mask: u64,
    ) -> Jacobian<Self::Fe> {
        Jacobian {
            x: Self::select(&a.x, &b.x, mask),
            y: Self::select(&a.y, &b.y, mask),
            z: Self::select(&a.z, &b.z, mask),
        }
    }

    #[inline(always)]
    fn negate_if(&self, y: &Self::Fe, mask: u64) -> Self::Fe {
        Self::select(y, &self.negate(y), mask)
    }

    /// Doubles the point: 4 multiplications and 4 squares.
    #[inline(never)]
    fn double_point(&self, point: &Jacobian<Self::Fe>) -> Jacobian<Self::Fe> {
        let y_square = self.sqr(&point.y);
        let z_square = self.sqr(&point.z);
        let y_square_twice = self.double(&y_square);
        let slope = self.mul(&self.sub(&point.x, &z_square), &self.add(&point.x, &z_square));
        let s = self.mul(&point.x, &self.double(&y_square_twice));
        let y_fourth = self.sqr(&y_square_twice);
        let slope = self.add(&self.double(&slope), &slope);
        let z = self.mul(&self.double(&point.y), &point.z);
        let x = self.normalize(&self.sub(&self.sqr(&slope), &self.double(&s)));
        let y = self.sub(&self.mul(&slope, &self.sub(&s, &x)), &self.double(&y_fourth));
        Jacobian { x, y: self.normalize(&y), z }
    }

    /// Adds a different point of a table.
    #[inline(never)]
    fn add_affine(&self, a: &Jacobian<Self::Fe>, b: &Affine<Self::Fe>) -> Jacobian<Self::Fe> {
        let z_square = self.sqr(&a.z);
        let zy = self.mul(&a.z, &b.y);
        let h = self.sub(&self.mul(&b.x, &z_square), &a.x);
        let r = self.sub(&self.mul(&zy, &z_square), &a.y);
        let sum = self.finish_sum(&a.x, &a.y, &h, &r, &a.z);
        let b = self.jacobian(b);
        let sum = Self::select_point(&sum, &b, self.zero_mask(&a.z));
        Self::select_point(&sum, a, self.zero_mask(&b.z))
    }

    #[inline(always)]
    fn finish_sum(
        &self,
        u: &Self::Fe,
        s: &Self::Fe,
        h: &Self::Fe,
        r: &Self::Fe,
        z: &Self::Fe,
    ) -> Jacobian<Self::Fe> {
        let h_square = self.sqr(h);
        let r_square = self.sqr(r);
        let h_cube = self.mul(&h_square, h);
        let v = self.mul(u, &h_square);
        let z = self.mul(h, z);
        let y_part = self.mul(s, &h_cube);
        let x = self.normalize(&self.sub(&self.sub(&r_square, &h_cube), &self.double(&v)));
        let y = self.normalize(&self.sub(&self.mul(r, &self.sub(&v, &x)), &y_part));
        Jacobian { x, y, z }
    }

    /// Adds two points, which are neither equal nor at infinity. Also returns the differences of
    /// their x and y.
    #[inline(always)]
    fn sum(
        &self,
        a: &Jacobian<Self::Fe>,
        b: &Jacobian<Self::Fe>,
    ) -> (Jacobian<Self::Fe>, Self::Fe, Self::Fe) {
        let (a_square, b_square) = (self.sqr(&a.z), self.sqr(&b.z));
        let (zy_a, zy_b) = (self.mul(&a.y, &b.z), self.mul(&b.y, &a.z));
        let u = self.mul(&a.x, &b_square);
        let h = self.sub(&self.mul(&b.x, &a_square), &u);
        let s = self.mul(&zy_a, &b_square);
        let r = self.sub(&self.mul(&zy_b, &a_square), &s);
        let sum = self.finish_sum(&u, &s, &h, &r, &self.mul(&a.z, &b.z));
        (sum, h, r)
    }

    /// Adds two points, which are not equal.
    #[inline(never)]
    fn add_point(&self, a: &Jacobian<Self::Fe>, b: &Jacobian<Self::Fe>) -> Jacobian<Self::Fe> {
        let (sum, _, _) = self.sum(a, b);
        let sum = Self::select_point(&sum, b, self.zero_mask(&a.z));
        Self::select_point(&sum, a, self.zero_mask(&b.z))
    }

    /// Adds any two points.
    fn add_any(&self, a: &Jacobian<Self::Fe>, b: &Jacobian<Self::Fe>) -> Jacobian<Self::Fe> {
        let (sum, h, r) = self.sum(a, b);
        let same = self.zero_mask(&h) & self.zero_mask(&r);
        let sum = Self::select_point(&sum, &self.double_point(a), same);
        let sum = Self::select_point(&sum, b, self.zero_mask(&a.z));
        Self::select_point(&sum, a, self.zero_mask(&b.z))
    }

    /// Adds any two points, in a time that reveals whether they are special cases.
    fn add_public(&self, a: &Jacobian<Self::Fe>, b: &Jacobian<Self::Fe>) -> Jacobian<Self::Fe> {
        if self.is_infinity(a) {
            return *b;
        }
        if self.is_infinity(b) {
            return *a;
        }
        let (sum, h, r) = self.sum(a, b);
        if self.zero_mask(&h) & self.zero_mask(&r) == 0 { sum } else { self.double_point(a) }
    }

    /// Builds the table of a base point, for scalars of `bits` bits.
    fn base_table(&self, base: &Affine<Self::Fe>, bits: usize) -> BaseTable<Self::Fe> {
        let mut first = self.jacobian(base);
        let mut table = Vec::new();
        for _ in 0..windows(bits) {
            let multiples = self.multiples(&first);
            table.push(multiples.map(|point| self.affine(&point)));
            first = self.double_point(&multiples[POINTS - 1]);
        }
        table
    }

    fn multiples(&self, point: &Jacobian<Self::Fe>) -> [Jacobian<Self::Fe>; POINTS] {
        let mut table = [*point; POINTS];
        for i in 1..POINTS {
            table[i] = if i % 2 == 1 {
                self.double_point(&table[i / 2])
            } else {
                self.add_point(&table[i - 1], point)
            };
        }
        table
    }

    /// Returns `scalar` times the base point of `table`. The scalar is a secret below the order.
    /// Only the last sum can be of equal points.
    fn multiply_base(&self, scalar: &Limbs<N>, table: &BaseTable<Self::Fe>) -> Jacobian<Self::Fe> {
        let mut sum = Jacobian::default();
        for (i, window) in table.iter().enumerate() {
            let (size, negative) = digit(scalar, i);
            let mut chosen = Affine::default();
            for (point, number) in window.iter().zip(1..) {
                let mask = equal_mask(size, number);
                chosen.x = Self::select(&chosen.x, &point.x, mask);
                chosen.y = Self::select(&chosen.y, &point.y, mask);
            }
            chosen.y = self.negate_if(&chosen.y, negative);
            sum = if i + 1 == table.len() {
                self.add_any(&sum, &self.jacobian(&chosen))
            } else {
                self.add_affine(&sum, &chosen)
            };
        }
        sum
    }

    /// Returns `scalar` times a point. The scalar is a secret below the order, which has `bits`
    /// bits. Only the last sum can be of equal points.
    fn multiply(
        &self,
        scalar: &Limbs<N>,
        point: &Affine<Self::Fe>,
        bits: usize,
    ) -> Jacobian<Self::Fe> {
        let mut table = self.multiples(&self.jacobian(point));
        let mut sum = Jacobian::default();
        for i in (0..windows(bits)).rev() {
            if i + 1 < windows(bits) {
                for _ in 0..BITS {
                    sum = self.double_point(&sum);
                }
            }
            let (size, negative) = digit(scalar, i);
            let mut chosen = Jacobian::default();
            for (point, number) in table.iter().zip(1..) {
                chosen = Self::select_point(&chosen, point, equal_mask(size, number));
            }
            chosen.y = self.negate_if(&chosen.y, negative);
            sum = if i == 0 { self.add_any(&sum, &chosen) } else { self.add_point(&sum, &chosen) };
        }
        table.zeroize();
        sum
    }

    /// Returns `scalar` times the base point of `table`, where nothing is secret.
    fn multiply_base_public(
        &self,
        scalar: &Limbs<N>,
        table: &BaseTable<Self::Fe>,
    ) -> Jacobian<Self::Fe> {
        let mut sum = Jacobian::default();
        for (i, window) in table.iter().enumerate() {
            let (size, negative) = digit(scalar, i);
            let Some(at) = (size as usize).checked_sub(1) else { continue };
            let chosen = Affine { x: window[at].x, y: self.negate_if(&window[at].y, negative) };
            sum = if i + 1 == table.len() {
                self.add_public(&sum, &self.jacobian(&chosen))
            } else {
                self.add_affine(&sum, &chosen)
            };
        }
        sum
    }

    /// Returns `scalar` times a point, where neither is secret.
    fn multiply_public(&self, scalar: &Limbs<N>, point: &Affine<Self::Fe>) -> Jacobian<Self::Fe> {
        let point = self.jacobian(point);
        let twice = self.double_point(&point);
        let mut odd = [point; 1 << (digits::BITS - 2)];
        for i in 1..odd.len() {
            odd[i] = self.add_public(&odd[i - 1], &twice);
        }
        let mut sum: Option<Jacobian<Self::Fe>> = None;
        for &digit in digits::sparse(scalar).iter().rev() {
            sum = sum.map(|sum| self.double_point(&sum));
            if digit != 0 {
                let mut term = odd[usize::from(digit.unsigned_abs() / 2)];
                if digit < 0 {
                    term.y = self.negate(&term.y);
                }
                sum = Some(sum.map_or(term, |sum| self.add_public(&sum, &term)));
            }
        }
        sum.unwrap_or_default()
    }
}

impl<const N: usize, F: Arithmetic<N>> Points<N> for F {}

/// Returns digit `i` of a number in windows of five bits, from −16 to 16 (Booth): its absolute
/// value, and all ones if it is negative.
fn digit<const N: usize>(number: &Limbs<N>, i: usize) -> (u64, u64) {
    let window = if i == 0 {
        number[0] << 1
    } else {
        let (limb, shift) = ((i * BITS - 1) / 64, (i * BITS - 1) % 64);
        let above = if limb + 1 < N { (number[limb + 1] << 1) << (63 - shift) } else { 0 };
        number[limb] >> shift | above
    };
    let mask = (1 << (BITS + 1)) - 1;
    let window = window & mask;
    let negative = black_box((window >> BITS).wrapping_neg());
    let size = (window & !negative) | ((mask - window) & negative);
    ((size >> 1) + (size & 1), negative)
}

/// Returns all ones if two small numbers are equal, else zero.
///
/// `black_box` hides from the compiler that there are only two results. Otherwise it would emit a
/// branch.
#[inline(always)]
fn equal_mask(a: u64, b: u64) -> u64 {
    let differ = a ^ b;
    black_box(((differ.wrapping_sub(1) & !differ) >> 63).wrapping_neg())
}
