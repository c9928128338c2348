//! The prekey bundle: public keys that a responder publishes, so that an initiator can start a
//! conversation while the responder is offline.
//!
//! | bytes | field |
//! |---|---|
//! | 1 | version, 1 |
//! | 32 | NodeId |
//! | 4 | id of the signed prekeys, little-endian, not 0 |
//! | 32 | signed X25519 prekey |
//! | 64 | its signature |
//! | 4 | id of the one-time prekeys, or 0 |
//! | 32 | one-time X25519 prekey (unless 0) |
//! | 1184 | ML-KEM-768 prekey: one-time, or, with id 0, of last resort |
//! | 64 | its signature |
//!
//! A signature is made with the key of the NodeId, over context ‖ id ‖ key. The one-time X25519
//! prekey is unsigned, as in X3DH: an attacker that replaces this prekey removes only the security
//! that this prekey adds.

use wraith_crypto::identity::SIGNATURE_BYTES;
use wraith_crypto::ml_kem_768::ENCAPSULATION_KEY_BYTES;
use wraith_crypto::{NodeId, SecretIdentity, redacted_debug};

use super::error::StartError;
use crate::codec::Reader;

const VERSION: u8 = 1;
/// Length of a bundle without one-time prekeys.
const SHORT_BYTES: usize = 1 + 32 + 4 + 32 + 64 + 4 + ENCAPSULATION_KEY_BYTES + 64;
/// Length of a bundle with one-time prekeys, the longest form.
pub const BUNDLE_BYTES_MAX: usize = SHORT_BYTES + 32;

/// Purpose of a signed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    SignedDh,
    LastResortKem,
    OneTimeKem,
}

impl Purpose {
    const fn context(self) -> &'static [u8] {
        match self {
            Self::SignedDh => b"wraith session/1 signed prekey X25519\0",
            Self::LastResortKem => b"wraith session/1 last-resort prekey ML-KEM-768\0",
            Self::OneTimeKem => b"wraith session/1 one-time prekey ML-KEM-768\0",
        }
    }

    fn signed_text(self, id: u32, key: &[u8]) -> Vec<u8> {
        [self.context(), &id.to_le_bytes(), key].concat()
    }

    pub(super) fn sign(
        self,
        identity: &SecretIdentity,
        id: u32,
        key: &[u8],
    ) -> [u8; SIGNATURE_BYTES] {
        identity.sign(&self.signed_text(id, key))
    }

    fn verify(
        self,
        node_id: &NodeId,
        id: u32,
        key: &[u8],
        signature: &[u8; SIGNATURE_BYTES],
    ) -> Result<(), StartError> {
        node_id.verify(&self.signed_text(id, key), signature).map_err(|_| StartError::Signature)
    }
}

/// The prekeys of one responder. Invariant: the signatures are verified, because every constructor
/// verifies or makes them.
#[derive(Clone, PartialEq, Eq)]
pub struct PreKeyBundle {
    pub(super) node_id: NodeId,
    pub(super) signed_id: u32,
    pub(super) signed: [u8; 32],
    pub(super) signature: [u8; SIGNATURE_BYTES],
    /// The id is never 0.
    pub(super) one_time: Option<(u32, [u8; 32])>,
    pub(super) kem: Box<[u8; ENCAPSULATION_KEY_BYTES]>,
    pub(super) kem_signature: [u8; SIGNATURE_BYTES],
}

impl PreKeyBundle {
    /// Returns the owner of these prekeys. The caller has to check that this is the intended peer.
    #[must_use]
    pub fn node_id(&self) -> NodeId {
        self.node_id
    }

    /// Returns whether the bundle has one-time prekeys. Without them, the first messages gain
    /// forward secrecy only when the responder discards its signed prekeys by rotation.
    #[must_use]
    pub fn has_one_time(&self) -> bool {
        self.one_time.is_some()
    }

    /// Returns the bytes to publish, 1385 or 1417.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BUNDLE_BYTES_MAX);
        bytes.push(VERSION);
        bytes.extend_from_slice(self.node_id.as_bytes());
        bytes.extend_from_slice(&self.signed_id.to_le_bytes());
        bytes.extend_from_slice(&self.signed);
        bytes.extend_from_slice(&self.signature);
        match &self.one_time {
            None => bytes.extend_from_slice(&[0; 4]),
            Some((id, key)) => {
                bytes.extend_from_slice(&id.to_le_bytes());
                bytes.extend_from_slice(key);
            }
        }
        bytes.extend_from_slice(&self.kem[..]);
        bytes.extend_from_slice(&self.kem_signature);
        bytes
    }

    /// Reads a bundle and verifies its signatures.
    ///
    /// # Errors [`StartError::Malformed`], [`StartError::UnknownVersion`], [`StartError::Identity`]
    /// or [`StartError::Signature`].
    pub fn decode(bytes: &[u8]) -> Result<Self, StartError> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != VERSION {
            return Err(StartError::UnknownVersion);
        }
        let node_id = NodeId(reader.array()?);
        let (signed_id, signed, signature) = (reader.u32()?, reader.array()?, reader.array()?);
        let one_time = match reader.u32()? {
            0 => None,
            id => Some((id, reader.array()?)),
        };
        let (kem, kem_signature) = (reader.boxed()?, reader.array()?);
        reader.finish()?;
        if signed_id == 0 {
            return Err(StartError::Malformed);
        }
        node_id.noise_public().map_err(|_| StartError::Identity)?;
        let this = Self { node_id, signed_id, signed, signature, one_time, kem, kem_signature };
        this.verify()?;
        Ok(this)
    }

    fn verify(&self) -> Result<(), StartError> {
        let id = &self.node_id;
        Purpose::SignedDh.verify(id, self.signed_id, &self.signed, &self.signature)?;
        let (purpose, kem_id) = match self.one_time {
            Some((kem_id, _)) => (Purpose::OneTimeKem, kem_id),
            None => (Purpose::LastResortKem, self.signed_id),
        };
        purpose.verify(id, kem_id, &self.kem[..], &self.kem_signature)
    }
}

redacted_debug!(
    |it: PreKeyBundle|
    node_id: it.node_id, signed_id: it.signed_id, one_time: it.one_time.map(|(id, _)| id)
);
