//! Functions of AWS-LC that only tests of other implementations need.

use std::ffi::CString;
use std::ptr;
use std::sync::OnceLock;

use aws_lc_sys as aws;

use crate::object::{Owned, number, succeeded, write_number};

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

/// A mode of AES without authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say all")]
pub enum AesMode {
    Ecb,
    Cbc,
    /// With feedback of whole blocks.
    Cfb,
    Ofb,
    Ctr,
    /// For keys of 64 bytes only.
    Xts,
}

/// Encrypts or decrypts `text` in place, without padding. Returns `false` for lengths of the key or
/// of the text that AWS-LC does not take in this mode.
#[must_use]
pub fn aes(mode: AesMode, encrypt: bool, key: &[u8], iv: &[u8; 16], text: &mut [u8]) -> bool {
    use AesMode::*;
    // SAFETY: the functions have no preconditions and return constants.
    let cipher = unsafe {
        match (mode, key.len()) {
            (Ecb, 16) => aws::EVP_aes_128_ecb(),
            (Ecb, 24) => aws::EVP_aes_192_ecb(),
            (Ecb, 32) => aws::EVP_aes_256_ecb(),
            (Cbc, 16) => aws::EVP_aes_128_cbc(),
            (Cbc, 24) => aws::EVP_aes_192_cbc(),
            (Cbc, 32) => aws::EVP_aes_256_cbc(),
            (Cfb, 16) => aws::EVP_aes_128_cfb128(),
            (Cfb, 24) => aws::EVP_aes_192_cfb128(),
            (Cfb, 32) => aws::EVP_aes_256_cfb128(),
            (Ofb, 16) => aws::EVP_aes_128_ofb(),
            (Ofb, 24) => aws::EVP_aes_192_ofb(),
            (Ofb, 32) => aws::EVP_aes_256_ofb(),
            (Ctr, 16) => aws::EVP_aes_128_ctr(),
            (Ctr, 24) => aws::EVP_aes_192_ctr(),
            (Ctr, 32) => aws::EVP_aes_256_ctr(),
            (Xts, 64) => aws::EVP_aes_256_xts(),
            _ => return false,
        }
    };
    let mut len = 0;
    let Ok(text_len) = i32::try_from(text.len()) else { return false };
    // SAFETY: key and initialization vector have the lengths of the cipher. Each mode accepts the
    // same buffer as input and output, and writes as many bytes as it reads: there is no padding.
    unsafe {
        let Some(context) = Owned::new(aws::EVP_CIPHER_CTX_new()) else { return false };
        let (at, out) = (context.as_ptr(), text.as_mut_ptr());
        let no_engine = ptr::null_mut();
        let (key, iv, encrypt) = (key.as_ptr(), iv.as_ptr(), i32::from(encrypt));
        succeeded(aws::EVP_CipherInit_ex(at, cipher, no_engine, key, iv, encrypt))
            && succeeded(aws::EVP_CIPHER_CTX_set_padding(at, 0))
            && succeeded(aws::EVP_CipherUpdate(at, out, &raw mut len, out, text_len))
            && len == text_len
    }
}

/// SM2's curve (GB/T 32918.5), which AWS-LC lacks, computed by its code for any curve.
fn sm2_curve() -> Option<&'static Owned<aws::EC_GROUP>> {
    static CURVE: OnceLock<Option<Owned<aws::EC_GROUP>>> = OnceLock::new();
    let make = || {
        let [p, a, b, n, x, y] = [
            "FFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF00000000FFFFFFFFFFFFFFFF",
            "FFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF00000000FFFFFFFFFFFFFFFC",
            "28E9FA9E9D9F5E344D5A9E4BCF6509A7F39789F515AB8F92DDBCBD414D940E93",
            "FFFFFFFEFFFFFFFFFFFFFFFFFFFFFFFF7203DF6B21C6052B53BBF40939D54123",
            "32C4AE2C1F1981195F9904466A39C9948FE30BBFF2660BE1715A4589334C74C7",
            "BC3736A2F4F6779C59BDCEE36B692153D0A9877CC62A474002DF32E52139F0A0",
        ]
        .map(|digits| number(&from_hex(digits)).expect("there is memory"));
        let one = number(&[1])?;
        // SAFETY: all numbers are alive, and the group is new and ours.
        unsafe {
            let context = Owned::new(aws::BN_CTX_new())?;
            let (p, a, b) = (p.as_ptr(), a.as_ptr(), b.as_ptr());
            let group = Owned::new(aws::EC_GROUP_new_curve_GFp(p, a, b, context.as_ptr()))?;
            let point = Owned::new(aws::EC_POINT_new(group.as_ptr()))?;
            let (at, out) = (group.as_ptr(), point.as_ptr());
            let (x, y, no_context) = (x.as_ptr(), y.as_ptr(), ptr::null_mut());
            let set = aws::EC_POINT_set_affine_coordinates_GFp(at, out, x, y, no_context);
            (succeeded(set)
                && succeeded(aws::EC_GROUP_set_generator(at, out, n.as_ptr(), one.as_ptr())))
            .then_some(group)
        }
    };
    CURVE.get_or_init(make).as_ref()
}

/// A point that is not at infinity: x and y, big-endian.
pub type Sm2Point = ([u8; 32], [u8; 32]);

