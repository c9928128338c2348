//! RSA-OAEP (RFC 8017 §7.1), computed by AWS-LC, with keys of 2048 to 4096 bits. Mask generation
//! (MGF1) uses the same hash function as OAEP itself.
//!
//! A label is authenticated but not part of the ciphertext. It is empty by default.

use zeroize::Zeroizing;

use super::{Algorithm, EncryptError};
use crate::rsa;
pub use crate::rsa::{BITS_MAX, BITS_MIN};
use wraith_aws_lc::hash::Digest;

/// Hash function of OAEP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hash {
    /// SHA-1. OAEP does not need collision resistance.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl Hash {
    const fn algorithm(self) -> Algorithm {
        match self {
            Self::Sha1 => Algorithm::RsaOaepSha1,
            Self::Sha256 => Algorithm::RsaOaepSha256,
            Self::Sha384 => Algorithm::RsaOaepSha384,
            Self::Sha512 => Algorithm::RsaOaepSha512,
        }
    }

    const fn digest(self) -> Digest {
        match self {
            Self::Sha1 => Digest::Sha1,
            Self::Sha256 => Digest::Sha256,
            Self::Sha384 => Digest::Sha384,
            Self::Sha512 => Digest::Sha512,
        }
    }

    const fn invalid_key(self) -> EncryptError {
        EncryptError::InvalidKey { algorithm: self.algorithm() }
    }
}

/// A private key.
#[derive(Debug)]
pub struct DecryptionKey {
    hash: Hash,
    key: rsa::PrivateKey,
}

impl DecryptionKey {
    /// Generates a key with a modulus of `bits`, a multiple of 128 from [`BITS_MIN`] to
    /// [`BITS_MAX`].
    pub fn generate(hash: Hash, bits: u32) -> Result<Self, EncryptError> {
        let failed = EncryptError::Failed { algorithm: hash.algorithm() };
        Ok(Self { hash, key: rsa::PrivateKey::generate(bits).ok_or(failed)? })
    }

    /// Parses a key in PKCS #8 (DER).
    pub fn from_pkcs8(hash: Hash, der: &[u8]) -> Result<Self, EncryptError> {
        Ok(Self { hash, key: rsa::PrivateKey::from_pkcs8(der).ok_or(hash.invalid_key())? })
    }

    /// Decrypts a ciphertext that was made with `label`.
    pub fn decrypt_with_label(
        &self,
        label: &[u8],
        ciphertext: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, EncryptError> {
        let text = self.key.open_oaep(self.hash.digest(), label, ciphertext);
        text.ok_or(EncryptError::Unopened)
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> EncryptionKey {
        EncryptionKey { hash: self.hash, key: self.key.public() }
    }
}

impl super::DecryptionKey for DecryptionKey {
    fn algorithm(&self) -> Algorithm {
        self.hash.algorithm()
    }

    fn decrypt(&self, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>, EncryptError> {
        self.decrypt_with_label(&[], ciphertext)
    }

    fn encryption_key(&self) -> Box<dyn super::EncryptionKey> {
        Box::new(self.public())
    }

    fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        self.key.to_pkcs8()
    }
}

/// A public key.
#[derive(Debug)]
pub struct EncryptionKey {
    hash: Hash,
    key: rsa::PublicKey,
}

impl EncryptionKey {
    /// Parses a key in SubjectPublicKeyInfo (DER).
    pub fn from_spki(hash: Hash, der: &[u8]) -> Result<Self, EncryptError> {
        Ok(Self { hash, key: rsa::PublicKey::from_spki(der).ok_or(hash.invalid_key())? })
    }

    /// Encrypts `message` with `label`.
    pub fn encrypt_with_label(
        &self,
        label: &[u8],
        message: &[u8],
    ) -> Result<Vec<u8>, EncryptError> {
        let (found, max) = (message.len(), super::EncryptionKey::message_max(self));
        if found > max {
            return Err(EncryptError::TooLong { found, max });
        }
        let sealed = self.key.seal_oaep(self.hash.digest(), label, message);
        sealed.ok_or(EncryptError::Failed { algorithm: self.hash.algorithm() })
    }
}

impl super::EncryptionKey for EncryptionKey {
    fn algorithm(&self) -> Algorithm {
        self.hash.algorithm()
    }

    fn encrypt(&self, message: &[u8]) -> Result<Vec<u8>, EncryptError> {
        self.encrypt_with_label(&[], message)
    }

    fn message_max(&self) -> usize {
        self.key.bytes() - 2 * self.hash.digest().bytes() - 2
    }

    fn to_spki(&self) -> Vec<u8> {
        self.key.to_spki()
    }
}
