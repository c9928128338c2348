//! Big integers compared with AWS-LC: numbers of every length, including runs of zeros and of ones.

use proptest::prelude::*;
use wraith_aws_lc::reference;
use wraith_suite::bignum::{Error, Uint};

fn aws_lc(operation: fn(&[u8], &[u8]) -> Vec<u8>, a: &Uint, b: &Uint) -> Uint {
    Uint::from_be_bytes(&operation(&a.to_be_bytes(), &b.to_be_bytes())).unwrap()
}

fn aws_lc_power(base: &Uint, exponent: &Uint, modulus: &Uint) -> Uint {
    let [base, exponent, modulus] = [base, exponent, modulus].map(Uint::to_be_bytes);
    Uint::from_be_bytes(&reference::power(&base, &exponent, &modulus)).unwrap()
}

/// Generates numbers of up to `most` limbs, of which many are 0 or all ones.
fn numbers(most: usize) -> impl Strategy<Value = Uint> {
    let limb = prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), Just(1), Just(1 << 63)];
    proptest::collection::vec(limb, 0..=most).prop_map(|limbs| Uint::from_limbs(limbs).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn sums_and_differences_are_those_of_aws_lc(a in numbers(70), b in numbers(70)) {
        prop_assert_eq!(a.add(&b).unwrap(), aws_lc(reference::sum, &a, &b));
        let (large, small) = if a >= b { (&a, &b) } else { (&b, &a) };
        prop_assert_eq!(large.sub(small).unwrap(), aws_lc(reference::difference, large, small));
        prop_assert_eq!(&large.sub(small).unwrap().add(small).unwrap(), large);
        if a != b {
            prop_assert_eq!(small.sub(large), Err(Error::Negative));
        }
    }

    #[test]
    fn products_are_those_of_aws_lc(a in numbers(150), b in numbers(150)) {
        let expected = aws_lc(reference::product, &a, &b);
        prop_assert_eq!(&a.mul(&b).unwrap(), &expected);
        let mut out = a.clone();
        b.mul_into(&a, &mut out).unwrap();
        prop_assert_eq!(&out, &expected);
    }

    #[test]
    fn quotients_and_remainders_make_the_number_again(a in numbers(80), b in numbers(40)) {
        prop_assume!(!b.is_zero());
        let (quotient, remainder) = a.div_rem(&b).unwrap();
        prop_assert!(remainder < b);
        prop_assert_eq!(quotient.mul(&b).unwrap().add(&remainder).unwrap(), a);
    }

    #[test]
    fn bytes_and_digits_are_the_number_again(a in numbers(40), zeros in 0_usize..10) {
        prop_assert_eq!(&Uint::from_be_bytes(&a.to_be_bytes()).unwrap(), &a);
        prop_assert_eq!(&Uint::from_hex(&a.to_hex()).unwrap(), &a);
        let padded = format!("{}{}", "0".repeat(zeros), a.to_hex().to_uppercase());
        prop_assert_eq!(&Uint::from_hex(&padded).unwrap(), &a);
        let mut bytes = vec![1; a.bits().div_ceil(8) + zeros];
        a.write_be_bytes(&mut bytes).unwrap();
        prop_assert!(bytes[..zeros].iter().all(|byte| *byte == 0));
        prop_assert_eq!(&Uint::from_be_bytes(&bytes).unwrap(), &a);
    }

    #[test]
    fn an_inverse_times_the_number_is_one(a in numbers(20), n in numbers(20)) {
        prop_assume!(!n.is_zero());
        let one = Uint::from(1);
        let gcd = a.gcd(&n).unwrap();
        prop_assert!(n.rem(&gcd).unwrap().is_zero() && a.rem(&gcd).unwrap().is_zero());
        match a.mod_inverse(&n) {
            Ok(inverse) => {
                prop_assert!(inverse < n);
                prop_assert_eq!(a.mul(&inverse).unwrap().rem(&n).unwrap(), one);
            }
            Err(error) => {
                prop_assert_eq!(error, Error::NoInverse);
                prop_assert!(gcd != one || n == one);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn powers_are_those_of_aws_lc(base in numbers(40), exponent in numbers(6), modulus in numbers(40)) {
        prop_assume!(modulus.is_odd());
        let expected = aws_lc_power(&base, &exponent, &modulus);
        prop_assert_eq!(base.mod_exp(&exponent, &modulus).unwrap(), expected);
    }
}

fn ones(bits: usize) -> Uint {
    let hex = format!("{:x}{}", (1_u32 << (bits % 4)) - 1, "f".repeat(bits / 4));
    Uint::from_hex(&hex).unwrap()
}

#[test]
fn powers_modulo_numbers_of_every_size_are_those_of_aws_lc() {
    let exponent = Uint::from_hex("f00f0000000000000000000000000000001").unwrap();
    let lengths =
        [2, 3, 50, 51, 52, 1246, 1247, 2078, 2079, 3326, 4158, 6238, 8191, 8192, 8318, 8319, 9000];
    for bits in lengths {
        let modulus = ones(bits);
        let below = modulus.sub(&Uint::from(1)).unwrap();
        let twice = modulus.add(&below).unwrap();
        for base in [
            Uint::zero(),
            Uint::from(1),
            Uint::from(2),
            ones(bits - 1),
            below,
            modulus.clone(),
            twice,
        ] {
            let expected = aws_lc_power(&base, &exponent, &modulus);
            assert_eq!(base.mod_exp(&exponent, &modulus).unwrap(), expected, "{bits} {base:?}");
        }
    }
}

#[test]
fn anything_to_the_power_of_zero_is_one_but_modulo_one() {
    let (zero, one) = (Uint::zero(), Uint::from(1));
    for base in [&zero, &one, &ones(300)] {
        assert_eq!(base.mod_exp(&zero, &ones(200)).unwrap(), one);
        assert_eq!(base.mod_exp(&zero, &one).unwrap(), zero);
    }
}

#[test]
fn impossible_parameters_are_refused() {
    let (zero, two) = (Uint::zero(), Uint::from(2));
    assert_eq!(two.div_rem(&zero).unwrap_err(), Error::DivisionByZero);
    assert_eq!(two.mod_exp(&two, &zero), Err(Error::DivisionByZero));
    assert_eq!(two.mod_exp(&two, &Uint::from(6)), Err(Error::EvenModulus));
    assert_eq!(two.mod_inverse(&Uint::from(6)), Err(Error::NoInverse));
    assert_eq!(two.mod_inverse(&zero), Err(Error::DivisionByZero));
    let largest = ones(Uint::BITS_MAX);
    assert_eq!(largest.add(&Uint::from(1)), Err(Error::TooLarge));
    assert_eq!(largest.mul(&two), Err(Error::TooLarge));
    assert_eq!(Uint::from_be_bytes(&[1; Uint::BITS_MAX / 8 + 1]), Err(Error::TooLarge));
    assert_eq!(Uint::from_limbs(vec![1; Uint::LIMBS_MAX + 1]), Err(Error::TooLarge));
    assert_eq!(Uint::from_hex(&"1".repeat(Uint::BITS_MAX / 4 + 1)), Err(Error::TooLarge));
    for digits in ["", "0x1", "-1", " 1", "g", "1\0", "é"] {
        assert_eq!(Uint::from_hex(digits), Err(Error::InvalidHex), "{digits:?}");
    }
    assert_eq!(Uint::from(256).write_be_bytes(&mut [0]), Err(Error::NoRoom));
}

#[test]
fn digits_are_the_number_that_aws_lc_reads() {
    let digits = "123456789abcdef0fedcba9876543210123456789";
    let number = Uint::from_be_bytes(&reference::from_hex(digits)).unwrap();
    assert_eq!(number, Uint::from_hex(digits).unwrap());
    assert_eq!(*number.to_hex(), digits);
}

#[test]
fn a_number_is_not_printed() {
    assert_eq!(format!("{:?}", Uint::from(0x1234)), "Uint { bits: 13, .. }");
}
