//! Random bytes.
//!
//! [`fill`], [`bytes`] and [`System`] are the source of keys. They use AWS-LC's generator, which
//! reseeds itself regularly from the operating system, and after a fork. The generators of NIST SP
//! 800-90A ([`CtrDrbg`], [`HmacDrbg`], [`HashDrbg`]) give the same bytes for the same seed. They
//! are for users that need one of them for compliance or reproducibility.

use thiserror::Error;

mod ctr_drbg;
mod hash_drbg;
mod hmac_drbg;

pub use wraith_crypto::rand::{System, bytes, fill, secret};

pub use ctr_drbg::CtrDrbg;
pub use hash_drbg::HashDrbg;
pub use hmac_drbg::HmacDrbg;

/// Maximum number of bytes per request (SP 800-90A, tables 2 and 3: 2^19 bits).
pub const REQUEST_BYTES_MAX: usize = 1 << 16;
/// Maximum number of requests between two seeds (SP 800-90A, tables 2 and 3).
pub const REQUESTS_MAX: u64 = 1 << 48;
/// Maximum length of a seed or of an additional input, in bytes. The standard's limit is far
/// higher.
pub const INPUT_BYTES_MAX: usize = 1 << 16;

/// Reason why a generator returned nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DrbgError {
    /// The generator has to be reseeded.
    #[error("the generator has answered {REQUESTS_MAX} requests and has to be reseeded")]
    Spent,
    /// The request was for more than [`REQUEST_BYTES_MAX`].
    #[error("one request is for at most {REQUEST_BYTES_MAX} bytes")]
    RequestLength,
    /// A seed is shorter than the generator's security strength, or an input is too long.
    #[error("an input of {found} bytes, where {min} to {max} are taken")]
    InputLength {
        /// Least length in bytes.
        min: usize,
        /// Maximum length in bytes.
        max: usize,
        /// Length of the input in bytes.
        found: usize,
    },
}

/// Checks the length of an input against its limits.
fn check(input: &[u8], min: usize, max: usize) -> Result<(), DrbgError> {
    match (min..=max).contains(&input.len()) {
        true => Ok(()),
        false => Err(DrbgError::InputLength { min, max, found: input.len() }),
    }
}

/// A generator of SP 800-90A.
pub trait Drbg: Send {
    /// Mixes in a new seed. An attacker that has seen the old state cannot predict later output.
    ///
    /// # Errors
    /// [`DrbgError::InputLength`] if a length is invalid.
    fn reseed(&mut self, entropy: &[u8], additional: &[u8]) -> Result<(), DrbgError>;

    /// Fills `out`, after mixing in `additional`, which may be empty.
    ///
    /// # Errors
    /// [`DrbgError`] if a length is invalid, or if the generator has to be reseeded.
    fn generate(&mut self, out: &mut [u8], additional: &[u8]) -> Result<(), DrbgError>;
}

/// Sets all bytes to zero, eight or more at a time.
fn wipe<const N: usize>(bytes: &mut [u8; N]) {
    *bytes = [0; N];
    zeroize::optimization_barrier(bytes);
}

/// Implements the traits of `rand_core`, with as many requests as `out` needs.
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
