//! Big integers compared with AWS-LC: numbers of every length, including runs of zeros and of ones.

use std::ffi::CString;
use std::ptr;

use aws_lc_sys as aws;
use proptest::prelude::*;
use wraith_crypto::bignum::{Error, Uint};

/// A number of AWS-LC.
struct Number(*mut aws::BIGNUM);

impl Number {
    fn new(number: &Uint) -> Self {
        let bytes = number.to_be_bytes();
        // SAFETY: `bytes` has the length passed.
        Self(unsafe { aws::BN_bin2bn(bytes.as_ptr(), bytes.len(), ptr::null_mut()) })
    }

    fn uint(&self) -> Uint {
        // SAFETY: the number is live, and the buffer has its size.
        let bytes = unsafe {
            let mut bytes = vec![0; aws::BN_num_bytes(self.0) as usize];
            aws::BN_bn2bin(self.0, bytes.as_mut_ptr());
            bytes
        };
        Uint::from_be_bytes(&bytes).unwrap()
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        // SAFETY: the number is ours.
        unsafe { aws::BN_free(self.0) }
    }
}

type Operation = unsafe fn(*mut aws::BIGNUM, *const aws::BIGNUM, *const aws::BIGNUM) -> i32;

fn aws_lc(operation: Operation, a: &Uint, b: &Uint) -> Uint {
    let (a, b, out) = (Number::new(a), Number::new(b), Number::new(&Uint::zero()));
    // SAFETY: all three are live.
    assert_eq!(unsafe { operation(out.0, a.0, b.0) }, 1);
    out.uint()
}

unsafe fn sum(out: *mut aws::BIGNUM, a: *const aws::BIGNUM, b: *const aws::BIGNUM) -> i32 {
    // SAFETY: guaranteed by the caller.
    unsafe { aws::BN_add(out, a, b) }
}

unsafe fn difference(out: *mut aws::BIGNUM, a: *const aws::BIGNUM, b: *const aws::BIGNUM) -> i32 {
    // SAFETY: guaranteed by the caller.
    unsafe { aws::BN_sub(out, a, b) }
}

unsafe fn product(out: *mut aws::BIGNUM, a: *const aws::BIGNUM, b: *const aws::BIGNUM) -> i32 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let context = aws::BN_CTX_new();
        let code = aws::BN_mul(out, a, b, context);
        aws::BN_CTX_free(context);
        code
    }
}

fn aws_lc_power(base: &Uint, exponent: &Uint, modulus: &Uint) -> Uint {
    let (x, e, n) = (Number::new(base), Number::new(exponent), Number::new(modulus));
    let out = Number::new(&Uint::zero());
    // SAFETY: all are live.
    unsafe {
        let context = aws::BN_CTX_new();
        assert_eq!(aws::BN_mod_exp(out.0, x.0, e.0, n.0, context), 1);
        aws::BN_CTX_free(context);
    }
    out.uint()
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
        prop_assert_eq!(a.add(&b).unwrap(), aws_lc(sum, &a, &b));
        let (large, small) = if a >= b { (&a, &b) } else { (&b, &a) };
        prop_assert_eq!(large.sub(small).unwrap(), aws_lc(difference, large, small));
        prop_assert_eq!(&large.sub(small).unwrap().add(small).unwrap(), large);
        if a != b {
            prop_assert_eq!(small.sub(large), Err(Error::Negative));
        }
    }

    #[test]
    fn products_are_those_of_aws_lc(a in numbers(150), b in numbers(150)) {
        let expected = aws_lc(product, &a, &b);
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
    let text = CString::new(digits).unwrap();
    let mut number = ptr::null_mut();
    // SAFETY: the text ends with a zero byte, and AWS-LC allocates a new number.
    assert_ne!(unsafe { aws::BN_hex2bn(&raw mut number, text.as_ptr()) }, 0);
    let number = Number(number);
    assert_eq!(number.uint(), Uint::from_hex(digits).unwrap());
    assert_eq!(*number.uint().to_hex(), digits);
}

#[test]
fn a_number_is_not_printed() {
    assert_eq!(format!("{:?}", Uint::from(0x1234)), "Uint { bits: 13, .. }");
}
