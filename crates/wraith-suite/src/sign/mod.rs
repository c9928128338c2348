//! Signatures: the holder of the [`SigningKey`] signs, and anyone with the [`VerifyingKey`]
//! verifies.
//!
//! Programs that choose the algorithm at run time use [`Algorithm`] and the traits. Programs that
//! choose at compile time use the key types in the module of the algorithm's family, such as
//! [`ecdsa`]. A raw key has the format of the algorithm's standard. The containers PKCS #8 (private
//! keys, RFC 5958) and SPKI (public keys, RFC 5280) hold the name of the algorithm in addition to
//! the key.

pub mod ecdsa;
pub mod ed25519;
pub mod ed448;
mod edwards_keys;
mod keys;
pub mod ml_dsa;
pub mod rsa;
pub mod slh_dsa;
pub mod sm2;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::algorithm::algorithms;

/// A private key.
pub trait SigningKey: Send + Sync {
    /// Returns the algorithm.
    fn algorithm(&self) -> Algorithm;

    /// Signs `message`.
    ///
    /// # Errors
    /// [`SignError::Failed`] if the library fails, for example because the system has no
    /// randomness.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError>;

    /// Returns the public key.
    fn verifying_key(&self) -> Box<dyn VerifyingKey>;

    /// Returns the raw private key: the seed, if the standard has one. For RSA, the PKCS #1
    /// structure.
    fn to_raw(&self) -> Zeroizing<Vec<u8>>;

    /// Returns the key in PKCS #8 (DER).
    fn to_pkcs8(&self) -> Zeroizing<Vec<u8>>;
}

/// A public key.
pub trait VerifyingKey: Send + Sync {
    /// Returns the algorithm.
    fn algorithm(&self) -> Algorithm;

    /// Verifies `signature` over `message`.
    ///
    /// # Errors
    /// [`SignError::Unauthentic`] for any defect.
    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), SignError>;

    /// Returns the raw public key. For curves, an uncompressed point (SEC 1); for RSA, the PKCS #1
    /// structure.
    fn to_raw(&self) -> Vec<u8>;

    /// Returns the key as SubjectPublicKeyInfo (DER).
    fn to_spki(&self) -> Vec<u8>;
}

/// Maximum length of a context of ML-DSA, SLH-DSA and Ed448, in bytes.
pub const CONTEXT_MAX: usize = 255;

/// Returns the length of `context`, if it is permitted.
fn context_bytes(context: &[u8]) -> Result<u8, SignError> {
    const { assert!(CONTEXT_MAX == u8::MAX as usize, "a length of one byte is good") };
    let found = context.len();
    u8::try_from(found).map_err(|_| SignError::Context { found })
}

/// Reason why there is no key or no signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SignError {
    /// The bytes are not a key of this algorithm.
    #[error("not a key of {algorithm}")]
    InvalidKey {
        /// The algorithm in use.
        algorithm: Algorithm,
    },
    /// The context is longer than [`CONTEXT_MAX`].
    #[error("a context of {found} bytes is too long: at most 255")]
    Context {
        /// Length of the context in bytes.
        found: usize,
    },
    /// The SM2 identity is longer than 8191 bytes.
    #[error("an identity of {found} bytes is too long: at most 8191")]
    Identity {
        /// Length of the identity in bytes.
        found: usize,
    },
    /// The signature is not valid for this message and key.
    #[error("not authentic: wrong key, or the message or the signature is damaged")]
    Unauthentic,
    /// The library failed: out of memory, or no randomness.
    #[error("{algorithm} failed: out of memory, or no randomness")]
    Failed {
        /// The algorithm in use.
        algorithm: Algorithm,
    },
}

algorithms! {
    /// A signature algorithm.
    "signature";
    "RFC 8017" {
        RsaPssSha256 = "RSA-PSS-SHA-256", RsaPssSha384 = "RSA-PSS-SHA-384",
        RsaPssSha512 = "RSA-PSS-SHA-512",
        RsaPkcs1Sha256 = "RSA-PKCS1-SHA-256", RsaPkcs1Sha384 = "RSA-PKCS1-SHA-384",
        RsaPkcs1Sha512 = "RSA-PKCS1-SHA-512",
    }
    "FIPS 186-5" {
        EcdsaP224 = "ECDSA-P-224", EcdsaP256 = "ECDSA-P-256", EcdsaP384 = "ECDSA-P-384",
        EcdsaP521 = "ECDSA-P-521",
    }
    "RFC 5639" {
        EcdsaBrainpoolP256r1 = "ECDSA-brainpoolP256r1",
        EcdsaBrainpoolP384r1 = "ECDSA-brainpoolP384r1",
        EcdsaBrainpoolP512r1 = "ECDSA-brainpoolP512r1",
    }
    "RFC 8032" {
        Ed25519 = "Ed25519", Ed448 = "Ed448",
    }
    "GB/T 32918.2" {
        Sm2 = "SM2",
    }
    "FIPS 204" {
        MlDsa44 = "ML-DSA-44", MlDsa65 = "ML-DSA-65", MlDsa87 = "ML-DSA-87",
    }
    "FIPS 205" {
        SlhDsaSha2_128s = "SLH-DSA-SHA2-128s", SlhDsaSha2_128f = "SLH-DSA-SHA2-128f",
        SlhDsaSha2_192s = "SLH-DSA-SHA2-192s", SlhDsaSha2_192f = "SLH-DSA-SHA2-192f",
        SlhDsaSha2_256s = "SLH-DSA-SHA2-256s", SlhDsaSha2_256f = "SLH-DSA-SHA2-256f",
        SlhDsaShake128s = "SLH-DSA-SHAKE-128s", SlhDsaShake128f = "SLH-DSA-SHAKE-128f",
        SlhDsaShake192s = "SLH-DSA-SHAKE-192s", SlhDsaShake192f = "SLH-DSA-SHAKE-192f",
        SlhDsaShake256s = "SLH-DSA-SHAKE-256s", SlhDsaShake256f = "SLH-DSA-SHAKE-256f",
    }
}
