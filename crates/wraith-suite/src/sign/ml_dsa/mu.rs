//! μ, the representative of a message that ML-DSA signs (FIPS 204 §6.2, "external μ"):
//! SHAKE256(SHAKE256(public key, 64) ‖ 0 ‖ length of the context ‖ context ‖ message, 64).

use crate::hash::Shake256;
use crate::sign::{SignError, context_bytes};

pub use wraith_aws_lc::ml_dsa::MU_BYTES;

/// Incremental computation of μ. Created by [`VerifyingKey::mu`](super::VerifyingKey::mu).
#[derive(Clone)]
pub struct Mu(Shake256);

impl Mu {
    /// Starts a message for the public key with these bytes.
    pub(super) fn new(public: &[u8], context: &[u8]) -> Result<Self, SignError> {
        let mut hash = Shake256::new();
        hash.update(&Shake256::digest::<64>(public));
        hash.update(&[0, context_bytes(context)?]);
        hash.update(context);
        Ok(Self(hash))
    }

    /// Hashes the next piece of the message.
    pub fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    /// Returns the μ of the message.
    #[must_use]
    pub fn finish(self) -> [u8; MU_BYTES] {
        let mut mu = [0; MU_BYTES];
        self.0.finish(&mut mu);
        mu
    }
}

wraith_crypto::redacted_debug!(Mu);
