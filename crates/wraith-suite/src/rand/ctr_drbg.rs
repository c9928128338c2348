//! CTR_DRBG with AES-256 and without a derivation function (NIST SP 800-90A, §10.2.1), computed by
//! AWS-LC.

use wraith_aws_lc::ctr_drbg::CtrDrbg as AwsLcDrbg;
use zeroize::ZeroizeOnDrop;

use super::{Drbg, DrbgError, REQUEST_BYTES_MAX, check, impl_rng};

/// CTR_DRBG generator. AWS-LC holds its state, and wipes memory that it frees.
pub struct CtrDrbg(AwsLcDrbg);

impl CtrDrbg {
    /// Length of a seed in bytes. All of them have to be random.
    pub const SEED_BYTES: usize = 48;

    /// Creates a generator from a seed and a `personalization`, which may be empty.
    ///
    /// # Errors
    /// [`DrbgError::InputLength`] if the personalization is longer than a seed.
    pub fn new(seed: &[u8; Self::SEED_BYTES], personalization: &[u8]) -> Result<Self, DrbgError> {
        check(personalization, 0, Self::SEED_BYTES)?;
        let state = AwsLcDrbg::new(seed, personalization);
        Ok(Self(state.expect("AWS-LC has memory for 300 bytes")))
    }
}

impl Drbg for CtrDrbg {
    fn reseed(&mut self, entropy: &[u8], additional: &[u8]) -> Result<(), DrbgError> {
        check(entropy, Self::SEED_BYTES, Self::SEED_BYTES)?;
        check(additional, 0, Self::SEED_BYTES)?;
        let entropy = entropy.try_into().expect("the length was checked");
        assert!(self.0.reseed(entropy, additional), "inputs of these lengths are taken");
        Ok(())
    }

    fn generate(&mut self, out: &mut [u8], additional: &[u8]) -> Result<(), DrbgError> {
        check(additional, 0, Self::SEED_BYTES)?;
        if out.len() > REQUEST_BYTES_MAX {
            return Err(DrbgError::RequestLength);
        }
        if self.0.generate(out, additional) { Ok(()) } else { Err(DrbgError::Spent) }
    }
}

impl ZeroizeOnDrop for CtrDrbg {}

wraith_crypto::redacted_debug!(CtrDrbg);

impl_rng!(, CtrDrbg);
