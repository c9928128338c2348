//! The operations of [`Uint`](super::Uint) that AWS-LC computes. Numbers are passed as
//! little-endian limbs.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use aws_lc_sys as aws;
use zeroize::Zeroizing;

use super::Error;

/// A number of AWS-LC, wiped when it is freed.
struct Number(NonNull<aws::BIGNUM>);

impl Number {
    fn new(limbs: &[u64]) -> Result<Self, Error> {
        let bytes: Zeroizing<Vec<u8>> =
            Zeroizing::new(limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect());
        // SAFETY: `bytes` has the length passed; a null pointer requests a new number.
        let number = unsafe { aws::BN_le2bn(bytes.as_ptr(), bytes.len(), ptr::null_mut()) };
        NonNull::new(number).map(Self).ok_or_else(out_of_memory)
    }

    fn as_ptr(&self) -> *mut aws::BIGNUM {
        self.0.as_ptr()
    }

    /// Returns the number as `count` limbs, into which it fits.
    fn limbs(&self, count: usize) -> Result<Vec<u64>, Error> {
        let mut limbs = vec![0_u64; count];
        // SAFETY: `limbs` has room for eight times `count` bytes.
        let written =
            unsafe { aws::BN_bn2le_padded(limbs.as_mut_ptr().cast(), 8 * count, self.as_ptr()) };
        limbs.iter_mut().for_each(|limb| *limb = u64::from_le(*limb));
        if written == 1 { Ok(limbs) } else { Err(out_of_memory()) }
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        // SAFETY: the number is ours and is not used afterwards.
        unsafe { aws::BN_clear_free(self.as_ptr()) }
    }
}

struct Context(NonNull<aws::BN_CTX>);

impl Context {
    fn new() -> Result<Self, Error> {
        // SAFETY: the call has no preconditions.
        NonNull::new(unsafe { aws::BN_CTX_new() }).map(Self).ok_or_else(out_of_memory)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is ours and is not used afterwards.
        unsafe { aws::BN_CTX_free(self.0.as_ptr()) }
    }
}

/// Returns the error. Also clears AWS-LC's error queue of this thread, in which other callers would
/// look for their own errors.
fn out_of_memory() -> Error {
    // SAFETY: the call has no preconditions.
    unsafe { aws::ERR_clear_error() };
    Error::OutOfMemory
}

fn succeeded(code: i32) -> Result<(), Error> {
    if code == 1 { Ok(()) } else { Err(out_of_memory()) }
}

/// Returns quotient and remainder. `b` is not zero.
pub(super) fn divide(a: &[u64], b: &[u64]) -> Result<(Vec<u64>, Vec<u64>), Error> {
    let (x, y, quotient, remainder) =
        (Number::new(a)?, Number::new(b)?, Number::new(&[])?, Number::new(&[])?);
    let context = Context::new()?;
    // SAFETY: all numbers are alive, and no output is an input.
    succeeded(unsafe {
        aws::BN_div(
            quotient.as_ptr(),
            remainder.as_ptr(),
            x.as_ptr(),
            y.as_ptr(),
            context.0.as_ptr(),
        )
    })?;
    Ok((quotient.limbs(a.len())?, remainder.limbs(b.len())?))
}

/// Returns `base^exponent` modulo an odd `modulus`. `base` is below `modulus`. The time depends
/// only on the lengths.
pub(crate) fn power(base: &[u64], exponent: &[u64], modulus: &[u64]) -> Result<Vec<u64>, Error> {
    let (x, e, n, result) =
        (Number::new(base)?, Number::new(exponent)?, Number::new(modulus)?, Number::new(&[])?);
    let context = Context::new()?;
    // SAFETY: all numbers are alive. A null Montgomery context requests a temporary one.
    succeeded(unsafe {
        aws::BN_mod_exp_mont_consttime(
            result.as_ptr(),
            x.as_ptr(),
            e.as_ptr(),
            n.as_ptr(),
            context.0.as_ptr(),
            ptr::null(),
        )
    })?;
    result.limbs(modulus.len())
}

/// Returns the greatest common divisor, in time that depends on the lengths of the numbers and of
/// the divisor.
pub(crate) fn gcd(a: &[u64], b: &[u64]) -> Result<Vec<u64>, Error> {
    let (x, y, result) = (Number::new(a)?, Number::new(b)?, Number::new(&[])?);
    let context = Context::new()?;
    // SAFETY: all numbers are alive.
    succeeded(unsafe { aws::BN_gcd(result.as_ptr(), x.as_ptr(), y.as_ptr(), context.0.as_ptr()) })?;
    result.limbs(a.len().max(b.len()))
}

/// Returns the inverse of `a` modulo `n`. They have no common divisor.
pub(super) fn inverse(a: &[u64], n: &[u64]) -> Result<Vec<u64>, Error> {
    let (x, y, result) = (Number::new(a)?, Number::new(n)?, Number::new(&[])?);
    let context = Context::new()?;
    // SAFETY: all numbers are alive.
    let made =
        unsafe { aws::BN_mod_inverse(result.as_ptr(), x.as_ptr(), y.as_ptr(), context.0.as_ptr()) };
    if made.is_null() { Err(out_of_memory()) } else { result.limbs(n.len()) }
}
