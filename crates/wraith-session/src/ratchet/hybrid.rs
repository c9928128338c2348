//! The hybrid ratchet: now and then a DH ratchet step takes in a secret of ML-KEM-768, without a message of its own.
//!
//! Every [`KEM_INTERVAL`] of its sending chains, or [`KEM_INTERVAL_BYTES`], a side *offers*: each message of the chain
//! carries a fresh encapsulation key. The other side *answers* with its next sending chain: the root step in front of that
//! chain takes in the DH output and the encapsulated secret, and each message of the chain carries the ciphertext. Any message
//! of either chain may be the first to arrive, or the only one; so loss and reordering do no harm, and there is no
//! round trip more.
//!
//! Invariant: while an offer stands, the next chain of the peer answers it. It can begin no chain before it has a message of
//! the offering one.
//!
//! This is not the Sparse Post-Quantum Ratchet of Signal (SPQR), which cuts keys into small pieces and has a ratchet of its own
//! beside the DH ratchet.

use rand_core::CryptoRng;
use wraith_crypto::kem::ml_kem_768::{CIPHERTEXT_BYTES, ENCAPSULATION_KEY_BYTES};
use zeroize::Zeroizing;

use super::codec::{BadBytes, Reader, Writer};
use super::curve;
use super::error::{DecryptError, EncryptError};
use super::keys::KemShare;
use super::message::KemKind;

/// After how many sending chains without ML-KEM a side offers a key.
pub const KEM_INTERVAL: u32 = 50;
/// After how many bytes of plaintext without ML-KEM a side offers a key: 64 MiB.
pub const KEM_INTERVAL_BYTES: u64 = 64 << 20;

/// What the messages of the current sending chain carry.
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

/// Where the hybrid ratchet stands.
#[derive(Default)]
pub(super) struct Hybrid {
    /// Of the current sending chain.
    pub(super) part: Option<KemPart>,
    /// What the peer offers: the next sending chain answers it.
    pub(super) offered: Option<Box<[u8; ENCAPSULATION_KEY_BYTES]>>,
    /// Sending chains since a secret of ML-KEM was taken in.
    pub(super) chains: u32,
    /// Bytes of plaintext sent since.
    pub(super) bytes: u64,
}

/// What a chain of the peer brings, not authenticated by a body yet.
pub(super) struct Arrived {
    pub(super) share: Option<KemShare>,
    pub(super) offer: Option<Box<[u8; ENCAPSULATION_KEY_BYTES]>>,
}

impl Hybrid {
    /// The part of a sending chain that begins, and what its root step takes in.
    pub(super) fn begin_chain(
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

    /// The sending chain of [`Self::begin_chain`] is the current one.
    pub(super) fn chain_began(&mut self, part: Option<KemPart>) {
        self.chains = self.chains.saturating_add(1);
        if self.offered.take().is_some() {
            (self.chains, self.bytes) = (0, 0);
        }
        self.part = part;
    }

    /// What the first message of a chain of the peer brings; `part` is its opened ML-KEM part.
    pub(super) fn arrive(
        &self,
        kind: Option<KemKind>,
        part: &[u8],
    ) -> Result<Arrived, DecryptError> {
        let mut arrived = Arrived { share: None, offer: None };
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
                // One that nobody can encapsulate to would show with the next message sent, which is too late.
                if !curve::is_encapsulation_key(&key) {
                    return Err(DecryptError::Violation);
                }
                arrived.offer = Some(Box::new(key));
            }
            (_, None) => {}
        }
        Ok(arrived)
    }

    /// The chain of [`Self::arrive`] is authentic, and the sending chain is over.
    pub(super) fn chain_arrived(&mut self, arrived: Arrived) {
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

    pub(super) fn restore(reader: &mut Reader) -> Result<Self, BadBytes> {
        let part = match reader.u8()? {
            0 => None,
            1 => {
                let seed = Zeroizing::new(reader.array()?);
                let key = Box::new(curve::encapsulation_key(&seed));
                Some(KemPart::Key { seed, key })
            }
            2 => Some(KemPart::Ciphertext(reader.boxed()?)),
            _ => return Err(BadBytes),
        };
        let offered = reader.option(Reader::boxed)?;
        Ok(Self { part, offered, chains: reader.u32()?, bytes: reader.u64()? })
    }
}
