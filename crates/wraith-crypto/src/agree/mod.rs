//! Key agreement: two key pairs, one secret that both sides can compute.
//!
//! Keys are found by [`Algorithm`], or by type in the module of a family. [`x25519()`] and [`x25519_public`] are what the transport uses.

pub mod ecdh;
pub mod ffdhe;
mod keys;
mod montgomery;
pub mod sm2;
mod x25519;
mod x448;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::algorithm::algorithms;

pub use montgomery::{X448Key, X25519Key};
pub use x448::{X448_BYTES, x448, x448_public};
pub use x25519::{x25519, x25519_public};

/// The secret half of a key pair.
pub trait PrivateKey: Send + Sync {
    /// Which one it is.
    fn algorithm(&self) -> Algorithm;

    /// What the other side needs: 32 or 56 bytes of X25519 and X448, an uncompressed point (SEC 1) of the curves, a number as long as the
    /// prime of the groups.
    fn public_key(&self) -> Vec<u8>;

    /// What both sides can compute. It is not uniform: derive keys from it ([`kdf`](crate::kdf)).
    ///
    /// # Errors
    /// [`AgreeError::InvalidPublicKey`]: `peer` is no public key, or one with which the secret would be known to anybody.
    fn agree(&self, peer: &[u8]) -> Result<Zeroizing<Vec<u8>>, AgreeError>;

    /// The raw secret key.
    fn to_raw(&self) -> Zeroizing<Vec<u8>>;
}

/// Why there is no key or secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AgreeError {
    /// The bytes are no private key of this algorithm.
    #[error("not a private key of {algorithm}")]
    InvalidPrivateKey {
        /// Of this one.
        algorithm: Algorithm,
    },
    /// The bytes are no public key of this algorithm, or one that agrees with everybody on the same.
    #[error("not a public key of {algorithm}")]
    InvalidPublicKey {
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
    /// The key agreements.
    "key agreement";
    X25519 = "X25519", "RFC 7748";
    X448 = "X448", "RFC 7748";
    EcdhP224 = "ECDH-P-224", "NIST SP 800-56A";
    EcdhP256 = "ECDH-P-256", "NIST SP 800-56A";
    EcdhP384 = "ECDH-P-384", "NIST SP 800-56A";
    EcdhP521 = "ECDH-P-521", "NIST SP 800-56A";
    EcdhBrainpoolP256r1 = "ECDH-brainpoolP256r1", "RFC 5639";
    EcdhBrainpoolP384r1 = "ECDH-brainpoolP384r1", "RFC 5639";
    EcdhBrainpoolP512r1 = "ECDH-brainpoolP512r1", "RFC 5639";
    Ffdhe2048 = "FFDHE-2048", "RFC 7919";
    Ffdhe3072 = "FFDHE-3072", "RFC 7919";
    Ffdhe4096 = "FFDHE-4096", "RFC 7919";
    Ffdhe6144 = "FFDHE-6144", "RFC 7919";
    Ffdhe8192 = "FFDHE-8192", "RFC 7919";
    Modp2048 = "MODP-2048", "RFC 3526";
    Modp3072 = "MODP-3072", "RFC 3526";
    Modp4096 = "MODP-4096", "RFC 3526";
    Modp6144 = "MODP-6144", "RFC 3526";
    Modp8192 = "MODP-8192", "RFC 3526";
}
