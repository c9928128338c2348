//! Points of y² = x³ − 3x + b in Jacobian coordinates, and their multiples; see the twin for one curve, `kernels::sm2`, for how.

use zeroize::Zeroize;

use super::field::{Field, Limbs, select, sub, zero_mask};

/// Bits of a window, and points of its table.
const BITS: usize = 5;
const POINTS: usize = 1 << (BITS - 1);

/// A point as x and y; (0, 0) stands for the one at infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Affine<const N: usize> {
    pub(super) x: Limbs<N>,
    pub(super) y: Limbs<N>,
}

/// (X, Y, Z) is (X / Z², Y / Z³); any with Z = 0 is the point at infinity.
#[derive(Clone, Copy)]
pub(super) struct Jacobian<const N: usize> {
    pub(super) x: Limbs<N>,
    pub(super) y: Limbs<N>,
    pub(super) z: Limbs<N>,
}

impl<const N: usize> Zeroize for Jacobian<N> {
    fn zeroize(&mut self) {
        self.x.zeroize();
        self.y.zeroize();
        self.z.zeroize();
    }
}

impl<const N: usize> Jacobian<N> {
    pub(super) const INFINITY: Self = Self { x: [0; N], y: [0; N], z: [0; N] };

    pub(super) fn is_infinity(&self) -> bool {
        zero_mask(&self.z) != 0
    }

    fn select(&self, other: &Self, mask: u64) -> Self {
        Self {
            x: select(&self.x, &other.x, mask),
            y: select(&self.y, &other.y, mask),
            z: select(&self.z, &other.z, mask),
        }
    }
}

/// The multiples 1 to 16 of 2^(5i) · G, for each window i.
pub(super) type BaseTable<const N: usize> = Vec<[Affine<N>; POINTS]>;

impl<const N: usize> Field<N> {
    pub(super) fn jacobian(&self, point: &Affine<N>) -> Jacobian<N> {
        let none = zero_mask(&point.x) & zero_mask(&point.y);
        Jacobian { x: point.x, y: point.y, z: select(&self.one, &[0; N], none) }
    }

    pub(super) fn affine(&self, point: &Jacobian<N>) -> Affine<N> {
        let inverse = self.invert(&point.z);
        let square = self.sqr(&inverse);
        let cube = self.mul(&square, &inverse);
        Affine { x: self.mul(&point.x, &square), y: self.mul(&point.y, &cube) }
    }

    fn negate_if(&self, y: &Limbs<N>, mask: u64) -> Limbs<N> {
        select(y, &self.negate(y), mask)
    }

    #[inline(never)]
    fn double_point(&self, point: &Jacobian<N>) -> Jacobian<N> {
        let y_twice = self.add(&point.y, &point.y);
        let z_square = self.sqr(&point.z);
        let y_square = self.sqr(&y_twice);
        let slope = self.mul(&self.sub(&point.x, &z_square), &self.add(&point.x, &z_square));
        let slope = self.add(&self.add(&slope, &slope), &slope);
        let s = self.mul(&point.x, &y_square);
        let x = self.sub(&self.sqr(&slope), &self.add(&s, &s));
        let z = self.mul(&y_twice, &point.z);
        let y_fourth = self.half(&self.sqr(&y_square));
        let y = self.sub(&self.mul(&slope, &self.sub(&s, &x)), &y_fourth);
        Jacobian { x, y, z }
    }

    /// The sum with a point of a table, which is not the same one.
    #[inline(never)]
    fn add_affine(&self, a: &Jacobian<N>, b: &Affine<N>) -> Jacobian<N> {
        let z_square = self.sqr(&a.z);
        let zy = self.mul(&a.z, &b.y);
        let h = self.sub(&self.mul(&b.x, &z_square), &a.x);
        let r = self.sub(&self.mul(&zy, &z_square), &a.y);
        let sum = self.finish_sum(&a.x, &a.y, &h, &r, &a.z);
        let b = self.jacobian(b);
        sum.select(&b, zero_mask(&a.z)).select(a, zero_mask(&b.z))
    }

    #[inline(always)]
    fn finish_sum(
        &self,
        u: &Limbs<N>,
        s: &Limbs<N>,
        h: &Limbs<N>,
        r: &Limbs<N>,
        z: &Limbs<N>,
    ) -> Jacobian<N> {
        let h_square = self.sqr(h);
        let h_cube = self.mul(&h_square, h);
        let v = self.mul(u, &h_square);
        let x = self.sub(&self.sub(&self.sqr(r), &h_cube), &self.add(&v, &v));
        let y = self.sub(&self.mul(r, &self.sub(&v, &x)), &self.mul(s, &h_cube));
        Jacobian { x, y, z: self.mul(h, z) }
    }

