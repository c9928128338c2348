//! CTR_DRBG with AES-256 and without a derivation function (NIST SP 800-90A, §10.2.1), computed by
//! AWS-LC.
#![allow(unsafe_code)]

use std::fmt;
use std::ptr::NonNull;

use aws_lc_sys as aws;
use zeroize::ZeroizeOnDrop;

use super::{Drbg, DrbgError, REQUEST_BYTES_MAX, check, impl_rng};

/// CTR_DRBG generator. AWS-LC holds its state, and wipes memory that it frees.
pub struct CtrDrbg(NonNull<aws::CTR_DRBG_STATE>);

impl CtrDrbg {
    /// Length of a seed in bytes. All of them have to be random.
    pub const SEED_BYTES: usize = 48;

    /// Creates a generator from a seed and a `personalization`, which may be empty.
    ///
    /// # Errors
    /// [`DrbgError::InputLength`] if the personalization is longer than a seed.
    pub fn new(seed: &[u8; Self::SEED_BYTES], personalization: &[u8]) -> Result<Self, DrbgError> {
        check(personalization, 0, Self::SEED_BYTES)?;
        // SAFETY: the seed has the length that AWS-LC reads, and the personalization the length
        // passed.
        let state = unsafe {
            aws::CTR_DRBG_new(seed.as_ptr(), personalization.as_ptr(), personalization.len())
        };
        Ok(Self(NonNull::new(state).expect("AWS-LC has memory for 300 bytes")))
    }
}

impl Drbg for CtrDrbg {
    fn reseed(&mut self, entropy: &[u8], additional: &[u8]) -> Result<(), DrbgError> {
        check(entropy, Self::SEED_BYTES, Self::SEED_BYTES)?;
        check(additional, 0, Self::SEED_BYTES)?;
        // SAFETY: the state is live, and the inputs have the lengths that AWS-LC reads.
        let done = unsafe {
            aws::CTR_DRBG_reseed(
                self.0.as_ptr(),
                entropy.as_ptr(),
                additional.as_ptr(),
                additional.len(),
            )
        };
        assert_eq!(done, 1, "inputs of these lengths are taken");
        Ok(())
    }

    fn generate(&mut self, out: &mut [u8], additional: &[u8]) -> Result<(), DrbgError> {
        check(additional, 0, Self::SEED_BYTES)?;
        if out.len() > REQUEST_BYTES_MAX {
            return Err(DrbgError::RequestLength);
        }
        // SAFETY: the state is live; `out` and `additional` have the lengths passed.
        let done = unsafe {
            aws::CTR_DRBG_generate(
                self.0.as_ptr(),
                out.as_mut_ptr(),
                out.len(),
                additional.as_ptr(),
                additional.len(),
            )
        };
        // AWS-LC counts the requests, and fails beyond the limit.
        if done == 1 { Ok(()) } else { Err(DrbgError::Spent) }
    }
}

impl Drop for CtrDrbg {
    fn drop(&mut self) {
        // SAFETY: the state is live, and not used after this call.
        unsafe { aws::CTR_DRBG_free(self.0.as_ptr()) }
    }
}

impl ZeroizeOnDrop for CtrDrbg {}

// SAFETY: the state is not bound to a thread and has no other owner.
unsafe impl Send for CtrDrbg {}

impl fmt::Debug for CtrDrbg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CtrDrbg").finish_non_exhaustive()
    }
}

impl_rng!(, CtrDrbg);
