//! Ed25519 (RFC 8032), without a context, computed by AWS-LC. The transport uses
//! [`SecretIdentity`](wraith_crypto::SecretIdentity), which has its own rules for valid keys.

use curve25519_dalek::edwards::CompressedEdwardsY;
use wraith_aws_lc::ed25519 as aws;
use zeroize::Zeroizing;

use super::edwards_keys::{self, Names};
use super::{Algorithm, SignError};
use crate::encoding::oid;

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
    /// Derives the key from `seed`.
    #[must_use]
    pub fn from_seed(seed: &[u8; SEED_BYTES]) -> Self {
        Self { pair: aws::key_pair(seed) }
    }

    /// Signs `message`. Deterministic.
    #[must_use]
    pub fn sign_message(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        aws::sign(&self.pair, message)
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
        // `decompress` takes any y, and a sign bit for x = 0. Another encoding than that of the point
        // is not canonical.
        let point = CompressedEdwardsY(*bytes).decompress()?;
        let is_canonical = point.compress().0 == *bytes;
        (is_canonical && !point.is_small_order()).then_some(Self(*bytes))
    }

    /// Returns the bytes of the key.
    #[must_use]
    pub const fn to_bytes(&self) -> [u8; PUBLIC_KEY_BYTES] {
        self.0
    }

    fn is_signed(&self, message: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        aws::verify(&self.0, message, signature)
    }
}

edwards_keys::verifying_key!(VerifyingKey, NAMES);
