//! Points of SM2's curve, y² = x³ − 3x + b, in Jacobian coordinates: (X, Y, Z) is (X / Z², Y / Z³).
//! Z = 0 is the point at infinity.
//!
//! The addition formulas hold for different points:
//!
//! - [`Jacobian::add`] and [`Jacobian::add_affine`] also accept the point at infinity, but not the
//!   same point twice.
//! - [`Jacobian::add_any`] accepts all points.
//! - [`Jacobian::add_public`] accepts all points, but is not constant time. The other functions are
//!   constant time.

use zeroize::Zeroize;

use super::field::{Arithmetic, Fe, invert, square_root};

/// b in Montgomery form.
const B: Fe = Fe([
    0x90d2_3063_2bc0_dd42,
    0x71cf_379a_e9b5_37ab,
    0x5279_8150_5ea5_1c3c,
    0x240f_e188_ba20_e2c8,
]);

/// The base point.
pub const G: Affine = Affine {
    x: Fe([
        0x6132_8990_f418_029e,
        0x3e79_81ed_dca6_c050,
        0xd6a1_ed99_ac24_c3c3,
        0x9116_7a5e_e1c1_3b05,
    ]),
    y: Fe([
        0xc135_4e59_3c2d_0ddd,
        0xc1f5_e578_8d32_95fa,
        0x8d4c_fb06_6e2a_48f8,
        0x63cd_65d4_81d7_35bd,
    ]),
};

/// A point other than the point at infinity. In tables, (0, 0) represents that point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Affine {
    pub(crate) x: Fe,
    pub(crate) y: Fe,
}

/// A point in Jacobian coordinates.
#[derive(Clone, Copy, Debug)]
pub struct Jacobian {
    pub(super) x: Fe,
    pub(super) y: Fe,
    pub(super) z: Fe,
}

impl Zeroize for Affine {
    fn zeroize(&mut self) {
        self.x.zeroize();
        self.y.zeroize();
    }
}

impl Zeroize for Jacobian {
    fn zeroize(&mut self) {
        self.x.zeroize();
        self.y.zeroize();
        self.z.zeroize();
    }
}

/// Returns x³ − 3x + b.
fn y_square<A: Arithmetic>(x: &Fe) -> Fe {
    A::mul(&A::sqr(x), x).sub(&x.double().add(x)).add(&B)
}

impl Affine {
    pub(super) const NONE: Self = Self { x: Fe::ZERO, y: Fe::ZERO };

    /// Returns whether the point is on the curve.
    pub(super) fn is_on_curve<A: Arithmetic>(&self) -> bool {
        A::sqr(&self.y) == y_square::<A>(&self.x)
    }

    /// Returns one of the two points with this x, if there are any.
    pub(super) fn lift_x<A: Arithmetic>(x: Fe) -> Option<Self> {
        Some(Self { x, y: square_root::<A>(&y_square::<A>(&x))? })
    }

    /// Negates the point where `mask` is all ones.
    #[inline(always)]
    pub(super) fn negate_if(&self, mask: u64) -> Self {
        Self { x: self.x, y: self.y.select(&self.y.negate(), mask) }
    }

    pub(super) const fn to_jacobian(self) -> Jacobian {
        Jacobian { x: self.x, y: self.y, z: Fe::ONE }
    }
}

impl Jacobian {
    pub const INFINITY: Self = Self { x: Fe::ONE, y: Fe::ONE, z: Fe::ZERO };

    pub(super) fn is_infinity(&self) -> bool {
        self.z.zero_mask() != 0
    }

    /// Converts to affine coordinates; the point at infinity becomes (0, 0).
    pub(super) fn to_affine<A: Arithmetic>(self) -> Affine {
        let inverse = invert::<A>(&self.z);
        let square = A::sqr(&inverse);
        Affine { x: A::mul(&self.x, &square), y: A::mul(&self.y, &A::mul(&square, &inverse)) }
    }

    #[inline(always)]
    pub(super) fn negate_if(&self, mask: u64) -> Self {
        Self { y: self.y.select(&self.y.negate(), mask), ..*self }
    }

    #[inline(always)]
    pub(super) fn select(&self, other: &Self, mask: u64) -> Self {
        Self {
            x: self.x.select(&other.x, mask),
            y: self.y.select(&other.y, mask),
            z: self.z.select(&other.z, mask),
        }
    }

