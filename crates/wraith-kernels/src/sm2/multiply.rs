//! Point multiplication.
//!
//! A scalar is split into windows with signed digits (Booth), so that a table has half the points.
//! The base point has one table for each window, built once, so its multiples need no doubling
//! ([`base`]).
//!
//! [`secret`] and [`base_secret`] read every point of a table and take the same time for all
//! scalars. [`public`] and [`base_public`] are for verification, where nothing is secret.

use std::hint::black_box;
use std::sync::OnceLock;

use zeroize::Zeroize;

use super::super::digits;
use super::field::{Arithmetic, Fe, Limbs, Portable, invert};
use super::point::{Affine, G, Jacobian};
use super::scalar::Scalar;

/// Bits of a window of the base point, and the number of windows. The last one has room for the
/// carry of the digit below.
const BASE_BITS: usize = 6;
const BASE_WINDOWS: usize = 256 / BASE_BITS + 1;
const BASE_POINTS: usize = 1 << (BASE_BITS - 1);
/// Bits of a window of another point.
const BITS: usize = 5;
const WINDOWS: usize = 256 / BITS + 1;
const POINTS: usize = 1 << (BITS - 1);

/// For window i, the multiples 1 to 32 of 2^(6i) · G: 88 KiB.
type BaseTable = [[Affine; BASE_POINTS]; BASE_WINDOWS];

/// Returns digit `i` of a number in windows of `bits` bits, from −2^(bits − 1) to 2^(bits − 1): its
/// absolute value, and all ones if it is negative.
#[inline(always)]
fn digit(number: &Limbs, bits: usize, i: usize) -> (u64, u64) {
    // The bits of the window, and the bit below, which the window below has borrowed.
    let at = (i * bits).wrapping_sub(1);
    let window = if i == 0 {
        number[0] << 1
    } else {
        let (limb, shift) = (at / 64, at % 64);
        let low = number[limb] >> shift;
        if limb < 3 { low | (number[limb + 1] << 1) << (63 - shift) } else { low }
    };
    let window = window & ((1 << (bits + 1)) - 1);
    let negative = black_box((window >> bits).wrapping_neg());
    let mask = (1 << (bits + 1)) - 1;
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

/// Returns the table of the base point.
fn base_table() -> &'static BaseTable {
    static TABLE: OnceLock<Box<BaseTable>> = OnceLock::new();
    TABLE.get_or_init(make_base_table)
}

fn make_base_table() -> Box<BaseTable> {
    let mut points = Vec::with_capacity(BASE_WINDOWS * BASE_POINTS);
    let mut first = G.to_jacobian();
    for _ in 0..BASE_WINDOWS {
        let start = points.len();
        points.push(first);
        points.push(first.double::<Portable>());
        for i in 2..BASE_POINTS {
            points.push(points[start + i - 1].add::<Portable>(&first));
        }
        first = points[start + BASE_POINTS - 1].double::<Portable>();
    }
    let affine = all_affine(&points);
    let mut table = Box::new([[Affine::NONE; BASE_POINTS]; BASE_WINDOWS]);
    for (window, points) in table.iter_mut().zip(affine.chunks_exact(BASE_POINTS)) {
        window.copy_from_slice(points);
    }
    table
}

/// Converts points to affine coordinates, with one inversion for all. None is at infinity.
fn all_affine(points: &[Jacobian]) -> Vec<Affine> {
    type A = Portable;
    let mut products = Vec::with_capacity(points.len());
    let mut product = Fe::ONE;
    for point in points {
        products.push(product);
        product = A::mul(&product, &point.z);
    }
    let mut inverse = invert::<A>(&product);
    let mut out = vec![Affine::NONE; points.len()];
    for ((out, point), product) in out.iter_mut().zip(points).zip(&products).rev() {
        let z = A::mul(&inverse, product);
        inverse = A::mul(&inverse, &point.z);
        let square = A::sqr(&z);
        *out = Affine { x: A::mul(&point.x, &square), y: A::mul(&point.y, &A::mul(&square, &z)) };
    }
    out
}

