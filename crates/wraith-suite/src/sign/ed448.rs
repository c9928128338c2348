//! Ed448 (RFC 8032 §5.2): our own code over the crate's field and curve. A context has at most 255
//! bytes, and is empty by default.
//!
//! Verification checks the equation without cofactor, S B = R + k A, and compares R as bytes. A key
//! A of small order is rejected, as for Ed25519 in this crate.

use zeroize::{Zeroize, Zeroizing};

use super::edwards_keys::{self, Names};
use super::{Algorithm, SignError, context_bytes};
use crate::encoding::oid;
use crate::goldilocks::{POINT_BYTES, Point, Scalar};
use crate::hash::Shake256;

/// Length of a seed, the secret key, in bytes.
pub const SEED_BYTES: usize = 57;
/// Length of a public key in bytes.
pub const PUBLIC_KEY_BYTES: usize = 57;
/// Length of a signature in bytes.
pub const SIGNATURE_BYTES: usize = 114;

const NAMES: Names = Names { algorithm: Algorithm::Ed448, oid: oid::ED448 };

/// A private key.
pub struct SigningKey {
    seed: Zeroizing<[u8; SEED_BYTES]>,
    scalar: Scalar,
    /// Secret from which the nonce of each message is derived.
    prefix: Zeroizing<[u8; 57]>,
    public: [u8; PUBLIC_KEY_BYTES],
}

edwards_keys::signing_key!(SigningKey, VerifyingKey, NAMES);

impl SigningKey {
    /// Derives the key from `seed`.
    #[must_use]
    pub fn from_seed(seed: &[u8; SEED_BYTES]) -> Self {
        let mut hash = Zeroizing::new(Shake256::digest::<114>(seed));
        let (scalar, prefix) = hash.split_at_mut(57);
        scalar[0] &= 0xfc;
        scalar[55] |= 0x80;
        scalar[56] = 0;
        let scalar = Scalar::reduced(scalar);
        let public = Point::base_times(&scalar).to_bytes();
        let mut key =
            Self { seed: Zeroizing::new(*seed), scalar, prefix: Zeroizing::new([0; 57]), public };
        key.prefix.copy_from_slice(prefix);
        key
    }

    /// Signs `message`. Deterministic.
    #[must_use]
    pub fn sign_message(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.sign_in(&[], message)
    }

    /// Signs `message` in `context`, the purpose of the signature.
    ///
    /// # Errors
    /// [`SignError::Context`] if the context is longer than [`CONTEXT_MAX`](super::CONTEXT_MAX).
    pub fn sign_with_context(
        &self,
        context: &[u8],
        message: &[u8],
    ) -> Result<[u8; SIGNATURE_BYTES], SignError> {
        context_bytes(context)?;
        Ok(self.sign_in(context, message))
    }

    fn sign_in(&self, context: &[u8], message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let mut hash = [0; 114];
        hashed(context, [&*self.prefix, &[], message], &mut hash);
        let nonce = Scalar::reduced(&hash);
        hash.zeroize();
        let r = Point::base_times(&nonce).to_bytes();
        let challenge = challenge(context, &r, &self.public, message);
        let s = challenge.mul_add(&self.scalar, &nonce);
        let mut signature = [0; SIGNATURE_BYTES];
        let (first, second) = signature.split_at_mut(POINT_BYTES);
        first.copy_from_slice(&r);
        second.copy_from_slice(&s.to_bytes());
        signature
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> VerifyingKey {
        VerifyingKey::from_bytes(&self.public).expect("a key has a point")
    }

    fn seed(&self) -> &[u8; SEED_BYTES] {
        &self.seed
    }
}

/// A public key: a point of the curve.
#[derive(Clone, Copy, Debug)]
pub struct VerifyingKey {
    bytes: [u8; PUBLIC_KEY_BYTES],
    negated: Point,
}

impl VerifyingKey {
    /// Parses the bytes of a public key. Returns `None` if they are not the encoding of a point, or
    /// if the point has small order. Such a point allows a signature that is valid for every
    /// message, or for every second or fourth.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; PUBLIC_KEY_BYTES]) -> Option<Self> {
        let point = Point::from_bytes(bytes).filter(|point| !point.is_small_order())?;
        Some(Self { bytes: *bytes, negated: point.negated() })
    }

    /// Returns the bytes of the key.
    #[must_use]
    pub const fn to_bytes(&self) -> [u8; PUBLIC_KEY_BYTES] {
        self.bytes
    }

    /// Verifies a signature over `message` in `context`.
    pub fn verify_with_context(
        &self,
        context: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), SignError> {
        context_bytes(context)?;
        let signature = signature.try_into().map_err(|_| SignError::Unauthentic)?;
        self.is_signed_in(context, message, signature).then_some(()).ok_or(SignError::Unauthentic)
    }

    fn is_signed(&self, message: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        self.is_signed_in(&[], message, signature)
    }

    fn is_signed_in(
        &self,
        context: &[u8],
        message: &[u8],
        signature: &[u8; SIGNATURE_BYTES],
    ) -> bool {
        let (r, s) = signature.split_at(POINT_BYTES);
        let Some(s) = s.try_into().ok().and_then(Scalar::from_canonical) else {
            return false;
        };
        let challenge = challenge(context, r, &self.bytes, message);
        self.negated.times_plus_base_vartime(&challenge, &s).to_bytes() == *r
    }
}

edwards_keys::verifying_key!(VerifyingKey, NAMES);

fn challenge(context: &[u8], r: &[u8], public: &[u8], message: &[u8]) -> Scalar {
    let mut hash = [0; 114];
    hashed(context, [r, public, message], &mut hash);
    Scalar::reduced(&hash)
}

/// Computes SHAKE256(dom4(0, context) ‖ parts).
fn hashed(context: &[u8], [a, b, c]: [&[u8]; 3], hash: &mut [u8; 114]) {
    let len = u8::try_from(context.len()).expect("the length was checked");
    let mut running = Shake256::new();
    for part in [b"SigEd448", &[0, len][..], context, a, b, c] {
        running.update(part);
    }
    running.finish(hash);
}
