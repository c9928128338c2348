//! RSA signatures (RFC 8017 §8), computed by AWS-LC: PSS, and for compatibility PKCS #1 v1.5. In
//! PSS, the salt is as long as the hash, and mask generation uses the same hash function. Keys have
//! 2048 to 4096 bits.
//!
//! A raw key is the RSAPrivateKey or RSAPublicKey of PKCS #1. Any RSA key works with every scheme,
//! so PKCS #8 names RSA and no scheme. RFC 8017 allows several encodings of a private key: either
//! prime may be the first, and several private exponents are below the modulus. A key is written as
//! it was read. A key without any of its numbers is rejected.

use zeroize::Zeroizing;

use super::{Algorithm, SignError};
use crate::rsa;
pub use crate::rsa::{BITS_MAX, BITS_MIN};
use wraith_aws_lc::hash::Digest;

/// A padding with a hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// PSS with SHA-256.
    PssSha256,
    /// PSS with SHA-384.
    PssSha384,
    /// PSS with SHA-512.
    PssSha512,
    /// PKCS #1 v1.5 with SHA-256.
    Pkcs1Sha256,
    /// PKCS #1 v1.5 with SHA-384.
    Pkcs1Sha384,
    /// PKCS #1 v1.5 with SHA-512.
    Pkcs1Sha512,
}

impl Scheme {
    const fn algorithm(self) -> Algorithm {
        match self {
            Self::PssSha256 => Algorithm::RsaPssSha256,
            Self::PssSha384 => Algorithm::RsaPssSha384,
            Self::PssSha512 => Algorithm::RsaPssSha512,
            Self::Pkcs1Sha256 => Algorithm::RsaPkcs1Sha256,
            Self::Pkcs1Sha384 => Algorithm::RsaPkcs1Sha384,
            Self::Pkcs1Sha512 => Algorithm::RsaPkcs1Sha512,
        }
    }

    const fn digest(self) -> Digest {
        match self {
            Self::PssSha256 | Self::Pkcs1Sha256 => Digest::Sha256,
            Self::PssSha384 | Self::Pkcs1Sha384 => Digest::Sha384,
            Self::PssSha512 | Self::Pkcs1Sha512 => Digest::Sha512,
        }
    }

    const fn is_pss(self) -> bool {
        matches!(self, Self::PssSha256 | Self::PssSha384 | Self::PssSha512)
    }

    fn valid<K>(self, key: Option<K>) -> Result<K, SignError> {
        key.ok_or(SignError::InvalidKey { algorithm: self.algorithm() })
    }
}

/// A private key.
#[derive(Debug)]
pub struct SigningKey {
    scheme: Scheme,
    key: rsa::PrivateKey,
}

impl SigningKey {
    /// Generates a key with a modulus of `bits`, a multiple of 128 from [`BITS_MIN`] to
    /// [`BITS_MAX`].
    pub fn generate(scheme: Scheme, bits: u32) -> Result<Self, SignError> {
        let failed = SignError::Failed { algorithm: scheme.algorithm() };
        let key = rsa::PrivateKey::generate(bits).ok_or(failed)?;
        Ok(Self { scheme, key })
    }

    /// Parses an RSAPrivateKey (DER).
    pub fn from_pkcs1(scheme: Scheme, der: &[u8]) -> Result<Self, SignError> {
        Ok(Self { scheme, key: scheme.valid(rsa::PrivateKey::from_pkcs1(der))? })
    }

    /// Parses a key in PKCS #8 (DER).
    pub fn from_pkcs8(scheme: Scheme, der: &[u8]) -> Result<Self, SignError> {
        Ok(Self { scheme, key: scheme.valid(rsa::PrivateKey::from_pkcs8(der))? })
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> VerifyingKey {
        VerifyingKey { scheme: self.scheme, key: self.key.public() }
    }
}

impl super::SigningKey for SigningKey {
    fn algorithm(&self) -> Algorithm {
        self.scheme.algorithm()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        let digest = self.scheme.digest();
        let (hash, len) = digest.of(message);
        let signature = if self.scheme.is_pss() {
            self.key.sign_pss(digest, &hash[..len])
        } else {
            self.key.sign_pkcs1(digest, &hash[..len])
        };
        signature.ok_or(SignError::Failed { algorithm: self.scheme.algorithm() })
    }

    fn verifying_key(&self) -> Box<dyn super::VerifyingKey> {
        Box::new(self.public())
    }

    fn to_raw(&self) -> Zeroizing<Vec<u8>> {
        self.key.to_pkcs1()
    }

    fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        self.key.to_pkcs8()
    }
}

/// A public key.
#[derive(Debug)]
pub struct VerifyingKey {
    scheme: Scheme,
    key: rsa::PublicKey,
}

impl VerifyingKey {
    /// Parses an RSAPublicKey (DER).
    pub fn from_pkcs1(scheme: Scheme, der: &[u8]) -> Result<Self, SignError> {
        Ok(Self { scheme, key: scheme.valid(rsa::PublicKey::from_pkcs1(der))? })
    }

    /// Parses a key in SubjectPublicKeyInfo (DER).
    pub fn from_spki(scheme: Scheme, der: &[u8]) -> Result<Self, SignError> {
        Ok(Self { scheme, key: scheme.valid(rsa::PublicKey::from_spki(der))? })
    }
}

impl super::VerifyingKey for VerifyingKey {
    fn algorithm(&self) -> Algorithm {
        self.scheme.algorithm()
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), SignError> {
        let digest = self.scheme.digest();
        let (hash, len) = digest.of(message);
        let is_good = if self.scheme.is_pss() {
            self.key.verify_pss(digest, &hash[..len], signature)
        } else {
            self.key.verify_pkcs1(digest, &hash[..len], signature)
        };
        is_good.then_some(()).ok_or(SignError::Unauthentic)
    }

    fn to_raw(&self) -> Vec<u8> {
        self.key.to_pkcs1()
    }

    fn to_spki(&self) -> Vec<u8> {
        self.key.to_spki()
    }
}
