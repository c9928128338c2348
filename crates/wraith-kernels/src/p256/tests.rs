//! Compares the code with AWS-LC, and with the laws of the curve.

use super::field::{Fe, P, R2};
use super::*;
use wraith_aws_lc::ec::Curve;

use crate::limbs::subtract_once;

/// Returns the implementation, unless this processor does not support it.
fn code() -> Option<P256> {
    crate::tests::fast();
    let code = P256::new();
    if code.is_none() {
        crate::tests::unchecked("this processor has no AVX-512 IFMA");
    }
    code
}

/// Returns random numbers and edge cases.
fn numbers(below: &Limbs) -> Vec<Limbs> {
    let random = crate::tests::bytes(32 * 150);
    let random = random.as_chunks().0.iter().map(limbs);
    let edges = [[0; 4], [u64::MAX, 0, 0, 0], [0, u64::MAX, 0, 0], [0, 0, 0, 1 << 63]];
    let edges = edges.into_iter().chain([[u64::MAX; 4], [0, 0, u64::MAX, 0xffff_ffff_0000_0000]]);
    let small = (1..4).map(|i| [i, 0, 0, 0]);
    let large = (1..4).map(|i| sub(below, &[i, 0, 0, 0]).0);
    edges.chain(small).chain(large).chain(random).filter(|n| is_below(n, below)).collect()
}

/// Returns a · b modulo p, one bit at a time.
fn slow_product(a: &Limbs, b: &Limbs) -> Limbs {
    let plus = |a: &Limbs, b: &Limbs| {
        let (sum, carry) = add(a, b);
        subtract_once(&sum, carry, &P)
    };
    (0..256).rev().fold([0; 4], |product, i| {
        let product = plus(&product, &product);
        if b[i / 64] >> (i % 64) & 1 == 1 { plus(&product, a) } else { product }
    })
}

#[test]
fn numbers_are_added_subtracted_multiplied_and_inverted_modulo_the_prime() {
    let Some(P256(cpu)) = code() else { return };
    let numbers = numbers(&P);
    for a in &numbers {
        let fe = Fe(*a).mul(&R2, cpu);
        assert_eq!(fe.to_limbs(cpu), *a);
        assert_eq!(fe.sqr(cpu), fe.mul(&fe, cpu));
        let one = if *a == [0; 4] { Fe::ZERO } else { Fe::ONE };
        assert_eq!(fe.invert(cpu).mul(&fe, cpu), one);
        assert_eq!(fe.negate_if(u64::MAX).add(&fe), Fe::ZERO);
        assert_eq!(fe.negate_if(0), fe);
        for b in &numbers {
            let (sum, carry) = add(a, b);
            assert_eq!(Fe(*a).add(&Fe(*b)).0, subtract_once(&sum, carry, &P), "{a:x?} {b:x?}");
            assert_eq!(Fe(*a).add(&Fe(*b)).sub(&Fe(*b)).0, *a);
        }
    }
    for (a, b) in numbers.iter().zip(numbers.iter().rev()) {
        let product = Fe(*a).mul(&Fe(*b).mul(&R2, cpu), cpu);
        assert_eq!(product.0, slow_product(a, b), "{a:x?} {b:x?}");
    }
}

#[test]
fn public_keys_are_those_of_aws_lc_also_at_the_edges() {
    let Some(code) = code() else { return };
    let small = (1..70).map(|i| [i, 0, 0, 0]);
    let large = (1..70).map(|i| sub(&N, &[i, 0, 0, 0]).0);
    let powers = (0..256).map(|i| {
        let mut power = [0; 4];
        power[i / 64] = 1 << (i % 64);
        power
    });
    // For two scalars the last sum is of equal points. Its halves are (k − n) / 2 and (k + n) / 2
    // modulo n, each in its own lanes.
    let same = [
        0xf3b9_cacd_039c_daaf,
        0xbce6_f952_58e8_6104,
        0xffff_0000_0000_1fff,
        0xffc0_0000_fff8_0000,
    ];
    let same = [same, sub(&N, &same).0];
    let random = crate::tests::bytes(32 * 500);
    let random = random.as_chunks().0.iter().map(limbs);
    let mut checked = 0;
    for scalar in small.chain(large).chain(powers).chain(same).chain(random) {
        let scalar = bytes(&scalar);
        let expected = Curve::P256.public_key(&scalar);
        let found = code.public_key(&scalar);
        assert_eq!(found.as_ref().map(|point| &point[..]), expected.as_deref(), "{scalar:x?}");
        checked += usize::from(found.is_some());
    }
    assert!(checked > 800, "{checked}");
}

#[test]
fn invalid_private_keys_are_refused() {
    let Some(code) = code() else { return };
    for scalar in [[0; 4], N, add(&N, &[1, 0, 0, 0]).0, [u64::MAX; 4]] {
        assert_eq!(code.public_key(&bytes(&scalar)), None);
    }
    assert!(P256::is_scalar(&bytes(&sub(&N, &[1, 0, 0, 0]).0)));
}
