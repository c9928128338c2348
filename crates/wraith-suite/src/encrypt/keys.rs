//! Keys of every public-key encryption, by algorithm.

use super::rsa::{self, Hash};
use super::{Algorithm, DecryptionKey, EncryptError, EncryptionKey, rsa_pkcs1, sm2};
use crate::Backend;

/// Family of an algorithm, with its parameters.
enum Family {
    Oaep(Hash),
    Pkcs1,
    Sm2,
}

impl Algorithm {
    /// Generates a key. RSA keys have 3072 bits.
    ///
    /// # Errors
    /// [`EncryptError::Failed`].
    pub fn generate(self) -> Result<Box<dyn DecryptionKey>, EncryptError> {
        let bits = crate::rsa::BITS_DEFAULT;
        Ok(match self.family() {
            Family::Oaep(hash) => Box::new(rsa::DecryptionKey::generate(hash, bits)?),
            Family::Pkcs1 => Box::new(rsa_pkcs1::DecryptionKey::generate(bits)?),
            Family::Sm2 => Box::new(sm2::DecryptionKey::generate()),
        })
    }

    /// Parses a private key for this algorithm in PKCS #8 (DER).
    ///
    /// # Errors
    /// [`EncryptError::InvalidKey`].
    pub fn decryption_key_pkcs8(self, der: &[u8]) -> Result<Box<dyn DecryptionKey>, EncryptError> {
        Ok(match self.family() {
            Family::Oaep(hash) => Box::new(rsa::DecryptionKey::from_pkcs8(hash, der)?),
            Family::Pkcs1 => Box::new(rsa_pkcs1::DecryptionKey::from_pkcs8(der)?),
            Family::Sm2 => Box::new(sm2::DecryptionKey::from_pkcs8(der)?),
        })
    }

    /// Parses a public key for this algorithm in SubjectPublicKeyInfo (DER).
    ///
    /// # Errors
    /// [`EncryptError::InvalidKey`].
    pub fn encryption_key_spki(self, der: &[u8]) -> Result<Box<dyn EncryptionKey>, EncryptError> {
        Ok(match self.family() {
            Family::Oaep(hash) => Box::new(rsa::EncryptionKey::from_spki(hash, der)?),
            Family::Pkcs1 => Box::new(rsa_pkcs1::EncryptionKey::from_spki(der)?),
            Family::Sm2 => Box::new(sm2::EncryptionKey::from_spki(der)?),
        })
    }

    /// Returns the implementation on this processor.
    #[must_use]
    pub fn backend(self) -> Backend {
        match self.family() {
            Family::Oaep(_) | Family::Pkcs1 => Backend::AwsLc,
            Family::Sm2 => crate::sm2::backend(),
        }
    }

    const fn family(self) -> Family {
        match self {
            Self::RsaOaepSha1 => Family::Oaep(Hash::Sha1),
            Self::RsaOaepSha256 => Family::Oaep(Hash::Sha256),
            Self::RsaOaepSha384 => Family::Oaep(Hash::Sha384),
            Self::RsaOaepSha512 => Family::Oaep(Hash::Sha512),
            Self::RsaPkcs1 => Family::Pkcs1,
            Self::Sm2 => Family::Sm2,
        }
    }
}