/// Returns a point of SM2's curve, or `None` if the coordinates are not on the curve.
fn sm2_point((x, y): &Sm2Point) -> Option<Owned<aws::EC_POINT>> {
    let group = sm2_curve().expect("the curve can be made");
    let (x, y) = (number(x)?, number(y)?);
    // SAFETY: the numbers are alive, and the point is new and of this group.
    unsafe {
        let point = Owned::new(aws::EC_POINT_new(group.as_ptr()))?;
        let (at, out, no_context) = (group.as_ptr(), point.as_ptr(), ptr::null_mut());
        let (x, y) = (x.as_ptr(), y.as_ptr());
        succeeded(aws::EC_POINT_set_affine_coordinates_GFp(at, out, x, y, no_context))
            .then_some(point)
    }
}

/// Returns the coordinates of a point of SM2's curve, or `None` for the point at infinity.
fn sm2_coordinates(point: &Owned<aws::EC_POINT>) -> Option<Sm2Point> {
    let group = sm2_curve().expect("the curve can be made");
    let [x, y] = [(); 2].map(|()| number(&[]).expect("there is memory"));
    let (mut x_bytes, mut y_bytes) = ([0; 32], [0; 32]);
    // SAFETY: the numbers and the point are alive, and the point is of this group.
    unsafe {
        let (at, point, no_context) = (group.as_ptr(), point.as_ptr(), ptr::null_mut());
        if aws::EC_POINT_is_at_infinity(at, point) == 1 {
            return None;
        }
        let (x, y) = (x.as_ptr(), y.as_ptr());
        let got = aws::EC_POINT_get_affine_coordinates_GFp(at, point, x, y, no_context);
        assert!(succeeded(got), "the point is not at infinity");
        assert!(write_number(x, &mut x_bytes) && write_number(y, &mut y_bytes), "both fit");
    }
    Some((x_bytes, y_bytes))
}

/// Returns whether the point is on SM2's curve.
#[must_use]
pub fn is_on_sm2_curve(point: &Sm2Point) -> bool {
    sm2_point(point).is_some()
}

/// Returns `base_scalar` · G + `scalar` · `point`, or `None` for the point at infinity. Not constant
/// time.
///
/// # Panics
/// If `point` is not on SM2's curve.
#[must_use]
pub fn sm2_sum(base_scalar: &[u8; 32], scalar: &[u8; 32], point: &Sm2Point) -> Option<Sm2Point> {
    let group = sm2_curve().expect("the curve can be made");
    let [base_scalar, scalar] = [base_scalar, scalar].map(|bytes| number(bytes).expect("memory"));
    let point = sm2_point(point).expect("the point is on the curve");
    // SAFETY: all numbers and points are alive, and the points are of this group.
    let sum = unsafe {
        let (at, no_context) = (group.as_ptr(), ptr::null_mut());
        let sum = Owned::new(aws::EC_POINT_new(at)).expect("there is memory");
        let (g, q, q_times) = (base_scalar.as_ptr(), point.as_ptr(), scalar.as_ptr());
        assert!(succeeded(aws::EC_POINT_mul(at, sum.as_ptr(), g, q, q_times, no_context)));
        sum
    };
    sm2_coordinates(&sum)
}

/// Returns the sum of two points, or `None` for the point at infinity.
///
/// # Panics
/// If a point is not on SM2's curve.
#[must_use]
pub fn sm2_add(a: &Sm2Point, b: &Sm2Point) -> Option<Sm2Point> {
    let group = sm2_curve().expect("the curve can be made");
    let [a, b] = [a, b].map(|point| sm2_point(point).expect("the point is on the curve"));
    // SAFETY: all points are alive and of this group. AWS-LC adds a point to itself, too.
    unsafe {
        let (at, no_context) = (group.as_ptr(), ptr::null_mut());
        assert!(succeeded(aws::EC_POINT_add(at, a.as_ptr(), a.as_ptr(), b.as_ptr(), no_context)));
    }
    sm2_coordinates(&a)
}

/// Returns whether this thread's error queue has an entry.
#[must_use]
pub fn has_errors() -> bool {
    // SAFETY: the function has no preconditions.
    unsafe { aws::ERR_peek_error() != 0 }
}

/// Returns the Poly1305 tag of `message`.
///
/// AWS-LC's code for SSE2 loses a carry for about one message in 2^51, and for chosen keys: see the
/// fuzz target `kernel_poly1305`. The AEADs use other code on a processor with SSE4.1.
#[must_use]
pub fn poly1305(key: &[u8; 32], message: &[u8]) -> [u8; 16] {
    /// As large and as aligned as AWS-LC requires of its state.
    #[repr(align(64))]
    struct State([u8; 512]);
    let (mut state, mut tag) = (State([0; 512]), [0; 16]);
    // SAFETY: `poly1305_state` has 512 bytes, and every pointer is passed with its length.
    unsafe {
        let state = (&raw mut state.0).cast();
        aws::CRYPTO_poly1305_init(state, key.as_ptr());
        aws::CRYPTO_poly1305_update(state, message.as_ptr(), message.len());
        aws::CRYPTO_poly1305_finish(state, tag.as_mut_ptr());
    }
    tag
}
