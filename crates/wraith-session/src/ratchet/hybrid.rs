//! The hybrid ratchet: some Diffie-Hellman (DH) ratchet steps also mix in an ML-KEM-768 secret,
//! without extra messages.
//!
//! After every [`KEM_INTERVAL`] of its sending chains, or every [`KEM_INTERVAL_BYTES`], a side
//! *offers*: each message of its next chain carries the same fresh encapsulation key. The peer
//! *answers* with its next sending chain. The root step that begins the answering chain mixes in
//! the DH output and the encapsulated secret, and each message of the answering chain carries the
//! ciphertext. Any one message of a chain is enough; so loss and reordering are harmless, and there
//! is no extra round trip.
//!
//! Invariant: while an offer is pending, the peer's next chain answers it. The peer cannot begin a
//! chain before it has a message of the offering chain.
//!
//! This is not Signal's Sparse Post-Quantum Ratchet (SPQR), which splits keys into small pieces and
//! runs a separate ratchet beside the DH ratchet.

use rand_core::CryptoRng;
use wraith_crypto::ml_kem_768::{CIPHERTEXT_BYTES, ENCAPSULATION_KEY_BYTES};
use zeroize::Zeroizing;

use super::curve;
use super::error::{DecryptError, EncryptError};
use super::keys::KemShare;
use super::message::KemKind;
use crate::codec::{InvalidEncoding, Reader, Writer};

/// Sending chains without ML-KEM after which a side offers a key.
pub const KEM_INTERVAL: u32 = 50;
/// Bytes of plaintext without ML-KEM after which a side offers a key: 64 MiB.
pub const KEM_INTERVAL_BYTES: u64 = 64 << 20;

/// The ML-KEM part that each message of the current sending chain carries.
pub(super) enum KemPart {
    Key { seed: Zeroizing<[u8; 64]>, key: Box<[u8; ENCAPSULATION_KEY_BYTES]> },
    Ciphertext(Box<[u8; CIPHERTEXT_BYTES]>),
}

impl KemPart {
    pub(super) fn kind(&self) -> KemKind {
        match self {
            Self::Key { .. } => KemKind::EncapsulationKey,
            Self::Ciphertext(_) => KemKind::Ciphertext,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Key { key, .. } => &key[..],
            Self::Ciphertext(ciphertext) => &ciphertext[..],
        }
    }
}

/// State of the hybrid ratchet.
#[derive(Default)]
pub(super) struct Hybrid {
    /// The part of the current sending chain.
    pub(super) part: Option<KemPart>,
    /// The peer's offer, answered by the next sending chain.
    pub(super) offered: Option<Box<[u8; ENCAPSULATION_KEY_BYTES]>>,
    /// Sending chains since the last ML-KEM secret was mixed in.
    pub(super) chains: u32,
    /// Bytes of plaintext sent since the last ML-KEM secret was mixed in.
    pub(super) bytes: u64,
}

/// Contribution of a new receiving chain, not yet authenticated by a body.
pub(super) struct ReceivedKem {
    pub(super) share: Option<KemShare>,
    pub(super) offer: Option<Box<[u8; ENCAPSULATION_KEY_BYTES]>>,
}

impl Hybrid {
    /// Returns the part of a new sending chain, and the secret for its root step.
    pub(super) fn send_ratchet_step(
        &self,
        rng: &mut impl CryptoRng,
    ) -> Result<(Option<KemPart>, Option<KemShare>), EncryptError> {
        if let Some(key) = &self.offered {
            let (ciphertext, secret) =
                curve::encapsulate(rng, key).ok_or(EncryptError::PublicKey)?;
            let share = KemShare::new(secret, &key[..], &ciphertext);
            return Ok((Some(KemPart::Ciphertext(Box::new(ciphertext))), Some(share)));
        }
        if self.chains < KEM_INTERVAL && self.bytes < KEM_INTERVAL_BYTES {
            return Ok((None, None));
        }
        let mut seed = Zeroizing::new([0; 64]);
        rng.fill_bytes(&mut *seed);
        let key = Box::new(curve::encapsulation_key(&seed));
        Ok((Some(KemPart::Key { seed, key }), None))
    }

    /// Makes the sending chain of [`Self::send_ratchet_step`] the current one.
    pub(super) fn chain_began(&mut self, part: Option<KemPart>) {
        self.chains = self.chains.saturating_add(1);
        if self.offered.take().is_some() {
            (self.chains, self.bytes) = (0, 0);
        }
        self.part = part;
    }

    /// Returns the contribution of the first message of a receiving chain; `part` is its opened
    /// ML-KEM part.
    pub(super) fn arrive(
        &self,
        kind: Option<KemKind>,
        part: &[u8],
    ) -> Result<ReceivedKem, DecryptError> {
        let mut arrived = ReceivedKem { share: None, offer: None };
        match (&self.part, kind) {
            (Some(KemPart::Key { seed, key }), Some(KemKind::Ciphertext)) => {
                let ciphertext = part.try_into().map_err(|_| DecryptError::Violation)?;
                let secret = curve::decapsulate(seed, ciphertext);
                arrived.share = Some(KemShare::new(secret, &key[..], ciphertext));
            }
            (Some(KemPart::Key { .. }), _) | (_, Some(KemKind::Ciphertext)) => {
                return Err(DecryptError::Violation);
            }
            (_, Some(KemKind::EncapsulationKey)) => {
                let key = part.try_into().map_err(|_| DecryptError::Violation)?;
                // An invalid key would otherwise fail with the next sent message, which is too
                // late.
                if !curve::is_encapsulation_key(&key) {
                    return Err(DecryptError::Violation);
                }
                arrived.offer = Some(Box::new(key));
            }
            (_, None) => {}
        }
        Ok(arrived)
    }

    /// Commits the authentic chain of [`Self::arrive`]; the sending chain ends.
    pub(super) fn chain_arrived(&mut self, arrived: ReceivedKem) {
        if arrived.share.is_some() {
            (self.chains, self.bytes) = (0, 0);
        }
        self.part = None;
        self.offered = arrived.offer;
    }

    pub(super) fn count_sent(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    pub(super) fn save(&self, writer: &mut Writer) {
        match &self.part {
            None => writer.u8(0),
            Some(KemPart::Key { seed, .. }) => writer.u8(1).bytes(&seed[..]),
            Some(KemPart::Ciphertext(ciphertext)) => writer.u8(2).bytes(&ciphertext[..]),
        };
        writer.option(self.offered.as_ref(), |writer, key| {
            writer.bytes(&key[..]);
        });
        writer.u32(self.chains).u64(self.bytes);
    }

    pub(super) fn restore(reader: &mut Reader) -> Result<Self, InvalidEncoding> {
        let part = match reader.u8()? {
            0 => None,
            1 => {
                let seed = Zeroizing::new(reader.array()?);
                let key = Box::new(curve::encapsulation_key(&seed));
                Some(KemPart::Key { seed, key })
            }
            2 => Some(KemPart::Ciphertext(reader.boxed()?)),
            _ => return Err(InvalidEncoding),
        };
        let offered = reader.option(Reader::boxed)?;
        Ok(Self { part, offered, chains: reader.u32()?, bytes: reader.u64()? })
    }
}
