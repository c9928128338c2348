//! Key pairs on the curves of NIST (SP 800-186) and of brainpool (RFC 5639), for
//! [signatures](crate::sign::ecdsa) and [agreement](crate::agree::ecdh).
//!
//! AWS-LC computes. If [`Backends::Fast`](crate::Backends) is chosen, a kernel computes public keys of
//! P-256 on processors with its vector instructions.
//!
//! A private key is a scalar from 1 to the order minus 1, big-endian, as long as the order. A
//! public key is a point on the curve, uncompressed (SEC 1 §2.3.3). All curves have a prime order,
//! so every point on a curve generates the whole group.

mod curve;

use std::sync::OnceLock;

use wraith_aws_lc::ec as aws;
#[cfg(all(target_arch = "x86_64", feature = "kernels"))]
use wraith_kernels::p256::P256;
use zeroize::Zeroizing;

use crate::encoding::pkcs8::PrivateKeyInfo;
use crate::encoding::sec1::{self, EcPrivateKey};
use crate::encoding::spki::{AlgorithmIdentifier, SubjectPublicKeyInfo};
pub use curve::Curve;
pub(crate) use curve::CurveExt;

/// Implements the constructors of a private key of an operation. The module has a function
/// `algorithm` of the curve.
macro_rules! constructors {
    ($key:ident, $error:ident, $invalid:ident) => {
        impl $key {
            /// Generates a key.
            pub fn generate(curve: Curve) -> Result<Self, $error> {
                let made = $crate::ec::PrivateKey::generate(curve);
                made.map(Self).ok_or($error::Failed { algorithm: algorithm(curve) })
            }

            /// Creates a key from a scalar of [`Curve::bytes`] bytes. It has to be greater than
            /// zero and below the order.
            pub fn from_scalar(curve: Curve, scalar: &[u8]) -> Result<Self, $error> {
                let invalid = $error::$invalid { algorithm: algorithm(curve) };
                $crate::ec::PrivateKey::from_scalar(curve, scalar).map(Self).ok_or(invalid)
            }

            /// Parses a key in PKCS #8 (DER).
            pub fn from_pkcs8(curve: Curve, der: &[u8]) -> Result<Self, $error> {
                let invalid = $error::$invalid { algorithm: algorithm(curve) };
                $crate::ec::PrivateKey::from_pkcs8(curve, der).map(Self).ok_or(invalid)
            }
        }
    };
}
pub(crate) use constructors;

/// A private key with its public half.
pub(crate) struct PrivateKey {
    pub(crate) curve: Curve,
    key: aws::PrivateKey,
    /// The public half, set at creation. For a key that AWS-LC generated it is computed on first
    /// use, because it takes a division by Z.
    point: OnceLock<Vec<u8>>,
}

wraith_crypto::redacted_debug!(PrivateKey, curve);

impl PrivateKey {
    /// Generates a key. Returns `None` if there is no memory.
    pub(crate) fn generate(curve: Curve) -> Option<Self> {
        #[cfg(all(target_arch = "x86_64", feature = "kernels"))]
        if let (Curve::P256, Some(_)) = (curve, P256::new()) {
            // Rejection sampling; one in 2^32 samples is rejected.
            return (0..8).find_map(|_| Self::from_scalar(curve, &*crate::rand::secret::<32>()));
        }
        let key = aws::PrivateKey::generate(curve)?;
        Some(Self { curve, key, point: OnceLock::new() })
    }

    /// Returns the key of `scalar`, or `None` if it is not a private key of the curve.
    pub(crate) fn from_scalar(curve: Curve, scalar: &[u8]) -> Option<Self> {
        if scalar.len() != curve.bytes() {
            return None;
        }
        let point = public_key(curve, scalar)?;
        let key = aws::PrivateKey::from_scalar(curve, scalar)?;
        Some(Self { curve, key, point: point.into() })
    }

    /// Returns the scalar.
    pub(crate) fn scalar(&self) -> Zeroizing<Vec<u8>> {
        self.key.scalar()
    }

    /// Returns the public half.
    pub(crate) fn point(&self) -> Vec<u8> {
        let written = || self.key.point().expect("AWS-LC generated the key");
        self.point.get_or_init(written).clone()
    }

