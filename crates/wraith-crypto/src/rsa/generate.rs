//! Generation of a key from two [primes](super::prime): its exponents and its coefficient. The time
//! depends only on lengths.
#![allow(unsafe_code)]

use aws_lc_sys as aws;
use zeroize::Zeroizing;

use super::prime::{self, RandomLimbs};
use super::{E, modulo_e};
use crate::aws::{Owned, number};
use crate::bignum::{gcd, product};
use crate::kernels::montgomery::Modulus;

type Limbs = Zeroizing<Vec<u64>>;

/// Maximum number of pairs of primes to try. A pair fails if its private exponent is too short,
/// which never happens in practice.
const PAIRS_MAX: usize = 8;

/// Generates a key with a modulus of `128·limbs` bits, checked by AWS-LC. Returns `None` where the
/// processor does not support the kernel, or there is no memory.
pub(super) fn generate(limbs: usize) -> Option<Owned<aws::RSA>> {
    let mut pool = RandomLimbs::new();
    for _ in 0..PAIRS_MAX {
        let p = prime::random(limbs, None, &mut pool)?;
        let q = prime::random(limbs, Some(&p), &mut pool)?;
        let numbers = PrivateKeyNumbers::new(p, q)?;
        if is_long(&numbers.d) {
            return numbers.key();
        }
    }
    None
}

/// Returns whether the private exponent `d`, an odd number as long as the modulus, is above
/// `2^(bits / 2)` (FIPS 186-5, appendix A.1.1).
pub(super) fn is_long(d: &[u64]) -> bool {
    d[d.len() / 2..].iter().fold(0, |all, limb| all | limb) != 0
}

/// The numbers of an RSAPrivateKey (RFC 8017 §A.1.2), without the version and `e`.
struct PrivateKeyNumbers {
    n: Vec<u64>,
    d: Limbs,
    p: Limbs,
    q: Limbs,
    d_p: Limbs,
    d_q: Limbs,
    q_inverse: Limbs,
}

impl PrivateKeyNumbers {
    fn new(p: Limbs, q: Limbs) -> Option<Self> {
        // The larger prime is the first, so that the other is below it.
        let mut less = p.clone();
        let is_less = product::subtract_assign(&mut less, &q) == 1;
        let (p, q) = if is_less { (q, p) } else { (p, q) };
        let mut n = vec![0; 2 * p.len()];
        product::multiply(&mut n, &p, &q);
        let [p_less_1, q_less_1] = [&p, &q].map(|prime| {
            let mut less = prime.clone();
            less[0] ^= 1;
            less
        });
        // The least common multiple of both.
        let divisor = Zeroizing::new(gcd(&p_less_1, &q_less_1).ok()?);
        if divisor[1..].iter().fold(0, |all, limb| all | limb) != 0 {
            return None;
        }
        let quotient = divide(&q_less_1, divisor[0]);
        let mut order = Zeroizing::new(vec![0; n.len()]);
        product::multiply(&mut order, &p_less_1, &quotient);
        let mut exponent = p.clone();
        product::subtract_assign(&mut exponent, &[2]);
        let q_inverse = Modulus::new(&p)?.power(&q, &exponent, 64 * p.len());
        let (d, d_p, d_q) =
            (inverse_of_e(&order), inverse_of_e(&p_less_1), inverse_of_e(&q_less_1));
        Some(Self { n, d, p, q, d_p, d_q, q_inverse })
    }

    fn key(&self) -> Option<Owned<aws::RSA>> {
        let of = |limbs: &[u64]| {
            let bytes: Vec<u8> = limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect();
            number(&Zeroizing::new(bytes))
        };
        let (n, e, d) = (of(&self.n)?, of(&[E])?, of(&self.d)?);
        let (p, q, q_inverse) = (of(&self.p)?, of(&self.q)?, of(&self.q_inverse)?);
        let (d_p, d_q) = (of(&self.d_p)?, of(&self.d_q)?);
        // SAFETY: all numbers are alive, and AWS-LC copies them. It checks that they are
        // consistent.
        unsafe {
            Owned::new(aws::RSA_new_private_key(
                n.as_ptr(),
                e.as_ptr(),
                d.as_ptr(),
                p.as_ptr(),
                q.as_ptr(),
                d_p.as_ptr(),
                d_q.as_ptr(),
                q_inverse.as_ptr(),
            ))
        }
    }
}

/// Returns the inverse of [`E`] modulo `order`, of which `E` is not a divisor.
///
/// The inverse is `(1 + order·k) / E`, for the `k` that makes it an integer.
pub(super) fn inverse_of_e(order: &[u64]) -> Limbs {
    let rest = modulo_e(order);
    // E is prime, so a number to the power of E - 2 is its inverse.
    let mut inverse = 1;
    for bit in (0..17).rev() {
        inverse = inverse * inverse % E;
        if (E - 2) >> bit & 1 == 1 {
            inverse = inverse * rest % E;
        }
    }
    let factor = E - inverse;
    // 1/E modulo 2^64 by Newton's method, which starts from an inverse modulo 2^17.
    let mut reciprocal: u64 = E;
    for _ in 0..5 {
        reciprocal = reciprocal.wrapping_mul(2_u64.wrapping_sub(E.wrapping_mul(reciprocal)));
    }
    let mut carry = 1;
    let mut borrow = 0;
    let divided = order.iter().map(|limb| {
        carry += u128::from(*limb) * u128::from(factor);
        let low = carry as u64;
        carry >>= 64;
        // The lowest limb of the remainder determines the lowest limb of the quotient (Jebelean:
        // "An algorithm for exact division", 1993).
        let (left, is_borrowed) = low.overflowing_sub(borrow);
        let quotient = left.wrapping_mul(reciprocal);
        borrow = ((u128::from(quotient) * u128::from(E)) >> 64) as u64 + u64::from(is_borrowed);
        quotient
    });
    Zeroizing::new(divided.collect())
}

/// Returns `number / divisor`, computed bit by bit.
pub(super) fn divide(number: &[u64], divisor: u64) -> Limbs {
    let mut quotient = Zeroizing::new(vec![0; number.len()]);
    let mut rest = 0;
    for (limb, quotient) in number.iter().zip(&mut *quotient).rev() {
        for bit in (0..64).rev() {
            rest = rest << 1 | u128::from(limb >> bit & 1);
            let (less, is_borrowed) = rest.overflowing_sub(u128::from(divisor));
            let keep = 0_u128.wrapping_sub(u128::from(is_borrowed));
            rest = rest & keep | less & !keep;
            *quotient = *quotient << 1 | u64::from(!is_borrowed);
        }
    }
    quotient
}
