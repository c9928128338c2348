//! Key encapsulation: a holder of the public [`EncapsulationKey`] makes a shared secret, and a
//! ciphertext from which the holder of the [`DecapsulationKey`] gets the same secret.
//!
//! Programs that choose the algorithm at run time use [`Algorithm`] and the traits. Programs that
//! choose at compile time use the key types in the module of the algorithm's family, such as
//! [`ml_kem`]. A raw key has the format of the algorithm's standard. The containers PKCS #8
//! (private keys, RFC 5958) and SPKI (public keys, RFC 5280) hold the name of the algorithm in
//! addition to the key. The handshake of the transport uses
//! [`ml_kem_768`](wraith_crypto::ml_kem_768).

mod formats;
pub mod hybrid;
mod keys;
pub mod ml_kem;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::algorithm::algorithms;
use ml_kem::Set;

/// A private key.
pub trait DecapsulationKey: Send + Sync {
    /// Returns the algorithm.
    fn algorithm(&self) -> Algorithm;

    /// Returns the public key.
    fn encapsulation_key(&self) -> Box<dyn EncapsulationKey>;

    /// Returns the shared secret in `ciphertext`. A ciphertext made for another key gives an
    /// unpredictable secret.
    ///
    /// # Errors
    /// [`KemError::CiphertextLength`]. For X25519MLKEM768 also [`KemError::InvalidCiphertext`], if
    /// its X25519 share has small order.
    fn decapsulate(&self, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>, KemError>;

    /// Returns the seed, from which the key can be derived again.
    fn to_raw(&self) -> Zeroizing<Vec<u8>>;

    /// Returns the seed in PKCS #8 (DER; ML-KEM: RFC 9935; X-Wing: draft-connolly-cfrg-xwing-kem).
    /// `None` for X25519MLKEM768, which has no such format.
    fn to_pkcs8(&self) -> Option<Zeroizing<Vec<u8>>> {
        formats::to_pkcs8(self.algorithm(), &self.to_raw())
    }
}

/// A public key.
pub trait EncapsulationKey: Send + Sync {
    /// Returns the algorithm.
    fn algorithm(&self) -> Algorithm;

    /// Returns a ciphertext and its new shared secret.
    ///
    /// # Errors
    /// [`KemError`] if the key is invalid for an encapsulation, or the library fails.
    fn encapsulate(&self) -> Result<(Vec<u8>, Zeroizing<Vec<u8>>), KemError>;

    /// Returns the raw key.
    fn to_raw(&self) -> Vec<u8>;

    /// Returns the key as SubjectPublicKeyInfo (DER). `None` as for [`DecapsulationKey::to_pkcs8`].
    fn to_spki(&self) -> Option<Vec<u8>> {
        formats::to_spki(self.algorithm(), &self.to_raw())
    }
}

/// Reason why there is no key or no shared secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KemError {
    /// The bytes are not a key of this algorithm.
    #[error("not a key of {algorithm}")]
    InvalidKey {
        /// The algorithm in use.
        algorithm: Algorithm,
    },
    /// The ciphertext has the wrong length.
    #[error("a ciphertext of {algorithm} has {} bytes, not {found}", algorithm.ciphertext_bytes())]
    CiphertextLength {
        /// The algorithm in use.
        algorithm: Algorithm,
        /// Length of the ciphertext in bytes.
        found: usize,
    },
    /// The ciphertext is invalid.
    #[error("not a ciphertext of {algorithm}")]
    InvalidCiphertext {
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
    /// A KEM.
    "KEM";
    "FIPS 203" {
        MlKem512 = "ML-KEM-512", MlKem768 = "ML-KEM-768", MlKem1024 = "ML-KEM-1024",
    }
    "draft-ietf-tls-ecdhe-mlkem" {
        X25519MlKem768 = "X25519MLKEM768",
    }
    "draft-connolly-cfrg-xwing-kem" {
        XWing = "X-Wing",
    }
}

impl Algorithm {
    /// Returns the parameter set of ML-KEM, and the bytes of a share of X25519 behind it.
    const fn parts(self) -> (Set, usize) {
        match self {
            Self::MlKem512 => (Set::MlKem512, 0),
            Self::MlKem768 => (Set::MlKem768, 0),
            Self::MlKem1024 => (Set::MlKem1024, 0),
            Self::X25519MlKem768 | Self::XWing => (Set::MlKem768, 32),
        }
    }

    /// Returns the length of an encapsulation key in bytes.
    #[must_use]
    pub const fn encapsulation_key_bytes(self) -> usize {
        let (set, share) = self.parts();
        set.encapsulation_key_bytes() + share
    }

    /// Returns the length of a ciphertext in bytes.
    #[must_use]
    pub const fn ciphertext_bytes(self) -> usize {
        let (set, share) = self.parts();
        set.ciphertext_bytes() + share
    }
}
