//! Public-key encryption: whoever has the public key encrypts, who has the [`DecryptionKey`] decrypts.
//!
//! RSA and SM2 take short messages: a key, say. HPKE takes any, and [`kem`](crate::kem) with an AEAD does the same by hand.

pub mod hpke;
mod keys;
pub mod rsa;
pub mod rsa_pkcs1;
pub mod sm2;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::algorithm::algorithms;

/// The secret half of a key pair.
pub trait DecryptionKey: Send + Sync {
    /// Which one it is.
    fn algorithm(&self) -> Algorithm;

    /// What `ciphertext` was made of.
    ///
    /// # Errors
    /// [`EncryptError::Unopened`] whatever is wrong with it.
    fn decrypt(&self, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>, EncryptError>;

    /// The public half.
    fn encryption_key(&self) -> Box<dyn EncryptionKey>;

    /// PKCS #8, DER.
    fn to_pkcs8(&self) -> Zeroizing<Vec<u8>>;
}

/// The public half of a key pair.
pub trait EncryptionKey: Send + Sync {
    /// Which one it is.
    fn algorithm(&self) -> Algorithm;

    /// `message`, for the secret half.
    ///
    /// # Errors
    /// It is too long, or the system has no randomness.
    fn encrypt(&self, message: &[u8]) -> Result<Vec<u8>, EncryptError>;

    /// Bytes of the longest message.
    fn message_max(&self) -> usize;

    /// The SubjectPublicKeyInfo, DER.
    fn to_spki(&self) -> Vec<u8>;
}

/// Why nothing was encrypted or decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncryptError {
    /// The bytes are no key of this algorithm.
    #[error("not a key of {algorithm}")]
    InvalidKey {
        /// Of this one.
        algorithm: Algorithm,
    },
    /// The message does not fit.
    #[error("a message of {found} bytes is too long: this key takes {max}")]
    TooLong {
        /// What was given.
        found: usize,
        /// What fits.
        max: usize,
    },
    /// The ciphertext was not made for this key, or was changed.
    #[error("wrong key, or damaged")]
    Unopened,
    /// The library could not, for want of memory or randomness.
    #[error("{algorithm} failed: no memory, or no randomness")]
    Failed {
        /// Of this one.
        algorithm: Algorithm,
    },
}

algorithms! {
    /// The algorithms for public-key encryption.
    "public-key encryption";
    RsaOaepSha1 = "RSA-OAEP-SHA-1", "RFC 8017";
    RsaOaepSha256 = "RSA-OAEP-SHA-256", "RFC 8017";
    RsaOaepSha384 = "RSA-OAEP-SHA-384", "RFC 8017";
    RsaOaepSha512 = "RSA-OAEP-SHA-512", "RFC 8017";
    /// For old formats: who decrypts cannot tell a damaged ciphertext from another message.
    RsaPkcs1 = "RSA-PKCS1", "RFC 8017";
    Sm2 = "SM2", "GB/T 32918.4";
}