/// Returns point number `size` (from 1) of a window, or (0, 0) for 0. Reads all points.
#[inline(always)]
fn choose(window: &[Affine; BASE_POINTS], size: u64) -> Affine {
    let mut chosen = [0u64; 8];
    for (point, i) in window.iter().zip(1..) {
        let mask = equal_mask(size, i);
        for j in 0..4 {
            chosen[j] |= point.x.0[j] & mask;
            chosen[j + 4] |= point.y.0[j] & mask;
        }
    }
    let [x0, x1, x2, x3, y0, y1, y2, y3] = chosen;
    Affine { x: Fe([x0, x1, x2, x3]), y: Fe([y0, y1, y2, y3]) }
}

/// Returns `scalar` · G.
///
/// The sum of the lower windows never equals the next window's point. It is below half the weight
/// of that point, and the whole is below n.
#[inline(always)]
pub(super) fn base<A: Arithmetic>(
    scalar: &Scalar,
    choose: impl Fn(&[Affine; BASE_POINTS], u64) -> Affine,
) -> Jacobian {
    let mut sum = Jacobian::INFINITY;
    for (i, window) in base_table().iter().enumerate() {
        let (size, negative) = digit(&scalar.0, BASE_BITS, i);
        sum = sum.add_affine::<A>(&choose(window, size).negate_if(negative));
    }
    sum
}

/// Returns `scalar` · `point` for a secret scalar.
///
/// Each window needs doublings of the sum so far and one addition. Only the last addition can meet
/// the same point, because the sum before is smaller than n.
pub(super) fn secret<A: Arithmetic>(scalar: &Scalar, point: &Jacobian) -> Jacobian {
    let mut table = [*point; POINTS];
    table[1] = point.double::<A>();
    for i in 2..POINTS {
        table[i] =
            if i % 2 == 1 { table[i / 2].double::<A>() } else { table[i - 1].add::<A>(point) };
    }
    let take = |i| {
        let (size, negative) = digit(&scalar.0, BITS, i);
        let mut chosen = Jacobian { x: Fe::ZERO, y: Fe::ZERO, z: Fe::ZERO };
        for (point, i) in table.iter().zip(1..) {
            let mask = equal_mask(size, i);
            for j in 0..4 {
                chosen.x.0[j] |= point.x.0[j] & mask;
                chosen.y.0[j] |= point.y.0[j] & mask;
                chosen.z.0[j] |= point.z.0[j] & mask;
            }
        }
        chosen.negate_if(negative)
    };
    let mut sum = take(WINDOWS - 1);
    for i in (0..WINDOWS - 1).rev() {
        for _ in 0..BITS {
            sum = sum.double::<A>();
        }
        sum = if i == 0 { sum.add_any::<A>(&take(i)) } else { sum.add::<A>(&take(i)) };
    }
    table.zeroize();
    sum
}

/// Returns `scalar` · `point` where neither is secret.
pub(super) fn public<A: Arithmetic>(scalar: &Scalar, point: &Jacobian) -> Jacobian {
    let twice = point.double::<A>();
    let mut odd = [*point; 1 << (digits::BITS - 2)];
    for i in 1..odd.len() {
        odd[i] = odd[i - 1].add_public::<A>(&twice);
    }
    let mut sum = Jacobian::INFINITY;
    for &digit in digits::sparse(&scalar.0).iter().rev() {
        if !sum.is_infinity() {
            sum = sum.double::<A>();
        }
        if digit != 0 {
            let negative = if digit < 0 { u64::MAX } else { 0 };
            let at = usize::from(digit.unsigned_abs() / 2);
            sum = sum.add_public::<A>(&odd[at].negate_if(negative));
        }
    }
    sum
}

/// Returns `scalar` · G where nothing is secret.
pub(super) fn base_public<A: Arithmetic>(scalar: &Scalar) -> Jacobian {
    base::<A>(scalar, |window, size| match size {
        0 => Affine::NONE,
        _ => window[size as usize - 1],
    })
}

/// Returns `scalar` · G for a secret scalar.
pub(super) fn base_secret<A: Arithmetic>(scalar: &Scalar) -> Jacobian {
    base::<A>(scalar, choose)
}
