//! Key pairs on the curves of NIST (SP 800-186) and of brainpool (RFC 5639), for
//! [signatures](crate::sign::ecdsa) and [agreement](crate::agree::ecdh).
//!
//! - P-256, P-384 and P-521: AWS-LC. The exception is the computation of a P-256 public key on
//!   processors with the vector instructions of `kernels::p256`, which is faster.
//! - P-224 and the curves of brainpool: `kernels::weierstrass`, because AWS-LC has little dedicated
//!   code for them.
//!
//! A private key is a scalar from 1 to the order minus 1, big-endian, as long as the order. A
//! public key is a point on the curve, uncompressed (SEC 1 §2.3.3). All curves have a prime order,
//! so every point on a curve generates the whole group.
#![allow(unsafe_code)]

mod curve;

use std::fmt;
use std::ptr;
use std::sync::OnceLock;

use aws_lc_sys as aws;
use zeroize::Zeroizing;

use crate::aws::{Owned, number, succeeded, write_number};
use crate::encoding::der::{self, Reader, Writer};
use crate::encoding::oid;
use crate::encoding::pkcs8::PrivateKeyInfo;
use crate::encoding::spki::{AlgorithmIdentifier, SubjectPublicKeyInfo};
use crate::hash::Sha512;
#[cfg(target_arch = "x86_64")]
use crate::kernels::p256::P256;
use crate::kernels::weierstrass;
pub use curve::Curve;

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
    /// AWS-LC's key, which has the private half; if AWS-LC generated it, also the public half.
    AwsLc(Owned<aws::EC_KEY>),
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
        #[cfg(target_arch = "x86_64")]
        if let (Curve::P256, Some(own)) = (curve, P256::new()) {
            return Self::from_scalar(curve, &*own.generate());
        }
        let key = curve.new_key()?;
        // SAFETY: the key is alive and has its group; after the call it has both halves.
        unsafe {
            succeeded(aws::EC_KEY_generate_key(key.as_ptr())).then_some(())?;
            Some(Self { curve, key: Key::AwsLc(key), point: OnceLock::new() })
        }
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
        let (key, scalar) = (curve.new_key()?, number(scalar)?);
        // SAFETY: the key is alive and has its group. It copies the number, which is alive.
        let is_set = unsafe { aws::EC_KEY_set_private_key(key.as_ptr(), scalar.as_ptr()) };
        succeeded(is_set).then_some(Self { curve, key: Key::AwsLc(key), point: point.into() })
    }

    /// Returns the scalar.
    pub(crate) fn scalar(&self) -> Zeroizing<Vec<u8>> {
        let key = match &self.key {
            Key::AwsLc(key) => key,
            Key::Own(_, scalar) => return scalar.clone(),
        };
        let mut bytes = Zeroizing::new(vec![0; self.curve.bytes()]);
        // SAFETY: the key is alive and has its private half.
        let fits = unsafe { write_number(aws::EC_KEY_get0_private_key(key.as_ptr()), &mut bytes) };
        assert!(fits, "a scalar is below the order");
        bytes
    }

    /// Returns the public half.
    pub(crate) fn point(&self) -> Vec<u8> {
        let written = || match &self.key {
            // SAFETY: the key is alive. It has its public half, because AWS-LC generated it.
            Key::AwsLc(key) => unsafe {
                self.curve.write_point(aws::EC_KEY_get0_public_key(key.as_ptr()))
            },
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
        if !info.algorithm.is_of(oid::EC_PUBLIC_KEY, curve.oid()) {
            return None;
        }
        let mut reader = Reader::of_sequence(info.private_key).ok()?;
        if reader.small() != Ok(1) {
            return None;
        }
        let key = Self::from_scalar(curve, reader.octet_string().ok()?)?;
        if let Some(parameters) = reader.optional(der::context_constructed(0)).ok()? {
            (parameters == &curve.identifier()[..]).then_some(())?;
        }
        let public = match reader.optional(der::context_constructed(1)).ok()? {
            Some(inside) => {
                let mut inside = Reader::new(inside);
                let point = inside.bit_string().ok()?;
                inside.finish().ok()?;
                Some(point)
            }
            None => None,
        };
        reader.finish().ok()?;
        let belongs = |point: Option<&[u8]>| point.is_none_or(|point| point == key.point());
        (belongs(public) && belongs(info.public_key)).then_some(key)
    }

    /// Encodes the key as PKCS #8.
    pub(crate) fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        let inside = Writer::sequence_of(|w| {
            w.small(1).octet_string(&self.scalar()).nested(der::context_constructed(1), |w| {
                w.bit_string(&self.point());
            });
        });
        let curve = self.curve.identifier();
        let algorithm = AlgorithmIdentifier { oid: oid::EC_PUBLIC_KEY, parameters: Some(&curve) };
        PrivateKeyInfo::new(algorithm, &inside).to_der()
    }

    /// Returns the x coordinate of the shared point, or `None` if `peer` is not a point of the
    /// curve.
    pub(crate) fn agree(&self, peer: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let key = match &self.key {
            Key::AwsLc(key) => key.as_ptr(),
            Key::Own(own, scalar) => return own.agree(scalar, peer),
        };
        let peer = self.curve.point(peer)?;
        let mut secret = Zeroizing::new(vec![0; self.curve.bytes()]);
        // SAFETY: the key and the point are alive, and `secret` has the length passed. Without a
        // derivation function AWS-LC writes the x coordinate itself.
        let len = unsafe {
            let (out, len) = (secret.as_mut_ptr().cast(), secret.len());
            aws::ECDH_compute_key(out, len, peer.as_ptr(), key, None)
        };
        if usize::try_from(len) != Ok(secret.len()) {
            crate::aws::forget_errors();
            return None;
        }
        Some(secret)
    }

    /// Signs a hash. The signature is DER or, if `is_fixed`, r ‖ s. Returns `None` if there is no
    /// memory.
    pub(crate) fn sign(&self, hash: &[u8], is_fixed: bool) -> Option<Vec<u8>> {
        let key = match &self.key {
            Key::AwsLc(key) => key.as_ptr(),
            Key::Own(own, scalar) => {
                let signature = sign_own(*own, scalar, hash);
                return Some(if is_fixed { signature } else { to_der(&signature) });
            }
        };
        let (data, len) = (hash.as_ptr(), hash.len());
        if !is_fixed {
            // SAFETY: the key is alive.
            let mut signature = vec![0; unsafe { aws::ECDSA_size(key) }];
            let (out, mut out_len) = (signature.as_mut_ptr(), 0);
            // SAFETY: the key is alive, and each pointer covers the bytes that AWS-LC reads or
            // writes.
            let made = unsafe { aws::ECDSA_sign(0, data, len, out, &mut out_len, key) };
            signature.truncate(out_len as usize);
            return succeeded(made).then_some(signature);
        }
        let half = self.curve.bytes();
        let mut signature = vec![0; 2 * half];
        let (r, s) = signature.split_at_mut(half);
        // SAFETY: the key is alive, `hash` has the length passed, and a signature has both numbers.
        let fits = unsafe {
            let made = Owned::new(aws::ECDSA_do_sign(data, len, key))?;
            write_number(aws::ECDSA_SIG_get0_r(made.as_ptr()), r)
                && write_number(aws::ECDSA_SIG_get0_s(made.as_ptr()), s)
        };
        fits.then_some(signature)
    }
}