    /// Returns the public half as a key.
    pub(crate) fn public(&self) -> PublicKey {
        let key = PublicKey::from_point(self.curve, &self.point());
        key.expect("the point is on the curve; a failed allocation would abort anyway")
    }

    /// Parses a key in PKCS #8, which contains an ECPrivateKey (RFC 5915).
    ///
    /// Returns `None` if it is not a key of the curve, or contains a public half that does not
    /// match.
    pub(crate) fn from_pkcs8(curve: Curve, der: &[u8]) -> Option<Self> {
        let info = PrivateKeyInfo::from_der(der).ok()?;
        if info.algorithm != AlgorithmIdentifier::of_curve(curve.oid()) {
            return None;
        }
        let inside = EcPrivateKey::of_curve(curve.oid(), info.private_key)?;
        let key = Self::from_scalar(curve, inside.scalar)?;
        let belongs = |point: Option<&[u8]>| point.is_none_or(|point| point == key.point());
        (belongs(inside.point) && belongs(info.public_key)).then_some(key)
    }

    /// Encodes the key as PKCS #8.
    pub(crate) fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        sec1::to_pkcs8(self.curve.oid(), &self.scalar(), &self.point())
    }

    /// Returns the x coordinate of the shared point, or `None` if `peer` is not a point of the
    /// curve.
    pub(crate) fn agree(&self, peer: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        self.key.agree(peer)
    }

    /// Signs a hash. The signature is DER or, if `is_fixed`, r ‖ s. Returns `None` if there is no
    /// memory.
    pub(crate) fn sign(&self, hash: &[u8], is_fixed: bool) -> Option<Vec<u8>> {
        if is_fixed { self.key.sign(hash) } else { self.key.sign_der(hash) }
    }
}

/// Returns the public half of `scalar`, or `None` if it is not a private key of the curve.
fn public_key(curve: Curve, scalar: &[u8]) -> Option<Vec<u8>> {
    #[cfg(all(target_arch = "x86_64", feature = "kernels"))]
    if let (Curve::P256, Some(own), Ok(scalar)) = (curve, P256::new(), scalar.try_into()) {
        return own.public_key(scalar).map(Vec::from);
    }
    curve.public_key(scalar)
}

/// A public key.
pub(crate) struct PublicKey {
    pub(crate) curve: Curve,
    key: aws::PublicKey,
    point: Vec<u8>,
}

wraith_crypto::redacted_debug!(PublicKey, curve);

impl PublicKey {
    /// Returns the key of `point`, or `None` if it is not a point of the curve.
    pub(crate) fn from_point(curve: Curve, point: &[u8]) -> Option<Self> {
        let key = aws::PublicKey::from_point(curve, point)?;
        Some(Self { curve, key, point: point.to_vec() })
    }

    /// Returns the point.
    pub(crate) fn point(&self) -> Vec<u8> {
        self.point.clone()
    }

    /// Parses a SubjectPublicKeyInfo. Returns `None` if it is not a key of the curve.
    pub(crate) fn from_spki(curve: Curve, der: &[u8]) -> Option<Self> {
        let info = SubjectPublicKeyInfo::from_der(der).ok()?;
        let is_ours = info.algorithm == AlgorithmIdentifier::of_curve(curve.oid());
        is_ours.then(|| Self::from_point(curve, info.key)).flatten()
    }

    /// Encodes the key as SubjectPublicKeyInfo.
    pub(crate) fn to_spki(&self) -> Vec<u8> {
        let algorithm = AlgorithmIdentifier::of_curve(self.curve.oid());
        SubjectPublicKeyInfo { algorithm, key: &self.point() }.to_der()
    }

    /// Returns whether `signature`, in DER, is a valid signature over `hash`.
    pub(crate) fn verify(&self, hash: &[u8], signature: &[u8]) -> bool {
        self.key.verify_der(hash, signature)
    }

    /// Returns whether `signature`, as r ‖ s, is a valid signature over `hash`.
    pub(crate) fn verify_fixed(&self, hash: &[u8], signature: &[u8]) -> bool {
        self.key.verify(hash, signature)
    }
}
