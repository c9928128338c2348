//! Ed25519 (RFC 8032), without a context, computed by AWS-LC. [`SecretIdentity`](crate::SecretIdentity) is the same for the transport,
//! with rules of its own about which keys are anybody's.
#![allow(unsafe_code)]

use aws_lc_sys as aws;
use curve25519_dalek::edwards::CompressedEdwardsY;
use zeroize::Zeroizing;

use super::edwards_keys::{self, Names};
use super::{Algorithm, SignError};
use crate::encoding::oid;
use crate::field::Field;

/// Bytes of a seed, which is the secret key.
pub const SEED_BYTES: usize = 32;
/// Bytes of a public key.
pub const PUBLIC_KEY_BYTES: usize = 32;
/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;

const NAMES: Names = Names { algorithm: Algorithm::Ed25519, oid: oid::ED25519 };

/// The secret half of a key pair.
pub struct SigningKey {
    /// The seed, and the public key behind it.
    pair: Zeroizing<[u8; 64]>,
}

edwards_keys::signing_key!(SigningKey, VerifyingKey, NAMES);

impl SigningKey {
    /// A new key.
    #[must_use]
    pub fn generate() -> Self {
        Self::from_seed(&crate::rand::secret())
    }

    /// The key of `seed`.
    #[must_use]
    pub fn from_seed(seed: &[u8; SEED_BYTES]) -> Self {
        let (mut public, mut pair) = ([0; PUBLIC_KEY_BYTES], Zeroizing::new([0; 64]));
        // SAFETY: the pointers are to the 32, 64 and 32 bytes that are written and read.
        unsafe {
            aws::ED25519_keypair_from_seed(public.as_mut_ptr(), pair.as_mut_ptr(), seed.as_ptr());
        }
        Self { pair }
    }

    /// The signature over `message`, the same each time.
    #[must_use]
    pub fn sign_message(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let mut signature = [0; SIGNATURE_BYTES];
        let (out, data, len) = (signature.as_mut_ptr(), message.as_ptr(), message.len());
        // SAFETY: `signature` has room for 64 bytes, `message` the length passed, and the pair 64 bytes.
        let signed = unsafe { aws::ED25519_sign(out, data, len, self.pair.as_ptr()) };
        assert_eq!(signed, 1, "every key signs every message");
        signature
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> VerifyingKey {
        VerifyingKey(*self.pair.last_chunk().expect("it is the second half"))
    }

    fn seed(&self) -> &[u8; SEED_BYTES] {
        self.pair.first_chunk().expect("it is the first half")
    }
}

/// The public half of a key pair: a point of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyingKey([u8; PUBLIC_KEY_BYTES]);

impl VerifyingKey {
    /// The key that `bytes` are. `None` if they are no point (RFC 8032 §5.1.3: one whose y is not below p is none), or one of small order,
    /// under which one signature is good for every message.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; PUBLIC_KEY_BYTES]) -> Option<Self> {
        // Who decompresses does not look whether y is below p. A sign that zero has not is on points of small order only.
        let mut y = *bytes;
        y[31] &= 0x7f;
        Field::from_canonical(&y)?;
        let point = CompressedEdwardsY(*bytes).decompress()?;
        (!point.is_small_order()).then_some(Self(*bytes))
    }

    /// Its bytes.
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
