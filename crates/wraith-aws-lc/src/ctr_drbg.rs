//! CTR_DRBG with AES-256 and without a derivation function (NIST SP 800-90A, §10.2.1).

use aws_lc_sys as aws;

use crate::object::{Owned, succeeded};

/// Length of a seed in bytes, and the maximum of the other inputs.
pub const SEED_BYTES: usize = 48;

/// A generator. AWS-LC holds its state, and wipes memory that it frees.
pub struct CtrDrbg(Owned<aws::CTR_DRBG_STATE>);

impl CtrDrbg {
    /// Creates a generator. `None` if the personalization is longer than a seed.
    #[must_use]
    pub fn new(seed: &[u8; SEED_BYTES], personalization: &[u8]) -> Option<Self> {
        let (data, len) = (personalization.as_ptr(), personalization.len());
        // SAFETY: the seed has the length that AWS-LC reads, and the personalization the length
        // passed.
        unsafe { Owned::new(aws::CTR_DRBG_new(seed.as_ptr(), data, len)) }.map(Self)
    }

    /// Mixes in a new seed. Returns `false` if an input is too long.
    #[must_use]
    pub fn reseed(&mut self, entropy: &[u8; SEED_BYTES], additional: &[u8]) -> bool {
        let (data, len) = (additional.as_ptr(), additional.len());
        // SAFETY: the state is live, and the inputs have the lengths that AWS-LC reads.
        succeeded(unsafe { aws::CTR_DRBG_reseed(self.0.as_ptr(), entropy.as_ptr(), data, len) })
    }

    /// Fills `out`. Returns `false` if a length is too long, or beyond the limit of requests, which
    /// AWS-LC counts.
    #[must_use]
    pub fn generate(&mut self, out: &mut [u8], additional: &[u8]) -> bool {
        let (data, len) = (additional.as_ptr(), additional.len());
        let (to, room) = (out.as_mut_ptr(), out.len());
        // SAFETY: the state is live; `out` and `additional` have the lengths passed.
        succeeded(unsafe { aws::CTR_DRBG_generate(self.0.as_ptr(), to, room, data, len) })
    }
}
