//! ECDSA (FIPS 186-5 §6): P-224, P-256, P-384 and P-521 with SHA-224, SHA-256, SHA-384 and SHA-512,
//! and the brainpool curves with the hash of their size. The nonce of a signature is random, mixed
//! with the key and the message.
//!
//! A signature is DER (SEC 1 §C.5), or r ‖ s, each as long as the curve's order (IEEE P1363).

use zeroize::Zeroizing;

use super::{Algorithm, SignError};
use crate::ec;
pub use crate::ec::Curve;
use crate::ec::CurveExt;

const fn algorithm(curve: Curve) -> Algorithm {
    match curve {
        Curve::P224 => Algorithm::EcdsaP224,
        Curve::P256 => Algorithm::EcdsaP256,
        Curve::P384 => Algorithm::EcdsaP384,
        Curve::P521 => Algorithm::EcdsaP521,
        Curve::BrainpoolP256r1 => Algorithm::EcdsaBrainpoolP256r1,
        Curve::BrainpoolP384r1 => Algorithm::EcdsaBrainpoolP384r1,
        _ => Algorithm::EcdsaBrainpoolP512r1,
    }
}

const fn invalid_key(curve: Curve) -> SignError {
    SignError::InvalidKey { algorithm: algorithm(curve) }
}

/// A private key.
#[derive(Debug)]
pub struct SigningKey(ec::PrivateKey);

ec::constructors!(SigningKey, SignError, InvalidKey);

impl SigningKey {
    /// Signs a precomputed hash. Returns DER. If the hash is longer than the order, its first bits
    /// count.
    pub fn sign_hash(&self, hash: &[u8]) -> Result<Vec<u8>, SignError> {
        self.made(self.0.sign(hash, false))
    }

    /// Signs `message`. Returns r ‖ s.
    pub fn sign_fixed(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        let (hash, len) = self.0.curve.digest().of(message);
        self.made(self.0.sign(&hash[..len], true))
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> VerifyingKey {
        VerifyingKey(self.0.public())
    }

    fn made(&self, signature: Option<Vec<u8>>) -> Result<Vec<u8>, SignError> {
        signature.ok_or(SignError::Failed { algorithm: algorithm(self.0.curve) })
    }
}

impl super::SigningKey for SigningKey {
    fn algorithm(&self) -> Algorithm {
        algorithm(self.0.curve)
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        let (hash, len) = self.0.curve.digest().of(message);
        self.sign_hash(&hash[..len])
    }

    fn verifying_key(&self) -> Box<dyn super::VerifyingKey> {
        Box::new(self.public())
    }

    fn to_raw(&self) -> Zeroizing<Vec<u8>> {
        self.0.scalar()
    }

    fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        self.0.to_pkcs8()
    }
}

/// A public key.
#[derive(Debug)]
pub struct VerifyingKey(ec::PublicKey);

impl VerifyingKey {
    /// Parses an uncompressed point.
    pub fn from_point(curve: Curve, point: &[u8]) -> Result<Self, SignError> {
        ec::PublicKey::from_point(curve, point).map(Self).ok_or(invalid_key(curve))
    }

    /// Parses a key in SubjectPublicKeyInfo (DER).
    pub fn from_spki(curve: Curve, der: &[u8]) -> Result<Self, SignError> {
        ec::PublicKey::from_spki(curve, der).map(Self).ok_or(invalid_key(curve))
    }

    /// Verifies a signature in DER over a precomputed hash.
    pub fn verify_hash(&self, hash: &[u8], signature: &[u8]) -> Result<(), SignError> {
        self.0.verify(hash, signature).then_some(()).ok_or(SignError::Unauthentic)
    }

    /// Verifies a signature r ‖ s over a precomputed hash.
    pub fn verify_hash_fixed(&self, hash: &[u8], signature: &[u8]) -> Result<(), SignError> {
        self.0.verify_fixed(hash, signature).then_some(()).ok_or(SignError::Unauthentic)
    }

    /// Verifies a signature r ‖ s over `message`.
    pub fn verify_fixed(&self, message: &[u8], signature: &[u8]) -> Result<(), SignError> {
        let (hash, len) = self.0.curve.digest().of(message);
        self.verify_hash_fixed(&hash[..len], signature)
    }
}

impl super::VerifyingKey for VerifyingKey {
    fn algorithm(&self) -> Algorithm {
        algorithm(self.0.curve)
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), SignError> {
        let (hash, len) = self.0.curve.digest().of(message);
        self.verify_hash(&hash[..len], signature)
    }

    fn to_raw(&self) -> Vec<u8> {
        self.0.point()
    }

    fn to_spki(&self) -> Vec<u8> {
        self.0.to_spki()
    }
}
