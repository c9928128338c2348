//! Key pairs on the curves of NIST (SP 800-186) and of brainpool (RFC 5639), for
//! [signatures](crate::sign::ecdsa) and [agreement](crate::agree::ecdh).
//!
//! AWS-LC computes, unless [`Backends::Fast`](crate::Backends) is chosen. Then our own code computes
//! P-224 and the curves of brainpool (`weierstrass`), for which AWS-LC has little dedicated code, and
//! public keys of P-256 on processors with the vector instructions of the kernel.
//!
//! A private key is a scalar from 1 to the order minus 1, big-endian, as long as the order. A
//! public key is a point on the curve, uncompressed (SEC 1 §2.3.3). All curves have a prime order,
//! so every point on a curve generates the whole group.

mod curve;

use std::fmt;
use std::sync::OnceLock;

use wraith_aws_lc::ec as aws;
#[cfg(all(target_arch = "x86_64", feature = "kernels"))]
use wraith_kernels::p256::P256;
use zeroize::Zeroizing;

use crate::encoding::pkcs8::PrivateKeyInfo;
use crate::encoding::sec1::{self, EcPrivateKey};
use crate::encoding::signature;
use crate::encoding::spki::{AlgorithmIdentifier, SubjectPublicKeyInfo};
use crate::hash::Sha512;
use crate::weierstrass;
pub use curve::Curve;
pub(crate) use curve::CurveExt;

/// A private key with its public half.
pub(crate) struct PrivateKey {
    pub(crate) curve: Curve,
    key: Key,
    /// The public half, set at creation. For a key that AWS-LC generated it is computed on first
    /// use, because it takes a division by Z.
    point: OnceLock<Vec<u8>>,
}

/// The private half, by implementation.
enum Key {
    /// AWS-LC's key. If AWS-LC generated it, it has the public half.
    AwsLc(aws::PrivateKey),
    /// Our implementation, and the scalar.
    Own(&'static dyn weierstrass::Curve, Zeroizing<Vec<u8>>),
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey").field("curve", &self.curve).finish_non_exhaustive()
    }
}

impl PrivateKey {
    /// Generates a key. Returns `None` if there is no memory.
    pub(crate) fn generate(curve: Curve) -> Option<Self> {
        if let Some(own) = curve.own() {
            let mut wide = Zeroizing::new(vec![0; 2 * curve.bytes()]);
            crate::rand::fill(&mut wide);
            // It is zero with a probability of at most about 2^-224.
            return Self::from_scalar(curve, &own.reduce(&wide)?);
        }
        #[cfg(all(target_arch = "x86_64", feature = "kernels"))]
        if let (Curve::P256, Some(_)) = (curve, P256::new()) {
            // Rejection sampling; one in 2^32 samples is rejected.
            return (0..8).find_map(|_| Self::from_scalar(curve, &*crate::rand::secret::<32>()));
        }
        let key = aws::PrivateKey::generate(curve)?;
        Some(Self { curve, key: Key::AwsLc(key), point: OnceLock::new() })
    }

    /// Returns the key of `scalar`, or `None` if it is not a private key of the curve.
    pub(crate) fn from_scalar(curve: Curve, scalar: &[u8]) -> Option<Self> {
        if scalar.len() != curve.bytes() {
            return None;
        }
        if let Some(own) = curve.own() {
            let point = own.public_key(scalar)?;
            let key = Key::Own(own, scalar.to_vec().into());
            return Some(Self { curve, key, point: point.into() });
        }
        let point = public_key(curve, scalar)?;
        let key = aws::PrivateKey::from_scalar(curve, scalar)?;
        Some(Self { curve, key: Key::AwsLc(key), point: point.into() })
    }

    /// Returns the scalar.
    pub(crate) fn scalar(&self) -> Zeroizing<Vec<u8>> {
        match &self.key {
            Key::AwsLc(key) => key.scalar(),
            Key::Own(_, scalar) => scalar.clone(),
        }
    }

    /// Returns the public half.
    pub(crate) fn point(&self) -> Vec<u8> {
        let written = || match &self.key {
            Key::AwsLc(key) => key.point().expect("AWS-LC generated the key"),
            Key::Own(..) => unreachable!("the public half was set at creation"),
        };
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
        match &self.key {
            Key::AwsLc(key) => key.agree(peer),
            Key::Own(own, scalar) => own.agree(scalar, peer),
        }
    }

    /// Signs a hash. The signature is DER or, if `is_fixed`, r ‖ s. Returns `None` if there is no
    /// memory.
    pub(crate) fn sign(&self, hash: &[u8], is_fixed: bool) -> Option<Vec<u8>> {
        match &self.key {
            Key::AwsLc(key) if is_fixed => key.sign(hash),
            Key::AwsLc(key) => key.sign_der(hash),
            Key::Own(own, scalar) => {
                let signature = sign_own(*own, scalar, hash);
                Some(if is_fixed { signature } else { signature::to_der(&signature) })
            }
        }
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

/// Signs with our implementation and returns r ‖ s.
///
/// The nonce is derived from random bytes, the key and the hash, so it stays secret even if the
/// random bytes are not.
fn sign_own(own: &dyn weierstrass::Curve, scalar: &[u8], hash: &[u8]) -> Vec<u8> {
    loop {
        let random = Zeroizing::new(crate::rand::bytes::<32>());
        let mut wide = Zeroizing::new(vec![0; 2 * own.bytes()]);
        for (block, i) in wide.chunks_mut(Sha512::DIGEST_BYTES).zip(0u8..) {
            let mut derived = Sha512::new();
            for part in [&b"ECDSA nonce"[..], &[i], &random[..], scalar, hash] {
                derived.update(part);
            }
            let derived = Zeroizing::new(derived.finish());
            block.copy_from_slice(&derived[..block.len()]);
        }
        let nonce = own.reduce(&wide).expect("the input has twice the size of the order");
        if let Some(signature) = own.sign(scalar, &nonce, hash) {
            return signature;
        }
    }
}

/// A public key.
pub(crate) struct PublicKey {
    pub(crate) curve: Curve,
    key: Verifier,
    point: Vec<u8>,
}

/// The implementation of a public key, chosen when it was created.
enum Verifier {
    AwsLc(aws::PublicKey),
    Own(&'static dyn weierstrass::Curve),
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicKey").field("curve", &self.curve).finish_non_exhaustive()
    }
}

impl PublicKey {
    /// Returns the key of `point`, or `None` if it is not a point of the curve.
    pub(crate) fn from_point(curve: Curve, point: &[u8]) -> Option<Self> {
        let bytes = point.to_vec();
        if let Some(own) = curve.own() {
            return own.is_point(point).then_some(Self {
                curve,
                key: Verifier::Own(own),
                point: bytes,
            });
        }
        let key = aws::PublicKey::from_point(curve, point)?;
        Some(Self { curve, key: Verifier::AwsLc(key), point: bytes })
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
        match &self.key {
            Verifier::AwsLc(key) => key.verify_der(hash, signature),
            Verifier::Own(own) => signature::from_der(signature, self.curve.bytes())
                .is_some_and(|signature| own.verify(&self.point, hash, &signature)),
        }
    }

    /// Returns whether `signature`, as r ‖ s, is a valid signature over `hash`.
    pub(crate) fn verify_fixed(&self, hash: &[u8], signature: &[u8]) -> bool {
        let half = self.curve.bytes();
        if signature.len() != 2 * half {
            return false;
        }
        match &self.key {
            Verifier::AwsLc(key) => key.verify_der(hash, &signature::to_der(signature)),
            Verifier::Own(own) => own.verify(&self.point, hash, signature),
        }
    }
}
