//! Compares the fast code with the portable code, and both with the laws of the curve.

use super::field::{Arithmetic, Fe, P, Portable, invert};
use super::point::Jacobian;
use super::*;

/// Returns random numbers and edge cases.
fn numbers(below: &field::Limbs) -> Vec<field::Limbs> {
    let bytes = crate::tests::bytes(32 * 200);
    let random = bytes.chunks_exact(32).map(|chunk| field::limbs(chunk.try_into().unwrap()));
    let last = field::sub(below, &[1, 0, 0, 0]).0;
    let half = [
        last[0] >> 1 | last[1] << 63,
        last[1] >> 1 | last[2] << 63,
        last[2] >> 1 | last[3] << 63,
        last[3] >> 1,
    ];
    let edges =
        [[0; 4], [1, 0, 0, 0], [2, 0, 0, 0], last, half, [u64::MAX, 0, 0, 0], [0, 0, 0, 1 << 63]];
    edges.into_iter().chain(random).filter(|number| field::is_below(number, below)).collect()
}

/// Returns a · b modulo `modulus`, one bit at a time.
fn slow_product(a: &field::Limbs, b: &field::Limbs, modulus: &field::Limbs) -> field::Limbs {
    let plus = |a: &field::Limbs, b: &field::Limbs| {
        let (sum, carry) = field::add(a, b);
        field::subtract_once(&sum, carry, modulus)
    };
    (0..256).rev().fold([0; 4], |product, i| {
        let product = plus(&product, &product);
        if b[i / 64] >> (i % 64) & 1 == 1 { plus(&product, a) } else { product }
    })
}

#[test]
fn products_are_those_of_adding_again_and_again() {
    let numbers = numbers(&P);
    for (a, b) in numbers.iter().zip(numbers.iter().rev()) {
        let product = Portable::mul(&Fe::from_limbs(a).unwrap(), &Fe::from_limbs(b).unwrap());
        assert_eq!(product.to_limbs(), slow_product(a, b, &P));
    }
    let scalars = self::numbers(&scalar::N);
    for (a, b) in scalars.iter().zip(scalars.iter().rev()) {
        assert_eq!(Scalar(*a).mul(&Scalar(*b)).0, slow_product(a, b, &scalar::N));
        let mut wide = [0; 64];
        wide[31] = 1;
        wide[32..].copy_from_slice(&field::bytes(b));
        // 2^256 is 2^256 − n modulo n.
        let rest = Scalar(field::sub(&[0; 4], &scalar::N).0);
        assert!(Scalar::reduced_wide(&wide) == rest.add(&Scalar(*b)));
    }
}

#[test]
#[cfg(all(target_arch = "x86_64", feature = "simd"))]
fn the_fast_products_are_the_portable_ones() {
    crate::tests::fast();
    if !KERNEL.is_available() {
        crate::tests::unchecked("this processor has no ADX");
        return;
    }
    let numbers: Vec<Fe> = numbers(&P).into_iter().map(Fe).collect();
    for a in &numbers {
        assert_eq!(field::Adx::sqr(a), Portable::sqr(a));
        for b in &numbers {
            assert_eq!(field::Adx::mul(a, b), Portable::mul(a, b), "{a:?} {b:?}");
        }
    }
}

#[test]
fn inverses_and_halves_undo() {
    for number in numbers(&P).into_iter().skip(1).take(40).map(Fe) {
        assert_eq!(Portable::mul(&invert::<Portable>(&number), &number), Fe::ONE);
        assert_eq!(number.half().double(), number);
        assert_eq!(number.sub(&Fe::ONE).add(&Fe::ONE), number);
    }
    assert_eq!(invert::<Portable>(&Fe::ZERO), Fe::ZERO);
    for number in numbers(&scalar::N).into_iter().skip(1).take(40).map(Scalar) {
        assert!(number.invert().mul(&number) == Scalar::ONE);
    }
}

/// Returns `scalar` · `point` by double-and-add, with the addition that accepts all points.
fn slow_multiple(scalar: &Scalar, point: &Affine) -> Jacobian {
    (0..256).rev().fold(Jacobian::INFINITY, |sum, i| {
        let sum = sum.add_any::<Portable>(&sum);
        let bit = scalar.0[i / 64] >> (i % 64) & 1;
        if bit == 1 { sum.add_any::<Portable>(&point.to_jacobian()) } else { sum }
    })
}

#[test]
fn multiples_are_those_of_doubling_and_adding_also_at_the_edges() {
    let near_n = (1..70).map(|i| field::sub(&scalar::N, &[i, 0, 0, 0]).0);
    let small = (1..70).map(|i| [i, 0, 0, 0]);
    let random = numbers(&scalar::N).into_iter().skip(1).take(30);
    let point = multiply_base(&Scalar([7, 8, 9, 10]));
    for scalar in near_n.chain(small).chain(random).map(Scalar) {
        let expected = slow_multiple(&scalar, &Affine::G).to_affine::<Portable>();
        assert!(expected.is_on_curve::<Portable>());
        assert_eq!(multiply_base(&scalar), expected, "{:x?}", scalar.0);
        assert_eq!(multiply(&scalar, &Affine::G), expected, "{:x?}", scalar.0);
        let portable = multiply::base_secret::<Portable>(&scalar).to_affine::<Portable>();
        assert_eq!(portable, expected);
        let public = multiply::public::<Portable>(&scalar, &Affine::G.to_jacobian());
        assert_eq!(public.to_affine::<Portable>(), expected, "{:x?}", scalar.0);
        let public = multiply::base_public::<Portable>(&scalar);
        assert_eq!(public.to_affine::<Portable>(), expected);
        let expected = slow_multiple(&scalar, &point).to_affine::<Portable>();
        assert_eq!(multiply(&scalar, &point), expected, "{:x?}", scalar.0);
        let portable = multiply::secret::<Portable>(&scalar, &point.to_jacobian());
        assert_eq!(portable.to_affine::<Portable>(), expected);
    }
}

#[test]
fn n_times_a_point_is_infinity() {
    let last = Scalar(field::sub(&scalar::N, &[1, 0, 0, 0]).0);
    let minus = multiply(&last, &Affine::G);
    assert_eq!(minus, Affine::G.negate_if(u64::MAX));
    let sum = minus.to_jacobian().add_any::<Portable>(&Affine::G.to_jacobian());
    assert!(sum.is_infinity());
    assert!(multiply_sum(&Scalar::ONE, &minus, &Scalar::ONE, &Affine::G).is_none());
    let twice = multiply_sum(&Scalar::ONE, &Affine::G, &Scalar::ONE, &Affine::G).unwrap();
    assert_eq!(twice, multiply(&Scalar([2, 0, 0, 0]), &Affine::G));
}

#[test]
fn an_x_has_two_points_or_none() {
    let (mut two, mut none) = (0, 0);
    for x in numbers(&P).iter().take(60).map(field::bytes) {
        match (Affine::from_x(&x, false), Affine::from_x(&x, true)) {
            (Some(even), Some(odd)) => {
                let (_, y) = even.to_coordinates();
                assert_eq!(y[31] & 1, 0);
                assert_eq!(Affine::from_coordinates(&x, &y), Some(even));
                assert_eq!(even.negate_if(u64::MAX), odd);
                two += 1;
            }
            (None, None) => none += 1,
            _ => panic!("one point of an x"),
        }
    }
    assert!(two > 10 && none > 10, "{two} {none}");
    assert!(Affine::from_x(&field::bytes(&P), false).is_none(), "not below p");
}
