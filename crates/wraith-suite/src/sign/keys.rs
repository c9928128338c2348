//! Keys of every signature algorithm, by algorithm.

use super::{Algorithm, SignError, SigningKey, VerifyingKey};
use super::{ecdsa, ed448, ed25519, ml_dsa, rsa, slh_dsa, sm2};
use crate::Backend;
use crate::ec::CurveExt;

/// Family of an algorithm, with its parameters.
enum Family {
    Rsa(rsa::Scheme),
    Ecdsa(ecdsa::Curve),
    Ed25519,
    Ed448,
    Sm2,
    MlDsa(ml_dsa::Set),
    SlhDsa,
}

/// Parses a key of the algorithm's family, by these functions for RSA, ECDSA and the others.
macro_rules! parsed {
    ($algorithm:ident, $key:ident, $bytes:ident, $rsa:ident, $ecdsa:ident, $other:ident) => {
        Ok(match $algorithm.family() {
            Family::Rsa(scheme) => Box::new(rsa::$key::$rsa(scheme, $bytes)?),
            Family::Ecdsa(curve) => Box::new(ecdsa::$key::$ecdsa(curve, $bytes)?),
            Family::Ed25519 => Box::new(ed25519::$key::$other($bytes)?),
            Family::Ed448 => Box::new(ed448::$key::$other($bytes)?),
            Family::Sm2 => Box::new(sm2::$key::$other($bytes)?),
            Family::MlDsa(set) => Box::new(ml_dsa::$key::$other(set, $bytes)?),
            Family::SlhDsa => Box::new(slh_dsa::$key::$other($algorithm, $bytes)?),
        })
    };
}

impl Algorithm {
    /// Generates a key. RSA keys have 3072 bits.
    ///
    /// # Errors
    /// [`SignError::Failed`].
    pub fn generate(self) -> Result<Box<dyn SigningKey>, SignError> {
        Ok(match self.family() {
            Family::Rsa(scheme) => {
                Box::new(rsa::SigningKey::generate(scheme, crate::rsa::BITS_DEFAULT)?)
            }
            Family::Ecdsa(curve) => Box::new(ecdsa::SigningKey::generate(curve)?),
            Family::Ed25519 => Box::new(ed25519::SigningKey::generate()),
            Family::Ed448 => Box::new(ed448::SigningKey::generate()),
            Family::Sm2 => Box::new(sm2::SigningKey::generate()),
            Family::MlDsa(set) => Box::new(ml_dsa::SigningKey::generate(set)?),
            Family::SlhDsa => Box::new(slh_dsa::SigningKey::generate(self)?),
        })
    }

    /// Parses the output of [`SigningKey::to_raw`].
    ///
    /// # Errors
    /// [`SignError::InvalidKey`].
    pub fn signing_key(self, raw: &[u8]) -> Result<Box<dyn SigningKey>, SignError> {
        parsed!(self, SigningKey, raw, from_pkcs1, from_scalar, from_raw)
    }

    /// Parses a private key for this algorithm in PKCS #8 (DER).
    ///
    /// # Errors
    /// [`SignError::InvalidKey`].
    pub fn signing_key_pkcs8(self, der: &[u8]) -> Result<Box<dyn SigningKey>, SignError> {
        parsed!(self, SigningKey, der, from_pkcs8, from_pkcs8, from_pkcs8)
    }

    /// Parses the output of [`VerifyingKey::to_raw`].
    ///
    /// # Errors
    /// [`SignError::InvalidKey`].
    pub fn verifying_key(self, raw: &[u8]) -> Result<Box<dyn VerifyingKey>, SignError> {
        parsed!(self, VerifyingKey, raw, from_pkcs1, from_point, from_raw)
    }

    /// Parses a public key for this algorithm in SubjectPublicKeyInfo (DER).
    ///
    /// # Errors
    /// [`SignError::InvalidKey`].
    pub fn verifying_key_spki(self, der: &[u8]) -> Result<Box<dyn VerifyingKey>, SignError> {
        parsed!(self, VerifyingKey, der, from_spki, from_spki, from_spki)
    }

    /// Returns the implementation on this processor.
    #[must_use]
    pub fn backend(self) -> Backend {
        match self.family() {
            Family::Ecdsa(_) => Backend::AwsLc,
            Family::Rsa(_) | Family::Ed25519 | Family::MlDsa(_) => Backend::AwsLc,
            Family::Sm2 => crate::sm2::backend(),
            Family::SlhDsa => slh_dsa::backend(self),
            Family::Ed448 => Backend::Own("portable".into()),
        }
    }

    /// Returns the implementation of key generation on this processor. For most algorithms it is
    /// the same as [`backend`](Self::backend).
    #[must_use]
    pub fn key_pair_backend(self) -> Backend {
        match self.family() {
            Family::Ecdsa(curve) => curve.key_pair_backend(),
            _ => self.backend(),
        }
    }

    const fn family(self) -> Family {
        use ecdsa::Curve;
        use ml_dsa::Set;
        use rsa::Scheme;
        match self {
            Self::RsaPssSha256 => Family::Rsa(Scheme::PssSha256),
            Self::RsaPssSha384 => Family::Rsa(Scheme::PssSha384),
            Self::RsaPssSha512 => Family::Rsa(Scheme::PssSha512),
            Self::RsaPkcs1Sha256 => Family::Rsa(Scheme::Pkcs1Sha256),
            Self::RsaPkcs1Sha384 => Family::Rsa(Scheme::Pkcs1Sha384),
            Self::RsaPkcs1Sha512 => Family::Rsa(Scheme::Pkcs1Sha512),
            Self::EcdsaP224 => Family::Ecdsa(Curve::P224),
            Self::EcdsaP256 => Family::Ecdsa(Curve::P256),
            Self::EcdsaP384 => Family::Ecdsa(Curve::P384),
            Self::EcdsaP521 => Family::Ecdsa(Curve::P521),
            Self::EcdsaBrainpoolP256r1 => Family::Ecdsa(Curve::BrainpoolP256r1),
            Self::EcdsaBrainpoolP384r1 => Family::Ecdsa(Curve::BrainpoolP384r1),
            Self::EcdsaBrainpoolP512r1 => Family::Ecdsa(Curve::BrainpoolP512r1),
            Self::Ed25519 => Family::Ed25519,
            Self::Ed448 => Family::Ed448,
            Self::Sm2 => Family::Sm2,
            Self::MlDsa44 => Family::MlDsa(Set::MlDsa44),
            Self::MlDsa65 => Family::MlDsa(Set::MlDsa65),
            Self::MlDsa87 => Family::MlDsa(Set::MlDsa87),
            Self::SlhDsaSha2_128s
            | Self::SlhDsaSha2_128f
            | Self::SlhDsaSha2_192s
            | Self::SlhDsaSha2_192f
            | Self::SlhDsaSha2_256s
            | Self::SlhDsaSha2_256f
            | Self::SlhDsaShake128s
            | Self::SlhDsaShake128f
            | Self::SlhDsaShake192s
            | Self::SlhDsaShake192f
            | Self::SlhDsaShake256s
            | Self::SlhDsaShake256f => Family::SlhDsa,
        }
    }
}
