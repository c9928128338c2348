//! Keys of every key agreement, by algorithm.

use super::ecdh::{self, Curve};
use super::ffdhe::{self, Group};
use super::{AgreeError, Algorithm, PrivateKey, X448Key, X25519Key};
use crate::Backend;
use crate::ec::CurveExt;

/// Family of an algorithm, with its parameters.
enum Family {
    X25519,
    X448,
    Ecdh(Curve),
    Ffdhe(Group),
}

impl Algorithm {
    /// Generates a key.
    ///
    /// # Errors
    /// [`AgreeError::Failed`].
    pub fn generate(self) -> Result<Box<dyn PrivateKey>, AgreeError> {
        Ok(match self.family() {
            Family::X25519 => Box::new(X25519Key::generate()),
            Family::X448 => Box::new(X448Key::generate()),
            Family::Ecdh(curve) => Box::new(ecdh::PrivateKey::generate(curve)?),
            Family::Ffdhe(group) => Box::new(ffdhe::PrivateKey::generate(group)?),
        })
    }

    /// Parses the output of [`PrivateKey::to_raw`].
    ///
    /// # Errors
    /// [`AgreeError::InvalidPrivateKey`].
    pub fn private_key(self, raw: &[u8]) -> Result<Box<dyn PrivateKey>, AgreeError> {
        Ok(match self.family() {
            Family::X25519 => Box::new(X25519Key::from_raw(raw)?),
            Family::X448 => Box::new(X448Key::from_raw(raw)?),
            Family::Ecdh(curve) => Box::new(ecdh::PrivateKey::from_scalar(curve, raw)?),
            Family::Ffdhe(group) => Box::new(ffdhe::PrivateKey::from_raw(group, raw)?),
        })
    }

    /// Returns the implementation on this processor.
    #[must_use]
    pub fn backend(self) -> Backend {
        match self.family() {
            Family::Ecdh(_) => Backend::AwsLc,
            Family::X25519 => Backend::AwsLc,
            Family::X448 => Backend::Own("portable".into()),
            Family::Ffdhe(group) => group.backend(),
        }
    }

    /// Returns the implementation of key generation on this processor. For most algorithms it is
    /// the same as [`backend`](Self::backend).
    #[must_use]
    pub fn key_pair_backend(self) -> Backend {
        match self.family() {
            Family::Ecdh(curve) => curve.key_pair_backend(),
            _ => self.backend(),
        }
    }

    const fn family(self) -> Family {
        match self {
            Self::X25519 => Family::X25519,
            Self::X448 => Family::X448,
            Self::EcdhP224 => Family::Ecdh(Curve::P224),
            Self::EcdhP256 => Family::Ecdh(Curve::P256),
            Self::EcdhP384 => Family::Ecdh(Curve::P384),
            Self::EcdhP521 => Family::Ecdh(Curve::P521),
            Self::EcdhBrainpoolP256r1 => Family::Ecdh(Curve::BrainpoolP256r1),
            Self::EcdhBrainpoolP384r1 => Family::Ecdh(Curve::BrainpoolP384r1),
            Self::EcdhBrainpoolP512r1 => Family::Ecdh(Curve::BrainpoolP512r1),
            Self::Ffdhe2048 => Family::Ffdhe(Group::Ffdhe2048),
            Self::Ffdhe3072 => Family::Ffdhe(Group::Ffdhe3072),
            Self::Ffdhe4096 => Family::Ffdhe(Group::Ffdhe4096),
            Self::Ffdhe6144 => Family::Ffdhe(Group::Ffdhe6144),
            Self::Ffdhe8192 => Family::Ffdhe(Group::Ffdhe8192),
            Self::Modp2048 => Family::Ffdhe(Group::Modp2048),
            Self::Modp3072 => Family::Ffdhe(Group::Modp3072),
            Self::Modp4096 => Family::Ffdhe(Group::Modp4096),
            Self::Modp6144 => Family::Ffdhe(Group::Modp6144),
            Self::Modp8192 => Family::Ffdhe(Group::Modp8192),
        }
    }
}
