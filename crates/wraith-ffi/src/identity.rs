//! Identities: key generation, signatures and their verification.

use std::sync::Arc;

use wraith::SecretIdentity;
use wraith::session::{NoRandomness, system_rng};
use zeroize::Zeroizing;

use crate::content::node_id;
use crate::error::WraithError;

/// A secret identity. The object wipes its secret when it is freed. The caller owns the copy that
/// [`Identity::seed`] returns.
#[derive(Debug, uniffi::Object)]
#[uniffi::export(Debug)]
pub struct Identity(pub(crate) SecretIdentity);

#[uniffi::export]
impl Identity {
    /// Generates a new identity.
    ///
    /// # Errors
    /// [`WraithError::NoRandomness`].
    #[uniffi::constructor]
    pub fn generate() -> Result<Arc<Self>, WraithError> {
        system_rng()?;
        Ok(Arc::new(Self(SecretIdentity::generate())))
    }

    /// Restores an identity from its seed: 32 uniformly random bytes.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if the seed does not have 32 bytes.
    #[uniffi::constructor]
    pub fn from_seed(seed: Vec<u8>) -> Result<Arc<Self>, WraithError> {
        let seed = Zeroizing::new(seed);
        Ok(Arc::new(Self(SecretIdentity::from_seed(array("a seed", &seed)?))))
    }

    /// Returns the seed. Keep it secret: it is the whole identity.
    pub fn seed(&self) -> Vec<u8> {
        self.0.seed().to_vec()
    }

    /// Returns the public NodeId: 52 characters of base32.
    pub fn node_id(&self) -> String {
        self.0.node_id().to_string()
    }

    /// Signs `message` with Ed25519. Returns 64 bytes.
    pub fn sign(&self, message: Vec<u8>) -> Vec<u8> {
        self.0.sign(&message).to_vec()
    }
}

impl From<NoRandomness> for WraithError {
    fn from(error: NoRandomness) -> Self {
        Self::NoRandomness(error.to_string())
    }
}

/// Returns whether `signature` is a valid signature of `signer` (a NodeId) over `message`.
///
/// # Errors
/// [`WraithError::InvalidInput`] if `signer` is not a NodeId.
#[uniffi::export]
pub fn verify(signer: String, message: Vec<u8>, signature: Vec<u8>) -> Result<bool, WraithError> {
    let signer = node_id(&signer)?;
    let signature = <[u8; 64]>::try_from(signature);
    Ok(signature.is_ok_and(|signature| signer.verify(&message, &signature).is_ok()))
}

/// Converts `bytes` into an array, or returns an error with the expected length of `what`.
pub(crate) fn array<const N: usize>(what: &str, bytes: &[u8]) -> Result<[u8; N], WraithError> {
    bytes.try_into().map_err(|_| {
        WraithError::InvalidInput(format!("{what} must have {N} bytes, got {}", bytes.len()))
    })
}
