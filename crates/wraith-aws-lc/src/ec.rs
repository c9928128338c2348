//! Key pairs, signatures and agreement on the curves of NIST (SP 800-186) and of brainpool (RFC
//! 5639).
//!
//! A private key is a scalar from 1 to the order minus 1, big-endian, as long as the order. A
//! public key is a point on the curve, uncompressed (SEC 1 §2.3.3). All curves have a prime order.
//! `None` means an input that is no key of the curve, or no memory.

use std::ptr;

use aws::point_conversion_form_t::POINT_CONVERSION_UNCOMPRESSED;
use aws_lc_sys as aws;
use zeroize::Zeroizing;

use crate::object::{Owned, forget_errors, number, succeeded, write_number};

/// An elliptic curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Curve {
    /// NIST's secp224r1.
    P224,
    /// NIST's secp256r1.
    P256,
    /// NIST's secp384r1.
    P384,
    /// NIST's secp521r1.
    P521,
    /// brainpoolP256r1 (RFC 5639).
    BrainpoolP256r1,
    /// brainpoolP384r1 (RFC 5639).
    BrainpoolP384r1,
    /// brainpoolP512r1 (RFC 5639).
    BrainpoolP512r1,
}

impl Curve {
    /// Returns the size of a coordinate in bytes. A scalar has the same size.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::P224 => 28,
            Self::P256 | Self::BrainpoolP256r1 => 32,
            Self::P384 | Self::BrainpoolP384r1 => 48,
            Self::P521 => 66,
            Self::BrainpoolP512r1 => 64,
        }
    }

    /// Returns AWS-LC's group, which is static.
    fn group(self) -> *const aws::EC_GROUP {
        // SAFETY: the calls have no preconditions.
        unsafe {
            match self {
                Self::P224 => aws::EC_group_p224(),
                Self::P256 => aws::EC_group_p256(),
                Self::P384 => aws::EC_group_p384(),
                Self::P521 => aws::EC_group_p521(),
                Self::BrainpoolP256r1 => aws::EC_group_brainpoolP256r1(),
                Self::BrainpoolP384r1 => aws::EC_group_brainpoolP384r1(),
                Self::BrainpoolP512r1 => aws::EC_group_brainpoolP512r1(),
            }
        }
    }

    fn new_key(self) -> Option<Owned<aws::EC_KEY>> {
        // SAFETY: the key is new and ours, and the group is static.
        unsafe {
            let key = Owned::new(aws::EC_KEY_new())?;
            succeeded(aws::EC_KEY_set_group(key.as_ptr(), self.group())).then_some(key)
        }
    }

    /// Parses a point. Returns `None` unless it is on the curve.
    fn point(self, bytes: &[u8]) -> Option<Owned<aws::EC_POINT>> {
        if bytes.len() != 1 + 2 * self.bytes() || bytes[0] != 4 {
            return None;
        }
        // SAFETY: the point is new and ours, and `bytes` has the length passed.
        unsafe {
            let point = Owned::new(aws::EC_POINT_new(self.group()))?;
            let (data, len) = (bytes.as_ptr(), bytes.len());
            let read =
                aws::EC_POINT_oct2point(self.group(), point.as_ptr(), data, len, ptr::null_mut());
            succeeded(read).then_some(point)
        }
    }

    /// Encodes `point`, which is not the point at infinity.
    ///
    /// # Safety
    /// `point` is a live point of this curve.
    unsafe fn write_point(self, point: *const aws::EC_POINT) -> Vec<u8> {
        let mut bytes = vec![0; 1 + 2 * self.bytes()];
        let (data, len) = (bytes.as_mut_ptr(), bytes.len());
        let form = POINT_CONVERSION_UNCOMPRESSED;
        // SAFETY: the caller guarantees the point, and `bytes` has the length passed.
        let written = unsafe {
            aws::EC_POINT_point2oct(self.group(), point, form, data, len, ptr::null_mut())
        };
        assert_eq!(written, len, "a public key is never the point at infinity");
        bytes
    }

    /// Returns the public half of `scalar`.
    #[must_use]
    pub fn public_key(self, scalar: &[u8]) -> Option<Vec<u8>> {
        let (key, scalar) = (self.new_key()?, number(scalar)?);
        // SAFETY: all are alive and have the group of the curve.
        unsafe {
            // AWS-LC refuses numbers that are not below the order; zero is checked here too.
            let is_set = succeeded(aws::EC_KEY_set_private_key(key.as_ptr(), scalar.as_ptr()));
            if !is_set || aws::BN_is_zero(scalar.as_ptr()) == 1 {
                return None;
            }
            let point = Owned::new(aws::EC_POINT_new(self.group()))?;
            let (out, scalar, none) =
                (point.as_ptr(), scalar.as_ptr(), ptr::null::<aws::EC_POINT>());
            let (no_number, no_context) = (ptr::null(), ptr::null_mut());
            let made = aws::EC_POINT_mul(self.group(), out, scalar, none, no_number, no_context);
            succeeded(made).then(|| self.write_point(point.as_ptr()))
        }
    }
}

/// A private key. AWS-LC wipes memory that it frees.
pub struct PrivateKey {
    curve: Curve,
    key: Owned<aws::EC_KEY>,
}

impl PrivateKey {
    /// Generates a key, with its public half.
    #[must_use]
    pub fn generate(curve: Curve) -> Option<Self> {
        let key = curve.new_key()?;
        // SAFETY: the key is alive and has its group; after the call it has both halves.
        let made = unsafe { aws::EC_KEY_generate_key(key.as_ptr()) };
        succeeded(made).then_some(Self { curve, key })
    }

