//! Keys of every public-key encryption by its name.

use super::rsa::{self, Hash};
use super::sm2;
use super::{Algorithm, DecryptionKey, EncryptError, EncryptionKey};
use crate::Backend;

impl Algorithm {
    /// A new key. RSA's has 3072 bits.
    ///
    /// # Errors
    /// [`EncryptError::Failed`].
    pub fn generate(self) -> Result<Box<dyn DecryptionKey>, EncryptError> {
        if self == Self::Sm2 {
            return Ok(Box::new(sm2::DecryptionKey::generate()?));
        }
        let key = rsa::DecryptionKey::generate(self.hash()?, crate::rsa::BITS_DEFAULT)?;
        Ok(Box::new(key))
    }

    /// The key of a PKCS #8 (DER), which is for this algorithm.
    ///
    /// # Errors
    /// [`EncryptError::InvalidKey`].
    pub fn decryption_key_pkcs8(self, der: &[u8]) -> Result<Box<dyn DecryptionKey>, EncryptError> {
        if self == Self::Sm2 {
            return Ok(Box::new(sm2::DecryptionKey::from_pkcs8(der)?));
        }
        Ok(Box::new(rsa::DecryptionKey::from_pkcs8(self.hash()?, der)?))
    }

    /// The key of a SubjectPublicKeyInfo (DER), which is for this algorithm.
    ///
    /// # Errors
    /// [`EncryptError::InvalidKey`].
    pub fn encryption_key_spki(self, der: &[u8]) -> Result<Box<dyn EncryptionKey>, EncryptError> {
        if self == Self::Sm2 {
            return Ok(Box::new(sm2::EncryptionKey::from_spki(der)?));
        }
        Ok(Box::new(rsa::EncryptionKey::from_spki(self.hash()?, der)?))
    }

    /// What computes it here.
    #[must_use]
    pub fn backend(self) -> Backend {
        if self == Self::Sm2 { crate::sm2::backend() } else { Backend::AwsLc }
    }

    const fn hash(self) -> Result<Hash, EncryptError> {
        Ok(match self {
            Self::RsaOaepSha1 => Hash::Sha1,
            Self::RsaOaepSha256 => Hash::Sha256,
            Self::RsaOaepSha384 => Hash::Sha384,
            Self::RsaOaepSha512 => Hash::Sha512,
            Self::Sm2 => return Err(EncryptError::Failed { algorithm: self }),
        })
    }
}
