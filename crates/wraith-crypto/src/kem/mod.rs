//! Key encapsulation: whoever has the encapsulation key makes a secret and the ciphertext that carries it to the [`DecapsulationKey`].
//!
//! Keys are found by [`Algorithm`], or by type in the module of a family. A raw key is what the standard calls one; PKCS #8 and SPKI
//! (RFC 5958, RFC 5280) say the algorithm, too. [`ml_kem_768`] is what the handshake of the transport uses.

mod formats;
pub mod hybrid;
mod keys;
pub mod ml_kem;
pub mod ml_kem_768;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::algorithm::algorithms;

/// The secret half of a key pair.
pub trait DecapsulationKey: Send + Sync {
    /// Which one it is.
    fn algorithm(&self) -> Algorithm;

    /// The public half.
    fn encapsulation_key(&self) -> Box<dyn EncapsulationKey>;

    /// The secret in `ciphertext`. One that was not made for this key gives a secret that nobody else knows.
    ///
    /// # Errors
    /// [`KemError::CiphertextLength`]; of the hybrids also [`KemError::InvalidCiphertext`]: its classical half is one that agrees with everybody on the same.
    fn decapsulate(&self, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>, KemError>;

    /// The seed, from which the key is made again.
    fn to_raw(&self) -> Zeroizing<Vec<u8>>;

    /// PKCS #8, DER, with the seed (ML-KEM: RFC 9935; X-Wing: draft-connolly-cfrg-xwing-kem). `None` of X25519MLKEM768, which has no such format.
    fn to_pkcs8(&self) -> Option<Zeroizing<Vec<u8>>> {
        formats::to_pkcs8(self.algorithm(), &self.to_raw())
    }
}

/// The public half of a key pair.
pub trait EncapsulationKey: Send + Sync {
    /// Which one it is.
    fn algorithm(&self) -> Algorithm;

    /// A new secret, and the ciphertext that carries it.
    ///
    /// # Errors
    /// The system has no randomness.
    fn encapsulate(&self) -> Result<(Vec<u8>, Zeroizing<Vec<u8>>), KemError>;

    /// The raw key.
    fn to_raw(&self) -> Vec<u8>;

    /// The SubjectPublicKeyInfo, DER. `None` as of [`DecapsulationKey::to_pkcs8`].
    fn to_spki(&self) -> Option<Vec<u8>> {
        formats::to_spki(self.algorithm(), &self.to_raw())
    }
}

/// Why there is no key or secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KemError {
    /// The bytes are no key of this algorithm.
    #[error("not a key of {algorithm}")]
    InvalidKey {
        /// Of this one.
        algorithm: Algorithm,
    },
    /// The ciphertext has the wrong length.
    #[error("a ciphertext of {algorithm} has {} bytes, not {found}", algorithm.ciphertext_bytes())]
    CiphertextLength {
        /// Of this one.
        algorithm: Algorithm,
        /// What was given.
        found: usize,
    },
    /// The ciphertext is none.
    #[error("not a ciphertext of {algorithm}")]
    InvalidCiphertext {
        /// Of this one.
        algorithm: Algorithm,
    },
    /// The library could not, for want of memory or randomness.
    #[error("{algorithm} failed: no memory, or no randomness")]
    Failed {
        /// Of this one.
        algorithm: Algorithm,
    },
}

algorithms! {
    /// The KEMs.
    "KEM";
    MlKem512 = "ML-KEM-512", "FIPS 203";
    MlKem768 = "ML-KEM-768", "FIPS 203";
    MlKem1024 = "ML-KEM-1024", "FIPS 203";
    X25519MlKem768 = "X25519MLKEM768", "draft-ietf-tls-ecdhe-mlkem";
    XWing = "X-Wing", "draft-connolly-cfrg-xwing-kem";
}

impl Algorithm {
    /// Bytes of an encapsulation key.
    #[must_use]
    pub const fn encapsulation_key_bytes(self) -> usize {
        match self {
            Self::MlKem512 => 800,
            Self::MlKem768 => 1184,
            Self::MlKem1024 => 1568,
            Self::X25519MlKem768 | Self::XWing => 1216,
        }
    }

    /// Bytes of a ciphertext.
    #[must_use]
    pub const fn ciphertext_bytes(self) -> usize {
        match self {
            Self::MlKem512 => 768,
            Self::MlKem768 => 1088,
            Self::MlKem1024 => 1568,
            Self::X25519MlKem768 | Self::XWing => 1120,
        }
    }
}