    /// Returns the key of `scalar`, without its public half. The caller checks that the scalar is
    /// not zero, with [`Curve::public_key`].
    #[must_use]
    pub fn from_scalar(curve: Curve, scalar: &[u8]) -> Option<Self> {
        let (key, scalar) = (curve.new_key()?, number(scalar)?);
        // SAFETY: the key is alive and has its group. It copies the number, which is alive.
        let is_set = unsafe { aws::EC_KEY_set_private_key(key.as_ptr(), scalar.as_ptr()) };
        succeeded(is_set).then_some(Self { curve, key })
    }

    /// Returns the scalar.
    #[must_use]
    pub fn scalar(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(vec![0; self.curve.bytes()]);
        // SAFETY: the key is alive and has its private half.
        let fits =
            unsafe { write_number(aws::EC_KEY_get0_private_key(self.key.as_ptr()), &mut bytes) };
        assert!(fits, "a scalar is below the order");
        bytes
    }

    /// Returns the public half of a generated key, or `None` for another key. It takes a division
    /// by Z.
    #[must_use]
    pub fn point(&self) -> Option<Vec<u8>> {
        // SAFETY: the key is alive, and so is its point if it has one.
        unsafe {
            let point = aws::EC_KEY_get0_public_key(self.key.as_ptr());
            (!point.is_null()).then(|| self.curve.write_point(point))
        }
    }

    /// Returns the x coordinate of the shared point.
    #[must_use]
    pub fn agree(&self, peer: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let peer = self.curve.point(peer)?;
        let mut secret = Zeroizing::new(vec![0; self.curve.bytes()]);
        // SAFETY: the key and the point are alive, and `secret` has the length passed. Without a
        // derivation function AWS-LC writes the x coordinate itself.
        let len = unsafe {
            let (out, len) = (secret.as_mut_ptr().cast(), secret.len());
            aws::ECDH_compute_key(out, len, peer.as_ptr(), self.key.as_ptr(), None)
        };
        if usize::try_from(len) != Ok(secret.len()) {
            forget_errors();
            return None;
        }
        Some(secret)
    }

    /// Signs a hash (ECDSA). The signature is DER.
    #[must_use]
    pub fn sign_der(&self, hash: &[u8]) -> Option<Vec<u8>> {
        let (data, len, key) = (hash.as_ptr(), hash.len(), self.key.as_ptr());
        // SAFETY: the key is alive.
        let mut signature = vec![0; unsafe { aws::ECDSA_size(key) }];
        let (out, mut out_len) = (signature.as_mut_ptr(), 0);
        // SAFETY: the key is alive, and each pointer covers the bytes that AWS-LC reads or writes.
        let made = unsafe { aws::ECDSA_sign(0, data, len, out, &mut out_len, key) };
        signature.truncate(out_len as usize);
        succeeded(made).then_some(signature)
    }

    /// Signs a hash (ECDSA). The signature is r ‖ s, both as long as a coordinate.
    #[must_use]
    pub fn sign(&self, hash: &[u8]) -> Option<Vec<u8>> {
        let half = self.curve.bytes();
        let mut signature = vec![0; 2 * half];
        let (r, s) = signature.split_at_mut(half);
        // SAFETY: the key is alive, `hash` has the length passed, and a signature has both numbers.
        let fits = unsafe {
            let made =
                Owned::new(aws::ECDSA_do_sign(hash.as_ptr(), hash.len(), self.key.as_ptr()))?;
            write_number(aws::ECDSA_SIG_get0_r(made.as_ptr()), r)
                && write_number(aws::ECDSA_SIG_get0_s(made.as_ptr()), s)
        };
        fits.then_some(signature)
    }
}

/// A public key.
pub struct PublicKey {
    curve: Curve,
    key: Owned<aws::EC_KEY>,
}

impl PublicKey {
    /// Returns the key of `point`.
    #[must_use]
    pub fn from_point(curve: Curve, point: &[u8]) -> Option<Self> {
        let (key, point) = (curve.new_key()?, curve.point(point)?);
        // SAFETY: both are alive, and the key copies the point.
        let is_set = unsafe { aws::EC_KEY_set_public_key(key.as_ptr(), point.as_ptr()) };
        succeeded(is_set).then_some(Self { curve, key })
    }

    /// Returns whether `signature`, in DER, is a valid signature over `hash` (ECDSA).
    #[must_use]
    pub fn verify_der(&self, hash: &[u8], signature: &[u8]) -> bool {
        let (sig, sig_len) = (signature.as_ptr(), signature.len());
        // SAFETY: the key is alive, and `hash` and `signature` have the lengths passed.
        succeeded(unsafe {
            aws::ECDSA_verify(0, hash.as_ptr(), hash.len(), sig, sig_len, self.key.as_ptr())
        })
    }

    /// Returns whether `signature`, r ‖ s and each as long as a coordinate, is a valid signature over
    /// `hash` (ECDSA).
    #[must_use]
    pub fn verify(&self, hash: &[u8], signature: &[u8]) -> bool {
        if signature.len() != 2 * self.curve.bytes() {
            return false;
        }
        let (r, s) = signature.split_at(self.curve.bytes());
        // SAFETY: the objects are alive, and the signature owns both numbers once it has them.
        unsafe {
            let (Some(r), Some(s)) = (number(r), number(s)) else { return false };
            let Some(made) = Owned::new(aws::ECDSA_SIG_new()) else { return false };
            if !succeeded(aws::ECDSA_SIG_set0(made.as_ptr(), r.into_ptr(), s.into_ptr())) {
                return false;
            }
            let key = self.key.as_ptr();
            succeeded(aws::ECDSA_do_verify(hash.as_ptr(), hash.len(), made.as_ptr(), key))
        }
    }
}
