//! Ed25519 (RFC 8032), without a context, computed by AWS-LC. The transport uses
//! [`SecretIdentity`](crate::SecretIdentity), which has its own rules for valid keys.
#![allow(unsafe_code)]

use aws_lc_sys as aws;
use curve25519_dalek::edwards::CompressedEdwardsY;
use zeroize::Zeroizing;

use super::edwards_keys::{self, Names};
use super::{Algorithm, SignError};
use crate::encoding::oid;
use crate::field::Field;

/// Length of a seed, the secret key, in bytes.
pub const SEED_BYTES: usize = 32;
/// Length of a public key in bytes.
pub const PUBLIC_KEY_BYTES: usize = 32;
/// Length of a signature in bytes.
pub const SIGNATURE_BYTES: usize = 64;

const NAMES: Names = Names { algorithm: Algorithm::Ed25519, oid: oid::ED25519 };

/// A private key.
pub struct SigningKey {
    /// The seed, followed by the public key.
    pair: Zeroizing<[u8; 64]>,
}

edwards_keys::signing_key!(SigningKey, VerifyingKey, NAMES);

impl SigningKey {
    /// Generates a key.
    #[must_use]
    pub fn generate() -> Self {
        Self::from_seed(&crate::rand::secret())
    }

    /// Derives the key from `seed`.
    #[must_use]
    pub fn from_seed(seed: &[u8; SEED_BYTES]) -> Self {
        let (mut public, mut pair) = ([0; PUBLIC_KEY_BYTES], Zeroizing::new([0; 64]));
        // SAFETY: the pointers are to the 32, 64 and 32 bytes that are written and read.
        unsafe {
            aws::ED25519_keypair_from_seed(public.as_mut_ptr(), pair.as_mut_ptr(), seed.as_ptr());
        }
        Self { pair }
    }

    /// Signs `message`. Deterministic.
    #[must_use]
    pub fn sign_message(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let mut signature = [0; SIGNATURE_BYTES];
        let (out, data, len) = (signature.as_mut_ptr(), message.as_ptr(), message.len());
        // SAFETY: `signature` has room for 64 bytes, `message` the length passed, and the pair 64
        // bytes.
        let signed = unsafe { aws::ED25519_sign(out, data, len, self.pair.as_ptr()) };
        assert_eq!(signed, 1, "every key signs every message");
        signature
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> VerifyingKey {
        VerifyingKey(*self.pair.last_chunk().expect("it is the second half"))
    }

    fn seed(&self) -> &[u8; SEED_BYTES] {
        self.pair.first_chunk().expect("it is the first half")
    }
}

/// A public key: a point of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyingKey([u8; PUBLIC_KEY_BYTES]);

impl VerifyingKey {
    /// Parses the bytes of a public key. Returns `None` if they are not the encoding of a point
    /// (RFC 8032 §5.1.3 requires y below p). A point of small order is also rejected: it allows a
    /// signature that is valid for every message.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; PUBLIC_KEY_BYTES]) -> Option<Self> {
        // `decompress` does not check that y is below p. It also accepts a sign bit for x = 0, but
        // only points of small order have x = 0.
        let mut y = *bytes;
        y[31] &= 0x7f;
        Field::from_canonical(&y)?;
        let point = CompressedEdwardsY(*bytes).decompress()?;
        (!point.is_small_order()).then_some(Self(*bytes))
    }

    /// Returns the bytes of the key.
    #[must_use]
    pub const fn to_bytes(&self) -> [u8; PUBLIC_KEY_BYTES] {
        self.0
    }

    fn is_signed(&self, message: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        let (data, len) = (message.as_ptr(), message.len());
        // SAFETY: `message` has the length passed, the signature 64 bytes and the key 32.
        crate::aws::succeeded(unsafe {
            aws::ED25519_verify(data, len, signature.as_ptr(), self.0.as_ptr())
        })
    }
}

edwards_keys::verifying_key!(VerifyingKey, NAMES);
