//! Arithmetic of SM2's curve (GB/T 32918.5): point multiplication for signatures, encryption and
//! key exchange.
//!
//! Multiples of the base point come from a table and need no doublings. Multiples of other points
//! use windows of five bits.
//!
//! This is our own implementation. The formulas are add-1998-cmo-2 and a relative of dbl-2001-b of
//! the Explicit-Formulas Database. On Zen 4, a secret multiple of the base point takes about 20,000
//! cycles, a secret multiple of another point 145,000, and the sum of a verification 155,000.

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
mod adx;
mod field;
mod multiply;
mod point;
mod scalar;
#[cfg(test)]
mod tests;

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
use crate::detect::{Kernel, Purpose, needs};
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
use crate::self_test::Inputs;
use field::{Arithmetic, Fe, Portable};
pub use point::Affine;
pub use scalar::Scalar;

/// Size of a coordinate and of a scalar in bytes.
pub const BYTES: usize = 32;

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) static KERNEL: Kernel = Kernel::new("SM2", needs::ADX, Purpose::Keys, || {
    let mut inputs = Inputs::new();
    let secret = Scalar::reduced(&inputs.bytes());
    let point = multiply::base_secret::<Portable>(&secret).to_affine::<Portable>();
    let both = |own: Affine| own.to_coordinates() == point.to_coordinates();
    let times = |scalar: &Scalar| {
        let of_base = multiply::base_public::<field::Adx>(scalar).to_affine::<field::Adx>();
        let of_point = multiply::secret::<field::Adx>(scalar, &Affine::G.to_jacobian());
        (of_base, of_point.to_affine::<field::Adx>())
    };
    let (of_base, of_point) = times(&secret);
    both(multiply::base_secret::<field::Adx>(&secret).to_affine::<field::Adx>())
        && both(of_base)
        && both(of_point)
});

crate::detect::features!(KERNEL);

/// Calls a function with the arithmetic of this processor.
macro_rules! with_arithmetic {
    ($function:ident($($argument:expr),*)) => {{
        #[cfg(all(target_arch = "x86_64", feature = "simd"))]
        if KERNEL.is_available() {
            return $function::<field::Adx>($($argument),*);
        }
        $function::<Portable>($($argument),*)
    }};
}

impl Affine {
    /// The base point.
    pub const G: Self = point::G;

    /// Returns the point of two coordinates, or `None` unless it is on the curve.
    pub fn from_coordinates(x: &[u8; BYTES], y: &[u8; BYTES]) -> Option<Self> {
        let point = Self { x: Fe::from_bytes(x)?, y: Fe::from_bytes(y)? };
        point.is_on_curve::<Portable>().then_some(point)
    }

    /// Returns the point of an x and the lowest bit of its y, or `None` if there is none.
    pub fn from_x(x: &[u8; BYTES], is_odd: bool) -> Option<Self> {
        let point = Self::lift_x::<Portable>(Fe::from_bytes(x)?)?;
        Some(point.negate_if(u64::from((point.y.to_limbs()[0] & 1 == 1) != is_odd).wrapping_neg()))
    }

    /// Returns x and y.
    pub fn to_coordinates(self) -> ([u8; BYTES], [u8; BYTES]) {
        (self.x.to_bytes(), self.y.to_bytes())
    }
}

/// Returns `scalar` · G, in constant time. The scalar is not zero.
pub fn multiply_base(scalar: &Scalar) -> Affine {
    fn multiply<A: Arithmetic>(scalar: &Scalar) -> Affine {
        multiply::base_secret::<A>(scalar).to_affine::<A>()
    }
    with_arithmetic!(multiply(scalar))
}

/// Returns `scalar` · `point`, in a time that does not depend on the scalar. The scalar is not
/// zero.
pub fn multiply(scalar: &Scalar, point: &Affine) -> Affine {
    fn multiply<A: Arithmetic>(scalar: &Scalar, point: &Affine) -> Affine {
        multiply::secret::<A>(scalar, &point.to_jacobian()).to_affine::<A>()
    }
    with_arithmetic!(multiply(scalar, point))
}

/// Returns `scalar` · (`point` + `factor` · `other`), or `None` for the point at infinity.
///
/// The time depends on the points and the factor, but not on the scalar, which is not zero.
pub fn multiply_sum(
    scalar: &Scalar,
    point: &Affine,
    factor: &Scalar,
    other: &Affine,
) -> Option<Affine> {
    fn multiply<A: Arithmetic>(
        scalar: &Scalar,
        point: &Affine,
        factor: &Scalar,
        other: &Affine,
    ) -> Option<Affine> {
        let other = multiply::public::<A>(factor, &other.to_jacobian());
        let sum = other.add_public::<A>(&point.to_jacobian());
        (!sum.is_infinity()).then(|| multiply::secret::<A>(scalar, &sum).to_affine::<A>())
    }
    with_arithmetic!(multiply(scalar, point, factor, other))
}

/// Returns whether the x of `base_scalar` · G + `scalar` · `point` is `x` modulo n. The time
/// depends on all arguments.
pub fn sum_has_x(base_scalar: &Scalar, scalar: &Scalar, point: &Affine, x: &Scalar) -> bool {
    fn check<A: Arithmetic>(
        base_scalar: &Scalar,
        scalar: &Scalar,
        point: &Affine,
        x: &Scalar,
    ) -> bool {
        let sum = multiply::public::<A>(scalar, &point.to_jacobian());
        let sum = multiply::base_public::<A>(base_scalar).add_public::<A>(&sum);
        // n is below p, and 2n above it, so x may have been reduced once.
        let (larger, carry) = field::add(&x.0, &scalar::N);
        let candidates = [Some(x.0), (!carry).then_some(larger)];
        !sum.is_infinity()
            && candidates.iter().flatten().filter_map(Fe::from_limbs).any(|x| sum.has_x::<A>(&x))
    }
    with_arithmetic!(check(base_scalar, scalar, point, x))
}
