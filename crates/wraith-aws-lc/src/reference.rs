//! Functions of AWS-LC that only tests of other implementations need.

use std::ffi::CString;
use std::ptr;

use aws_lc_sys as aws;

use crate::object::{Owned, number, succeeded};

type Operation =
    unsafe extern "C" fn(*mut aws::BIGNUM, *const aws::BIGNUM, *const aws::BIGNUM) -> i32;

fn bytes(number: &Owned<aws::BIGNUM>) -> Vec<u8> {
    // SAFETY: the number is live, and the buffer has its size.
    unsafe {
        let mut bytes = vec![0; aws::BN_num_bytes(number.as_ptr()) as usize];
        aws::BN_bn2bin(number.as_ptr(), bytes.as_mut_ptr());
        bytes
    }
}

fn computed(operation: Operation, a: &[u8], b: &[u8]) -> Vec<u8> {
    let [a, b, out] = [a, b, &[]].map(|bytes| number(bytes).expect("there is memory"));
    // SAFETY: all three are live.
    assert!(succeeded(unsafe { operation(out.as_ptr(), a.as_ptr(), b.as_ptr()) }));
    bytes(&out)
}

/// Returns the sum of two big-endian numbers.
#[must_use]
pub fn sum(a: &[u8], b: &[u8]) -> Vec<u8> {
    computed(aws::BN_add, a, b)
}

/// Returns the difference of two big-endian numbers, the larger one first.
#[must_use]
pub fn difference(a: &[u8], b: &[u8]) -> Vec<u8> {
    computed(aws::BN_sub, a, b)
}

/// Returns the product of two big-endian numbers.
#[must_use]
pub fn product(a: &[u8], b: &[u8]) -> Vec<u8> {
    unsafe extern "C" fn multiply(
        out: *mut aws::BIGNUM,
        a: *const aws::BIGNUM,
        b: *const aws::BIGNUM,
    ) -> i32 {
        // SAFETY: guaranteed by the caller; the context is new.
        unsafe {
            let context = Owned::new(aws::BN_CTX_new()).expect("there is memory");
            aws::BN_mul(out, a, b, context.as_ptr())
        }
    }
    computed(multiply, a, b)
}

/// Returns `base^exponent` modulo an odd `modulus`, big-endian. Not constant time.
#[must_use]
pub fn power(base: &[u8], exponent: &[u8], modulus: &[u8]) -> Vec<u8> {
    let [x, e, n, out] =
        [base, exponent, modulus, &[]].map(|bytes| number(bytes).expect("there is memory"));
    // SAFETY: all are live.
    let made = unsafe {
        let context = Owned::new(aws::BN_CTX_new()).expect("there is memory");
        aws::BN_mod_exp(out.as_ptr(), x.as_ptr(), e.as_ptr(), n.as_ptr(), context.as_ptr())
    };
    assert!(succeeded(made));
    bytes(&out)
}

/// Returns the big-endian number of hexadecimal digits.
#[must_use]
pub fn from_hex(digits: &str) -> Vec<u8> {
    let text = CString::new(digits).expect("digits");
    let mut number = ptr::null_mut();
    // SAFETY: the text ends with a zero byte, and AWS-LC allocates a new number.
    let number = unsafe {
        assert_ne!(aws::BN_hex2bn(&raw mut number, text.as_ptr()), 0);
        Owned::new(number)
    };
    bytes(&number.expect("it was read"))
}

/// Returns the prime of the MODP group (RFC 3526) with `bits` bits.
#[must_use]
pub fn modp_prime(bits: usize) -> Option<Vec<u8>> {
    let make = match bits {
        2048 => aws::BN_get_rfc3526_prime_2048,
        3072 => aws::BN_get_rfc3526_prime_3072,
        4096 => aws::BN_get_rfc3526_prime_4096,
        6144 => aws::BN_get_rfc3526_prime_6144,
        8192 => aws::BN_get_rfc3526_prime_8192,
        _ => return None,
    };
    // SAFETY: a new number is made.
    unsafe { Owned::new(make(ptr::null_mut())) }.as_ref().map(bytes)
}

/// Returns the prime of the FFDHE group (RFC 7919) with `bits` bits, of those that AWS-LC has.
#[must_use]
pub fn ffdhe_prime(bits: usize) -> Option<Vec<u8>> {
    let make = match bits {
        2048 => aws::DH_get_rfc7919_2048,
        4096 => aws::DH_get_rfc7919_4096,
        _ => return None,
    };
    // SAFETY: a new group is made, its prime is copied, and it is freed.
    let prime = unsafe {
        let group = make();
        let prime = Owned::new(aws::BN_dup(aws::DH_get0_p(group)));
        aws::DH_free(group);
        prime
    };
    prime.as_ref().map(bytes)
}