    /// Doubles the point: 4 multiplications and 4 squares.
    #[inline(never)]
    pub(super) fn double<A: Arithmetic>(&self) -> Self {
        // Neighbouring lines do not depend on each other.
        let y_twice = A::add(&self.y, &self.y);
        let z_square = A::sqr(&self.z);
        let y_square = A::sqr(&y_twice);
        let slope = A::mul(&A::sub(&self.x, &z_square), &A::add(&self.x, &z_square));
        let s = A::mul(&self.x, &y_square);
        let slope = A::add(&A::add(&slope, &slope), &slope);
        let x = A::sqr(&slope);
        let y_fourth = A::sqr(&y_square);
        let x = A::sub(&x, &A::add(&s, &s));
        let z = A::mul(&y_twice, &self.z);
        let y = A::sub(&A::mul(&slope, &A::sub(&s, &x)), &y_fourth.half());
        Self { x, y, z }
    }

    /// Adds a point of a table: 8 multiplications and 3 squares.
    #[inline(never)]
    pub(super) fn add_affine<A: Arithmetic>(&self, other: &Affine) -> Self {
        let z_square = A::sqr(&self.z);
        let zy_2 = A::mul(&self.z, &other.y);
        let h = A::sub(&A::mul(&other.x, &z_square), &self.x);
        let r = A::sub(&A::mul(&z_square, &zy_2), &self.y);
        let h_square = A::sqr(&h);
        let r_square = A::sqr(&r);
        let h_cube = A::mul(&h_square, &h);
        let v = A::mul(&self.x, &h_square);
        let z = A::mul(&h, &self.z);
        let y_part = A::mul(&self.y, &h_cube);
        let x = A::sub(&A::sub(&r_square, &h_cube), &A::add(&v, &v));
        let y = A::sub(&A::mul(&r, &A::sub(&v, &x)), &y_part);
        let infinite = Self { z: Fe::ONE, x: other.x, y: other.y };
        let none = other.x.zero_mask() & other.y.zero_mask();
        let sum = Self { x, y, z }.select(&infinite, self.z.zero_mask());
        sum.select(self, none)
    }

    /// Adds two points: 12 multiplications and 4 squares.
    #[inline(never)]
    pub(super) fn add<A: Arithmetic>(&self, other: &Self) -> Self {
        let (sum, _, _) = self.sum::<A>(other);
        sum.select(other, self.z.zero_mask()).select(self, other.z.zero_mask())
    }

    /// Adds any two points.
    pub(super) fn add_any<A: Arithmetic>(&self, other: &Self) -> Self {
        let (sum, h, r) = self.sum::<A>(other);
        let same = h.zero_mask() & r.zero_mask();
        let sum = sum.select(&self.double::<A>(), same);
        sum.select(other, self.z.zero_mask()).select(self, other.z.zero_mask())
    }

    /// Adds any two points, in a time that reveals whether they are special cases.
    pub(super) fn add_public<A: Arithmetic>(&self, other: &Self) -> Self {
        if self.is_infinity() {
            return *other;
        }
        if other.is_infinity() {
            return *self;
        }
        match self.sum::<A>(other) {
            (_, Fe::ZERO, Fe::ZERO) => self.double::<A>(),
            (sum, _, _) => sum,
        }
    }

    /// Adds two different points. Also returns the differences of their x and of their y.
    #[inline(always)]
    fn sum<A: Arithmetic>(&self, other: &Self) -> (Self, Fe, Fe) {
        let z1_square = A::sqr(&self.z);
        let z2_square = A::sqr(&other.z);
        let zy_1 = A::mul(&self.y, &other.z);
        let zy_2 = A::mul(&other.y, &self.z);
        let u1 = A::mul(&self.x, &z2_square);
        let u2 = A::mul(&other.x, &z1_square);
        let s1 = A::mul(&zy_1, &z2_square);
        let s2 = A::mul(&zy_2, &z1_square);
        let (h, r) = (A::sub(&u2, &u1), A::sub(&s2, &s1));
        let h_square = A::sqr(&h);
        let r_square = A::sqr(&r);
        let h_cube = A::mul(&h_square, &h);
        let v = A::mul(&u1, &h_square);
        let z = A::mul(&self.z, &other.z);
        let y_part = A::mul(&s1, &h_cube);
        let x = A::sub(&A::sub(&r_square, &h_cube), &A::add(&v, &v));
        let z = A::mul(&h, &z);
        let y = A::sub(&A::mul(&r, &A::sub(&v, &x)), &y_part);
        (Self { x, y, z }, h, r)
    }

    /// Returns whether the point's x is `x`, without a division.
    pub(super) fn has_x<A: Arithmetic>(&self, x: &Fe) -> bool {
        A::mul(x, &A::sqr(&self.z)) == self.x
    }
}