/// Returns the public half of `scalar`, or `None` if it is not a private key of the curve.
fn public_key(curve: Curve, scalar: &[u8]) -> Option<Vec<u8>> {
    #[cfg(target_arch = "x86_64")]
    if let (Curve::P256, Some(own), Ok(scalar)) = (curve, P256::new(), scalar.try_into()) {
        return own.public_key(scalar).map(Vec::from);
    }
    reference::public_key(curve, scalar)
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

/// Encodes r ‖ s as DER.
fn to_der(signature: &[u8]) -> Vec<u8> {
    let (r, s) = signature.split_at(signature.len() / 2);
    let mut der = Writer::sequence_of(|w| {
        w.unsigned(r).unsigned(s);
    });
    std::mem::take(&mut *der)
}

/// Decodes DER to r ‖ s, with `half` bytes for each.
fn from_der(der: &[u8], half: usize) -> Option<Vec<u8>> {
    let mut reader = Reader::of_sequence(der).ok()?;
    let mut signature = vec![0; 2 * half];
    for part in signature.chunks_exact_mut(half) {
        let number = reader.unsigned().ok()?;
        part[half.checked_sub(number.len())?..].copy_from_slice(number);
    }
    reader.finish().ok()?;
    Some(signature)
}

/// A public key.
pub(crate) struct PublicKey {
    pub(crate) curve: Curve,
    /// AWS-LC's key, on curves where AWS-LC verifies.
    key: Option<Owned<aws::EC_KEY>>,
    point: Vec<u8>,
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
            return own.is_point(point).then_some(Self { curve, key: None, point: bytes });
        }
        let (key, point) = (curve.new_key()?, curve.point(point)?);
        // SAFETY: both are alive, and the key copies the point.
        let is_set = unsafe { aws::EC_KEY_set_public_key(key.as_ptr(), point.as_ptr()) };
        succeeded(is_set).then_some(Self { curve, key: Some(key), point: bytes })
    }

    /// Returns the point.
    pub(crate) fn point(&self) -> Vec<u8> {
        self.point.clone()
    }

    /// Parses a SubjectPublicKeyInfo. Returns `None` if it is not a key of the curve.
    pub(crate) fn from_spki(curve: Curve, der: &[u8]) -> Option<Self> {
        let info = SubjectPublicKeyInfo::from_der(der).ok()?;
        let is_ours = info.algorithm.is_of(oid::EC_PUBLIC_KEY, curve.oid());
        is_ours.then(|| Self::from_point(curve, info.key)).flatten()
    }

    /// Encodes the key as SubjectPublicKeyInfo.
    pub(crate) fn to_spki(&self) -> Vec<u8> {
        let curve = self.curve.identifier();
        let algorithm = AlgorithmIdentifier { oid: oid::EC_PUBLIC_KEY, parameters: Some(&curve) };
        SubjectPublicKeyInfo { algorithm, key: &self.point() }.to_der()
    }

    /// Returns whether `signature`, in DER, is a valid signature over `hash`.
    pub(crate) fn verify(&self, hash: &[u8], signature: &[u8]) -> bool {
        let Some(key) = &self.key else {
            let signature = from_der(signature, self.curve.bytes());
            return signature.is_some_and(|signature| self.verify_fixed(hash, &signature));
        };
        let (sig, sig_len) = (signature.as_ptr(), signature.len());
        // SAFETY: the key is alive, and `hash` and `signature` have the lengths passed.
        succeeded(unsafe {
            aws::ECDSA_verify(0, hash.as_ptr(), hash.len(), sig, sig_len, key.as_ptr())
        })
    }

    /// Returns whether `signature`, as r ‖ s, is a valid signature over `hash`.
    pub(crate) fn verify_fixed(&self, hash: &[u8], signature: &[u8]) -> bool {
        let half = self.curve.bytes();
        if signature.len() != 2 * half {
            return false;
        }
        match self.curve.own() {
            Some(own) => own.verify(&self.point, hash, signature),
            None => self.verify(hash, &to_der(signature)),
        }
    }
}

