//! ECDH on the NIST and brainpool curves (SP 800-56A §5.7.1.2). The shared secret is the x
//! coordinate.

use zeroize::Zeroizing;

use super::{AgreeError, Algorithm};
use crate::ec;
pub use crate::ec::Curve;

const fn algorithm(curve: Curve) -> Algorithm {
    match curve {
        Curve::P224 => Algorithm::EcdhP224,
        Curve::P256 => Algorithm::EcdhP256,
        Curve::P384 => Algorithm::EcdhP384,
        Curve::P521 => Algorithm::EcdhP521,
        Curve::BrainpoolP256r1 => Algorithm::EcdhBrainpoolP256r1,
        Curve::BrainpoolP384r1 => Algorithm::EcdhBrainpoolP384r1,
        _ => Algorithm::EcdhBrainpoolP512r1,
    }
}

/// A private key.
#[derive(Debug)]
pub struct PrivateKey(ec::PrivateKey);

ec::constructors!(PrivateKey, AgreeError, InvalidPrivateKey);

impl PrivateKey {
    /// Returns the public key as SubjectPublicKeyInfo (DER).
    #[must_use]
    pub fn to_spki(&self) -> Vec<u8> {
        self.0.public().to_spki()
    }

    /// Returns the key in PKCS #8 (DER).
    #[must_use]
    pub fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        self.0.to_pkcs8()
    }
}

impl super::PrivateKey for PrivateKey {
    fn algorithm(&self) -> Algorithm {
        algorithm(self.0.curve)
    }

    fn public_key(&self) -> Vec<u8> {
        self.0.point()
    }

    fn agree(&self, peer: &[u8]) -> Result<Zeroizing<Vec<u8>>, AgreeError> {
        let invalid = AgreeError::InvalidPublicKey { algorithm: algorithm(self.0.curve) };
        self.0.agree(peer).ok_or(invalid)
    }

    fn to_raw(&self) -> Zeroizing<Vec<u8>> {
        self.0.scalar()
    }
}
