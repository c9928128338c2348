//! Random bytes.
//!
//! [`fill`], [`bytes`] and [`System`] are what keys are made of: the generator of AWS-LC, which seeds itself from the operating system, again
//! and again, and after a fork. The generators of NIST SP 800-90A ([`CtrDrbg`], [`HmacDrbg`], [`HashDrbg`]) give the same bytes for the same
//! seed; they are for those who must have one of them, or must have the same bytes again.
#![allow(unsafe_code)]

use std::convert::Infallible;

use aws_lc_sys as aws;
use rand_core::{TryCryptoRng, TryRng};
use thiserror::Error;
use zeroize::Zeroizing;

mod ctr_drbg;
mod hash_drbg;
mod hmac_drbg;

pub use ctr_drbg::CtrDrbg;
pub use hash_drbg::HashDrbg;
pub use hmac_drbg::HmacDrbg;

/// Fills `out` with random bytes. Where the system has none to give, the program ends: AWS-LC does not go on without.
pub fn fill(out: &mut [u8]) {
    // SAFETY: `out` has room for its length.
    let filled = unsafe { aws::RAND_bytes(out.as_mut_ptr(), out.len()) };
    assert_eq!(filled, 1, "AWS-LC fills all, or ends the program");
}

/// Random bytes.
#[must_use]
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes);
    bytes
}

/// Random bytes that are a secret.
pub(crate) fn secret<const N: usize>() -> Zeroizing<[u8; N]> {
    let mut bytes = Zeroizing::new([0; N]);
    fill(&mut *bytes);
    bytes
}

/// [`fill`] as a generator, for those who take one.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl TryRng for System {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_le_bytes(bytes()))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_le_bytes(bytes()))
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        fill(out);
        Ok(())
    }
}

impl TryCryptoRng for System {}

/// Bytes that are asked for at once, at most (SP 800-90A, tables 2 and 3: 2^19 bits).
pub const REQUEST_BYTES_MAX: usize = 1 << 16;
/// Requests between two seeds, at most (SP 800-90A, tables 2 and 3).
pub const REQUESTS_MAX: u64 = 1 << 48;
/// Bytes of a seed, and of what is added to one, at most; the standard's limit is far above.
pub const INPUT_BYTES_MAX: usize = 1 << 16;

/// Why a generator gives nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DrbgError {
    /// It has to be reseeded.
    #[error("the generator has answered {REQUESTS_MAX} requests and has to be reseeded")]
    Spent,
    /// More than [`REQUEST_BYTES_MAX`] were asked for.
    #[error("one request is for at most {REQUEST_BYTES_MAX} bytes")]
    RequestLength,
    /// A seed is shorter than the generator is strong, or an input is longer than the generator takes.
    #[error("an input of {found} bytes, where {min} to {max} are taken")]
    InputLength {
        /// At least.
        min: usize,
        /// At most.
        max: usize,
        /// What it was.
        found: usize,
    },
}

/// Checks a length against its limits.
fn check(input: &[u8], min: usize, max: usize) -> Result<(), DrbgError> {
    match (min..=max).contains(&input.len()) {
        true => Ok(()),
        false => Err(DrbgError::InputLength { min, max, found: input.len() }),
    }
}

/// A generator of SP 800-90A.
pub trait Drbg: Send {
    /// Takes in a new seed. What came before is of no use to who learns the state now.
    ///
    /// # Errors
    /// A length is not within the limits.
    fn reseed(&mut self, entropy: &[u8], additional: &[u8]) -> Result<(), DrbgError>;

    /// Fills `out`, after taking in `additional`, which may be empty.
    ///
    /// # Errors
    /// A length is not within the limits, or it is time to reseed.
    fn generate(&mut self, out: &mut [u8], additional: &[u8]) -> Result<(), DrbgError>;
}

/// Makes all bytes zero, eight and more at a time.
fn wipe<const N: usize>(bytes: &mut [u8; N]) {
    *bytes = [0; N];
    zeroize::optimization_barrier(bytes);
}

/// The traits of `rand_core`: as many requests as `out` needs.
macro_rules! impl_rng {
    ($($generic:ident: $bound:path)?, $type:ty) => {
        impl$(<$generic: $bound>)? ::rand_core::TryRng for $type {
            type Error = $crate::rand::DrbgError;

            fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
                let mut bytes = [0; 4];
                $crate::rand::Drbg::generate(self, &mut bytes, &[])?;
                Ok(u32::from_le_bytes(bytes))
            }

            fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
                let mut bytes = [0; 8];
                $crate::rand::Drbg::generate(self, &mut bytes, &[])?;
                Ok(u64::from_le_bytes(bytes))
            }

            fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
                out.chunks_mut($crate::rand::REQUEST_BYTES_MAX)
                    .try_for_each(|part| $crate::rand::Drbg::generate(self, part, &[]))
            }
        }

        impl$(<$generic: $bound>)? ::rand_core::TryCryptoRng for $type {}
    };
}
use impl_rng;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_differ_each_time() {
        assert_ne!(bytes::<32>(), bytes::<32>());
        let (mut a, mut b) = ([0; 100], [0; 100]);
        System.try_fill_bytes(&mut a).unwrap();
        fill(&mut b);
        assert!(a != b && a != [0; 100]);
        fill(&mut []);
    }
}