/// AWS-LC's functions from bytes to bytes: for curves without code of this crate, and as the
/// reference for the others.
pub(crate) mod reference {
    use super::*;

    /// Returns the public half of `scalar`, or `None` if it is not a private key of the curve.
    pub(crate) fn public_key(curve: Curve, scalar: &[u8]) -> Option<Vec<u8>> {
        let (key, scalar) = (curve.new_key()?, number(scalar)?);
        // SAFETY: all are alive and have the group of the curve.
        unsafe {
            // AWS-LC refuses numbers that are not below the order; zero is checked here too.
            let is_set = succeeded(aws::EC_KEY_set_private_key(key.as_ptr(), scalar.as_ptr()));
            if !is_set || aws::BN_is_zero(scalar.as_ptr()) == 1 {
                return None;
            }
            let point = Owned::new(aws::EC_POINT_new(curve.group()))?;
            let (out, scalar, none) =
                (point.as_ptr(), scalar.as_ptr(), ptr::null::<aws::EC_POINT>());
            let (no_number, no_context) = (ptr::null(), ptr::null_mut());
            let made = aws::EC_POINT_mul(curve.group(), out, scalar, none, no_number, no_context);
            succeeded(made).then(|| curve.write_point(point.as_ptr()))
        }
    }

    /// Returns a key of AWS-LC.
    #[cfg(test)]
    fn key(curve: Curve, scalar: Option<&[u8]>, point: &[u8]) -> Option<Owned<aws::EC_KEY>> {
        let (key, point) = (curve.new_key()?, curve.point(point)?);
        // SAFETY: all are alive, and the key copies them.
        unsafe {
            if let Some(scalar) = scalar {
                aws::EC_KEY_set_private_key(key.as_ptr(), number(scalar)?.as_ptr());
            }
            succeeded(aws::EC_KEY_set_public_key(key.as_ptr(), point.as_ptr())).then_some(key)
        }
    }

    #[cfg(test)]
    pub(crate) fn agree(curve: Curve, scalar: &[u8], peer: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let key = key(curve, Some(scalar), peer)?;
        let peer = curve.point(peer)?;
        let mut secret = Zeroizing::new(vec![0; curve.bytes()]);
        let (out, len) = (secret.as_mut_ptr().cast(), secret.len());
        // SAFETY: the key and the point are alive, and `secret` has the length passed.
        let len = unsafe { aws::ECDH_compute_key(out, len, peer.as_ptr(), key.as_ptr(), None) };
        (usize::try_from(len) == Ok(secret.len())).then_some(secret)
    }

    #[cfg(test)]
    pub(crate) fn sign(curve: Curve, scalar: &[u8], digest: &[u8]) -> Option<Vec<u8>> {
        let key = key(curve, Some(scalar), &public_key(curve, scalar)?)?;
        // SAFETY: the key is alive.
        let mut signature = vec![0; unsafe { aws::ECDSA_size(key.as_ptr()) }];
        let (out, mut len) = (signature.as_mut_ptr(), 0);
        // SAFETY: the key is alive, and each pointer covers the bytes that AWS-LC reads or writes.
        let made = unsafe {
            aws::ECDSA_sign(0, digest.as_ptr(), digest.len(), out, &mut len, key.as_ptr())
        };
        succeeded(made).then(|| from_der(&signature[..len as usize], curve.bytes()))?
    }

    #[cfg(test)]
    pub(crate) fn verify(curve: Curve, point: &[u8], digest: &[u8], signature: &[u8]) -> bool {
        let (Some(key), der) = (key(curve, None, point), to_der(signature)) else { return false };
        let (data, len) = (digest.as_ptr(), digest.len());
        // SAFETY: the key is alive, and both slices have the lengths passed.
        succeeded(unsafe { aws::ECDSA_verify(0, data, len, der.as_ptr(), der.len(), key.as_ptr()) })
    }
}
