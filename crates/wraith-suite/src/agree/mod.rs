//! Key agreement: both sides compute the same secret from one key pair each.
//!
//! Programs that choose the algorithm at run time use [`Algorithm`] and the traits. Programs that
//! choose at compile time use the types in the module of the algorithm's family, such as [`ecdh`].
//! The transport uses [`x25519()`] and [`x25519_public`].

pub mod ecdh;
pub mod ffdhe;
mod keys;
mod montgomery;
pub mod sm2;
mod x448;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::algorithm::algorithms;

pub use montgomery::{X448Key, X25519Key};
pub use wraith_crypto::agree::{x25519, x25519_public};
pub use x448::{X448_BYTES, x448, x448_public};

/// A private key.
pub trait PrivateKey: Send + Sync {
    /// Returns the algorithm.
    fn algorithm(&self) -> Algorithm;

    /// Returns the public key for the other side:
    ///
    /// - X25519 and X448: 32 or 56 bytes,
    /// - ECDH: an uncompressed point (SEC 1),
    /// - finite fields: a number as long as the prime.
    fn public_key(&self) -> Vec<u8>;

    /// Computes the shared secret. It is not uniform: derive keys from it ([`kdf`](crate::kdf)).
    ///
    /// # Errors
    /// [`AgreeError::InvalidPublicKey`] if `peer` is not a public key, or one with a predictable
    /// secret.
    fn agree(&self, peer: &[u8]) -> Result<Zeroizing<Vec<u8>>, AgreeError>;

    /// Returns the raw private key.
    fn to_raw(&self) -> Zeroizing<Vec<u8>>;
}

/// Reason why there is no key or no shared secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AgreeError {
    /// The bytes are not a private key of this algorithm.
    #[error("not a private key of {algorithm}")]
    InvalidPrivateKey {
        /// The algorithm in use.
        algorithm: Algorithm,
    },
    /// The bytes are not a public key of this algorithm, or one whose secret does not depend on the
    /// private key.
    #[error("not a public key of {algorithm}")]
    InvalidPublicKey {
        /// The algorithm in use.
        algorithm: Algorithm,
    },
    /// The library failed: out of memory, or no randomness.
    #[error("{algorithm} failed: out of memory, or no randomness")]
    Failed {
        /// The algorithm in use.
        algorithm: Algorithm,
    },
}

algorithms! {
    /// A key agreement.
    "key agreement";
    "RFC 7748" {
        X25519 = "X25519", X448 = "X448",
    }
    "NIST SP 800-56A" {
        EcdhP224 = "ECDH-P-224", EcdhP256 = "ECDH-P-256", EcdhP384 = "ECDH-P-384",
        EcdhP521 = "ECDH-P-521",
    }
    "RFC 5639" {
        EcdhBrainpoolP256r1 = "ECDH-brainpoolP256r1", EcdhBrainpoolP384r1 = "ECDH-brainpoolP384r1",
        EcdhBrainpoolP512r1 = "ECDH-brainpoolP512r1",
    }
    "RFC 7919" {
        Ffdhe2048 = "FFDHE-2048", Ffdhe3072 = "FFDHE-3072", Ffdhe4096 = "FFDHE-4096",
        Ffdhe6144 = "FFDHE-6144", Ffdhe8192 = "FFDHE-8192",
    }
    "RFC 3526" {
        Modp2048 = "MODP-2048", Modp3072 = "MODP-3072", Modp4096 = "MODP-4096",
        Modp6144 = "MODP-6144", Modp8192 = "MODP-8192",
    }
}