    /// The sum of two points, which are not the same, and how far their x and y are apart.
    #[inline(never)]
    fn sum(&self, a: &Jacobian<N>, b: &Jacobian<N>) -> (Jacobian<N>, Limbs<N>, Limbs<N>) {
        let (a_square, b_square) = (self.sqr(&a.z), self.sqr(&b.z));
        let u = self.mul(&a.x, &b_square);
        let h = self.sub(&self.mul(&b.x, &a_square), &u);
        let s = self.mul(&a.y, &self.mul(&b_square, &b.z));
        let r = self.sub(&self.mul(&b.y, &self.mul(&a_square, &a.z)), &s);
        let sum = self.finish_sum(&u, &s, &h, &r, &self.mul(&a.z, &b.z));
        (sum.select(b, zero_mask(&a.z)).select(a, zero_mask(&b.z)), h, r)
    }

    /// The sum of two points whatever they are.
    pub(super) fn add_any(&self, a: &Jacobian<N>, b: &Jacobian<N>) -> Jacobian<N> {
        let (sum, h, r) = self.sum(a, b);
        let apart = !(zero_mask(&h) & zero_mask(&r)) | zero_mask(&a.z) | zero_mask(&b.z);
        self.double_point(a).select(&sum, apart)
    }

    /// The table of a base point.
    pub(super) fn base_table(&self, base: &Affine<N>) -> BaseTable<N> {
        let mut first = self.jacobian(base);
        let mut table = Vec::new();
        for _ in 0..64 * N / BITS + 1 {
            let multiples = self.multiples(&first);
            table.push(multiples.map(|point| self.affine(&point)));
            first = self.double_point(&multiples[POINTS - 1]);
        }
        table
    }

    fn multiples(&self, point: &Jacobian<N>) -> [Jacobian<N>; POINTS] {
        let mut table = [*point; POINTS];
        for i in 1..POINTS {
            table[i] = if i % 2 == 1 {
                self.double_point(&table[i / 2])
            } else {
                self.sum(&table[i - 1], point).0
            };
        }
        table
    }

    /// `scalar` times the base point of `table`, the scalar being a secret below the order. Only the last sum can be of the same points.
    pub(super) fn multiply_base(&self, scalar: &Limbs<N>, table: &BaseTable<N>) -> Jacobian<N> {
        let mut sum = Jacobian::INFINITY;
        for (i, window) in table.iter().enumerate() {
            let (size, negative) = digit(scalar, i);
            let mut chosen = Affine { x: [0; N], y: [0; N] };
            for (point, number) in window.iter().zip(1..) {
                let mask = equal_mask(size, number);
                for j in 0..N {
                    chosen.x[j] |= point.x[j] & mask;
                    chosen.y[j] |= point.y[j] & mask;
                }
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

    /// `scalar` times a point, the scalar being a secret below the order. Only the last sum can be of the same points.
    pub(super) fn multiply(&self, scalar: &Limbs<N>, point: &Affine<N>) -> Jacobian<N> {
        let mut table = self.multiples(&self.jacobian(point));
        let mut sum = Jacobian::INFINITY;
        for i in (0..64 * N / BITS + 1).rev() {
            for _ in 0..BITS {
                sum = self.double_point(&sum);
            }
            let (size, negative) = digit(scalar, i);
            let mut chosen = Jacobian::INFINITY;
            for (point, number) in table.iter().zip(1..) {
                chosen = chosen.select(point, equal_mask(size, number));
            }
            chosen.y = self.negate_if(&chosen.y, negative);
            sum = if i == 0 { self.add_any(&sum, &chosen) } else { self.sum(&sum, &chosen).0 };
        }
        table.zeroize();
        sum
    }
}

/// Digit `i` of a number in windows of five bits, from −16 to 16 (Booth): how large, and all ones if it is negative.
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
    let negative = (window >> BITS).wrapping_neg();
    let size = (window & !negative) | ((mask - window) & negative);
    ((size >> 1) + (size & 1), negative)
}

/// All ones if two small numbers are equal, else zero.
#[inline(always)]
fn equal_mask(a: u64, b: u64) -> u64 {
    let differ = a ^ b;
    ((differ.wrapping_sub(1) & !differ) >> 63).wrapping_neg()
}

/// Whether `a` is below `b`.
pub(super) fn is_below<const N: usize>(a: &Limbs<N>, b: &Limbs<N>) -> bool {
    sub(a, b).1
}
