//! Public-key encryption: anyone with the public key encrypts; only the holder of the
//! [`DecryptionKey`] decrypts.
//!
//! RSA and SM2 encrypt short messages, such as a key. HPKE encrypts messages of any length. A
//! program can also combine a [`kem`](crate::kem) with an AEAD itself.

pub mod hpke;
mod keys;
pub mod rsa;
pub mod rsa_pkcs1;
pub mod sm2;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::algorithm::algorithms;

/// A private key.
pub trait DecryptionKey: Send + Sync {
    /// Returns the algorithm.
    fn algorithm(&self) -> Algorithm;

    /// Decrypts `ciphertext`.
    ///
    /// # Errors
    /// [`EncryptError::Unopened`] for any defect.
    fn decrypt(&self, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>, EncryptError>;

    /// Returns the public key.
    fn encryption_key(&self) -> Box<dyn EncryptionKey>;

    /// Returns the key in PKCS #8 (DER).
    fn to_pkcs8(&self) -> Zeroizing<Vec<u8>>;
}

/// A public key.
pub trait EncryptionKey: Send + Sync {
    /// Returns the algorithm.
    fn algorithm(&self) -> Algorithm;

    /// Encrypts `message`.
    ///
    /// # Errors
    /// [`EncryptError`] if the message is too long, or the system has no randomness.
    fn encrypt(&self, message: &[u8]) -> Result<Vec<u8>, EncryptError>;

    /// Returns the maximum length of a message in bytes.
    fn message_max(&self) -> usize;

    /// Returns the key as SubjectPublicKeyInfo (DER).
    fn to_spki(&self) -> Vec<u8>;
}

/// Reason why nothing was encrypted or decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncryptError {
    /// The bytes are not a key of this algorithm.
    #[error("not a key of {algorithm}")]
    InvalidKey {
        /// The algorithm in use.
        algorithm: Algorithm,
    },
    /// The message is too long.
    #[error("a message of {found} bytes is too long: this key takes {max}")]
    TooLong {
        /// Length of the message in bytes.
        found: usize,
        /// Maximum length in bytes.
        max: usize,
    },
    /// The ciphertext was made for another key, or modified.
    #[error("wrong key, or damaged")]
    Unopened,
    /// The library failed: out of memory, or no randomness.
    #[error("{algorithm} failed: out of memory, or no randomness")]
    Failed {
        /// The algorithm in use.
        algorithm: Algorithm,
    },
}

algorithms! {
    /// An algorithm for public-key encryption.
    "public-key encryption";
    "RFC 8017" {
        RsaOaepSha1 = "RSA-OAEP-SHA-1", RsaOaepSha256 = "RSA-OAEP-SHA-256",
        RsaOaepSha384 = "RSA-OAEP-SHA-384", RsaOaepSha512 = "RSA-OAEP-SHA-512",
        /// For old formats: the recipient cannot distinguish a damaged ciphertext from another message.
        RsaPkcs1 = "RSA-PKCS1",
    }
    "GB/T 32918.4" {
        Sm2 = "SM2",
    }
}
