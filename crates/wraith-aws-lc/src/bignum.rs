//! Operations on big integers. Numbers are little-endian limbs.

use std::ptr;

use aws_lc_sys as aws;
use zeroize::Zeroizing;

use crate::object::{Owned, succeeded};

/// Creates a number. `None` if out of memory, as in all functions of this module.
fn number(limbs: &[u64]) -> Option<Owned<aws::BIGNUM>> {
    let bytes: Zeroizing<Vec<u8>> =
        Zeroizing::new(limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect());
    // SAFETY: `bytes` has the length passed; a null pointer requests a new number.
    unsafe { Owned::new(aws::BN_le2bn(bytes.as_ptr(), bytes.len(), ptr::null_mut())) }
}

/// Returns the number as `count` limbs, into which it fits.
fn limbs(number: &Owned<aws::BIGNUM>, count: usize) -> Option<Vec<u64>> {
    let mut limbs = vec![0_u64; count];
    // SAFETY: `limbs` has room for eight times `count` bytes.
    let written =
        unsafe { aws::BN_bn2le_padded(limbs.as_mut_ptr().cast(), 8 * count, number.as_ptr()) };
    limbs.iter_mut().for_each(|limb| *limb = u64::from_le(*limb));
    succeeded(written).then_some(limbs)
}

fn context() -> Option<Owned<aws::BN_CTX>> {
    // SAFETY: the call has no preconditions.
    unsafe { Owned::new(aws::BN_CTX_new()) }
}

/// Returns the product. The time depends only on the lengths without leading zeros.
#[must_use]
pub fn multiply(a: &[u64], b: &[u64]) -> Option<Vec<u64>> {
    let (x, y, product, context) = (number(a)?, number(b)?, number(&[])?, context()?);
    // SAFETY: all numbers are alive.
    succeeded(unsafe { aws::BN_mul(product.as_ptr(), x.as_ptr(), y.as_ptr(), context.as_ptr()) })
        .then_some(())?;
    limbs(&product, a.len() + b.len())
}

/// Returns quotient and remainder. `b` is not zero.
#[must_use]
pub fn divide(a: &[u64], b: &[u64]) -> Option<(Vec<u64>, Vec<u64>)> {
    let (x, y, quotient, remainder) = (number(a)?, number(b)?, number(&[])?, number(&[])?);
    let context = context()?;
    // SAFETY: all numbers are alive, and no output is an input.
    succeeded(unsafe {
        aws::BN_div(quotient.as_ptr(), remainder.as_ptr(), x.as_ptr(), y.as_ptr(), context.as_ptr())
    })
    .then_some(())?;
    Some((limbs(&quotient, a.len())?, limbs(&remainder, b.len())?))
}

/// An odd modulus, prepared for powers.
pub struct Modulus {
    number: Owned<aws::BIGNUM>,
    montgomery: Owned<aws::BN_MONT_CTX>,
    limbs: usize,
}

impl Modulus {
    /// Prepares an odd modulus. The time depends only on its length.
    #[must_use]
    pub fn new(modulus: &[u64]) -> Option<Self> {
        let (number, context) = (number(modulus)?, context()?);
        // SAFETY: both objects are alive.
        let montgomery = unsafe {
            Owned::new(aws::BN_MONT_CTX_new_consttime(number.as_ptr(), context.as_ptr()))
        };
        Some(Self { number, montgomery: montgomery?, limbs: modulus.len() })
    }

    /// Returns `base^exponent`. `base` is below the modulus. The time depends only on the lengths.
    #[must_use]
    pub fn power(&self, base: &[u64], exponent: &[u64]) -> Option<Vec<u64>> {
        let (x, e, result) = (number(base)?, number(exponent)?, number(&[])?);
        let context = context()?;
        // SAFETY: all objects are alive, and the Montgomery context is that of the modulus.
        succeeded(unsafe {
            aws::BN_mod_exp_mont_consttime(
                result.as_ptr(),
                x.as_ptr(),
                e.as_ptr(),
                self.number.as_ptr(),
                context.as_ptr(),
                self.montgomery.as_ptr(),
            )
        })
        .then_some(())?;
        limbs(&result, self.limbs)
    }
}

/// Returns the greatest common divisor, in time that depends on the lengths of the numbers and of
/// the divisor.
#[must_use]
pub fn gcd(a: &[u64], b: &[u64]) -> Option<Vec<u64>> {
    let (x, y, result) = (number(a)?, number(b)?, number(&[])?);
    let context = context()?;
    // SAFETY: all numbers are alive.
    succeeded(unsafe { aws::BN_gcd(result.as_ptr(), x.as_ptr(), y.as_ptr(), context.as_ptr()) })
        .then_some(())?;
    limbs(&result, a.len().max(b.len()))
}

/// Returns the inverse of `a` modulo `n`. They have no common divisor.
#[must_use]
pub fn inverse(a: &[u64], n: &[u64]) -> Option<Vec<u64>> {
    let (x, y, result) = (number(a)?, number(n)?, number(&[])?);
    let context = context()?;
    // SAFETY: all numbers are alive.
    let made =
        unsafe { aws::BN_mod_inverse(result.as_ptr(), x.as_ptr(), y.as_ptr(), context.as_ptr()) };
    succeeded(i32::from(!made.is_null())).then(|| limbs(&result, n.len()))?
}
