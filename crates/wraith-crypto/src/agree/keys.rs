//! Keys of every key agreement by its name.

use super::ecdh::{self, Curve};
use super::{AgreeError, Algorithm, PrivateKey, X448Key, X25519Key};
use crate::Backend;

/// What computes an algorithm, and its parameters there.
enum Family {
    X25519,
    X448,
    Ecdh(Curve),
}

impl Algorithm {
    /// A new key.
    ///
    /// # Errors
    /// [`AgreeError::Failed`].
    pub fn generate(self) -> Result<Box<dyn PrivateKey>, AgreeError> {
        Ok(match self.family()? {
            Family::X25519 => Box::new(X25519Key::generate()),
            Family::X448 => Box::new(X448Key::generate()),
            Family::Ecdh(curve) => Box::new(ecdh::PrivateKey::generate(curve)?),
        })
    }

    /// The key that [`PrivateKey::to_raw`] has written.
    ///
    /// # Errors
    /// [`AgreeError::InvalidPrivateKey`].
    pub fn private_key(self, raw: &[u8]) -> Result<Box<dyn PrivateKey>, AgreeError> {
        Ok(match self.family()? {
            Family::X25519 => Box::new(X25519Key::from_raw(raw)?),
            Family::X448 => Box::new(X448Key::from_raw(raw)?),
            Family::Ecdh(curve) => Box::new(ecdh::PrivateKey::from_scalar(curve, raw)?),
        })
    }

    /// What computes it here.
    #[must_use]
    pub fn backend(self) -> Backend {
        match self.family() {
            Ok(Family::X25519 | Family::Ecdh(_)) => Backend::AwsLc,
            Ok(Family::X448) | Err(_) => Backend::Own("portable".into()),
        }
    }

    const fn family(self) -> Result<Family, AgreeError> {
        Ok(match self {
            Self::X25519 => Family::X25519,
            Self::X448 => Family::X448,
            Self::EcdhP224 => Family::Ecdh(Curve::P224),
            Self::EcdhP256 => Family::Ecdh(Curve::P256),
            Self::EcdhP384 => Family::Ecdh(Curve::P384),
            Self::EcdhP521 => Family::Ecdh(Curve::P521),
            Self::EcdhBrainpoolP256r1 => Family::Ecdh(Curve::BrainpoolP256r1),
            Self::EcdhBrainpoolP384r1 => Family::Ecdh(Curve::BrainpoolP384r1),
            Self::EcdhBrainpoolP512r1 => Family::Ecdh(Curve::BrainpoolP512r1),
            // Not computed yet.
            _ => return Err(AgreeError::Failed { algorithm: self }),
        })
    }
}
