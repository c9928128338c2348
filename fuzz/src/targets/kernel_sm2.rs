//! SM2's curve: multiples of points and arithmetic modulo its order, with scalars and points at the
//! edges. Invariant: the kernel, the portable code, and AWS-LC's code for any curve compute the same.

use wraith_aws_lc::bignum;
use wraith_aws_lc::reference::{Sm2Point, is_on_sm2_curve, sm2_add, sm2_sum};
use wraith_kernels::sm2::{
    Affine, BYTES, Scalar, multiply, multiply_base, multiply_sum, sum_has_x,
};

use crate::input::Input;
use crate::levels::same;

type Number = [u8; BYTES];

/// The order of the base point, most significant limb first.
const N: [u64; 4] =
    [0xffff_fffe_ffff_ffff, 0xffff_ffff_ffff_ffff, 0x7203_df6b_21c6_052b, 0x53bb_f409_39d5_4123];
/// The prime of the field, likewise.
const P: [u64; 4] =
    [0xffff_fffe_ffff_ffff, 0xffff_ffff_ffff_ffff, 0xffff_ffff_0000_0000, 0xffff_ffff_ffff_ffff];
const ZERO: Number = [0; BYTES];

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let operation = input.byte() % 6;
    let scalar = scalar(&mut input);
    let is_zero = scalar.is_zero();
    match operation {
        0 if !is_zero => {
            let found = same(|| multiply_base(&scalar).to_coordinates());
            let base = Affine::G.to_coordinates();
            assert_eq!(Some(found), sm2_sum(&scalar.to_bytes(), &ZERO, &base), "AWS-LC");
        }
        1 if !is_zero => {
            let point = point(&mut input);
            let found = same(|| multiply(&scalar, &point).to_coordinates());
            assert_eq!(Some(found), times(&scalar, &point), "AWS-LC");
        }
        2 if !is_zero => sum(&mut input, &scalar),
        3 => verification(&mut input, &scalar),
        4 => lifted(&mut input),
        _ => modulo_order(&mut input, &scalar),
    }
}

/// Returns a multiple by AWS-LC.
fn times(scalar: &Scalar, point: &Affine) -> Option<Sm2Point> {
    sm2_sum(&ZERO, &scalar.to_bytes(), &point.to_coordinates())
}

/// Returns a number of 256 bits, often at an edge.
pub(super) fn number(input: &mut Input<'_>, order: &[u64; 4]) -> Number {
    let near = |limbs: [u64; 4]| -> Number {
        limbs.map(u64::to_be_bytes).as_flattened().try_into().expect("32 bytes")
    };
    let [n3, n2, n1, n0] = *order;
    let small = u64::from(input.byte());
    let half = [n3 >> 1, n3 << 63 | n2 >> 1, n2 << 63 | n1 >> 1, n1 << 63 | n0 >> 1];
    match input.byte() % 7 {
        0 => near([0, 0, 0, small]),
        1 => near([n3, n2, n1, n0 - small]),
        2 => near([half[0], half[1], half[2], half[3].wrapping_add(small).wrapping_sub(8)]),
        3 => {
            let mut power = ZERO;
            power[usize::from(input.byte()) % BYTES] = 1 << (small % 8);
            power
        }
        4 => {
            let mut ones = [0xff; BYTES];
            ones[..usize::from(input.byte()) % (BYTES + 1)].fill(0);
            ones
        }
        5 => near([n3, n2, n1, n0.wrapping_add(small)]),
        _ => input.content_array(),
    }
}

fn scalar(input: &mut Input<'_>) -> Scalar {
    Scalar::reduced(&number(input, &N))
}

fn point(input: &mut Input<'_>) -> Affine {
    let x = number(input, &P);
    let kind = input.byte();
    let lifted = Affine::from_x(&x, kind & 1 == 1);
    match (kind / 2 % 3, lifted) {
        (0, Some(point)) => point,
        (1, _) => Affine::G,
        _ => match Scalar::reduced(&x) {
            scalar if scalar.is_zero() => Affine::G,
            scalar => multiply_base(&scalar),
        },
    }
}

/// Compares `scalar` · (`point` + `factor` · `other`).
fn sum(input: &mut Input<'_>, scalar: &Scalar) {
    let (a, b) = (point(input), point(input));
    let factor = self::scalar(input);
    let found = same(|| multiply_sum(scalar, &a, &factor, &b).map(Affine::to_coordinates));
    // As scalar · point + (scalar · factor) · other.
    let expected = match (times(scalar, &a), times(&scalar.mul(&factor), &b)) {
        (sum, None) | (None, sum) => sum,
        (Some(first), Some(second)) => sm2_add(&first, &second),
    };
    assert_eq!(found, expected, "the sum of AWS-LC");
}

fn verification(input: &mut Input<'_>, base_scalar: &Scalar) {
    let (scalar, point, other) = (scalar(input), point(input), scalar(input));
    let (first, second) = (base_scalar.to_bytes(), scalar.to_bytes());
    let sum = sm2_sum(&first, &second, &point.to_coordinates());
    let right = sum.map(|(x, _)| Scalar::reduced(&x));
    for x in [right.unwrap_or(other), other] {
        let found = same(|| sum_has_x(base_scalar, &scalar, &point, &x));
        assert_eq!(found, right == Some(x), "whether the sum has this x");
    }
}

fn lifted(input: &mut Input<'_>) {
    let (x, y) = (number(input, &P), number(input, &P));
    same(|| Affine::from_coordinates(&x, &y).map(Affine::to_coordinates));
    assert_eq!(Affine::from_coordinates(&x, &y).is_some(), is_on_sm2_curve(&(x, y)), "AWS-LC");
    for is_odd in [false, true] {
        let Some(point) = Affine::from_x(&x, is_odd) else { continue };
        let (found, y) = point.to_coordinates();
        assert_eq!((found, y[BYTES - 1] & 1 == 1), (x, is_odd));
        assert!(is_on_sm2_curve(&(x, y)), "it is on the curve");
    }
}

/// Compares sums, products, inverses and remainders modulo the order.
fn modulo_order(input: &mut Input<'_>, a: &Scalar) {
    let b = scalar(input);
    let limbs = |number: Number| {
        let mut limbs: Vec<u64> =
            number.as_chunks().0.iter().map(|limb| u64::from_be_bytes(*limb)).collect();
        limbs.reverse();
        limbs
    };
    let n: Vec<u64> = N.iter().rev().copied().collect();
    let rest = |number: &[u64]| bignum::divide(number, &n).expect("the order is not zero").1;
    let (x, y) = (limbs(a.to_bytes()), limbs(b.to_bytes()));
    let product = bignum::multiply(&x, &y).expect("there is memory");
    assert_eq!(limbs(a.mul(&b).to_bytes()), rest(&product), "the product");
    assert_eq!(a.add(&b).sub(&b).to_bytes(), a.to_bytes(), "a sum and its difference");
    if !a.is_zero() {
        let inverse = same(|| a.invert().to_bytes());
        assert_eq!(Some(limbs(inverse)), bignum::inverse(&x, &n), "the inverse");
    }
    let mut wide = [0; 2 * BYTES];
    wide[..BYTES].copy_from_slice(&number(input, &N));
    wide[BYTES..].copy_from_slice(&number(input, &N));
    let (high, low) = wide.split_at(BYTES);
    let number =
        [limbs(low.try_into().expect("32 bytes")), limbs(high.try_into().expect("32 bytes"))];
    assert_eq!(
        limbs(Scalar::reduced_wide(&wide).to_bytes()),
        rest(&number.concat()),
        "a remainder"
    );
}
