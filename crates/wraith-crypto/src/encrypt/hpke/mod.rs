//! HPKE (RFC 9180): messages for whoever has a key, of any length and number, in one direction. All four modes; the KEMs of
//! Diffie-Hellman groups, and those that withstand quantum computers (draft-ietf-hpke-pq), which cannot authenticate the sender.
//!
//! ```
//! use wraith_crypto::encrypt::hpke::{Aead, Kdf, Kem, PrivateKey, Suite};
//!
//! let suite = Suite { kem: Kem::X25519, kdf: Kdf::Sha256, aead: Aead::ChaCha20Poly1305 };
//! let key = PrivateKey::generate(suite.kem)?;
//! let (encapsulated, mut sender) = suite.sender(&key.public(), b"what for", None, None)?;
//! let sealed = sender.seal(b"in the open", b"text")?;
//!
//! let mut recipient = suite.recipient(&encapsulated, &key, b"what for", None, None)?;
//! assert_eq!(recipient.open(b"in the open", &sealed)?, b"text");
//! # Ok::<(), wraith_crypto::encrypt::hpke::HpkeError>(())
//! ```

mod context;
mod kem;
mod labeled;

use thiserror::Error;

pub use context::{Recipient, Sender};
pub use kem::{Kem, PrivateKey, PublicKey};

use crate::aead;
use labeled::{Labeled, SuiteId};

/// Bytes of the shortest key that both sides know beforehand (RFC 9180 §9.5).
pub const PSK_MIN: usize = 32;

/// Key derivation: HKDF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kdf {
    /// With SHA-256.
    Sha256,
    /// With SHA-384.
    Sha384,
    /// With SHA-512.
    Sha512,
}

impl Kdf {
    /// Its number in the registry (RFC 9180 §7.2).
    #[must_use]
    pub const fn id(self) -> u16 {
        match self {
            Self::Sha256 => 1,
            Self::Sha384 => 2,
            Self::Sha512 => 3,
        }
    }
}

/// What seals messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Aead {
    /// AES-128-GCM.
    Aes128Gcm,
    /// AES-256-GCM.
    Aes256Gcm,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305,
    /// Nothing: secrets are exported, and nothing is sealed.
    ExportOnly,
}

impl Aead {
    /// Its number in the registry (RFC 9180 §7.3).
    #[must_use]
    pub const fn id(self) -> u16 {
        match self {
            Self::Aes128Gcm => 1,
            Self::Aes256Gcm => 2,
            Self::ChaCha20Poly1305 => 3,
            Self::ExportOnly => 0xffff,
        }
    }

    /// What computes it; nothing if nothing is sealed.
    const fn algorithm(self) -> Option<aead::Algorithm> {
        match self {
            Self::Aes128Gcm => Some(aead::Algorithm::Aes128Gcm),
            Self::Aes256Gcm => Some(aead::Algorithm::Aes256Gcm),
            Self::ChaCha20Poly1305 => Some(aead::Algorithm::ChaCha20Poly1305),
            Self::ExportOnly => None,
        }
    }
}

/// A key that both sides know beforehand, and its name.
#[derive(Clone, Copy)]
pub struct Psk<'a> {
    /// At least [`PSK_MIN`] bytes, which nobody can guess.
    pub key: &'a [u8],
    /// Its name, which is not empty.
    pub id: &'a [u8],
}

impl std::fmt::Debug for Psk<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Psk").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Why nothing was set up, sealed or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HpkeError {
    /// The bytes are no key of this KEM, or the key is of another.
    #[error("not a key of {kem:?}")]
    InvalidKey {
        /// Of this one.
        kem: Kem,
    },
    /// The sender's part of the agreement is none, or one that agrees with everybody on the same.
    #[error("not an encapsulated key of {kem:?}")]
    InvalidEncapsulation {
        /// Of this one.
        kem: Kem,
    },
    /// The KEM has no mode in which the sender shows who it is.
    #[error("{kem:?} cannot authenticate a sender")]
    CannotAuthenticate {
        /// Of this one.
        kem: Kem,
    },
    /// The pre-shared key is too short, or has no name.
    #[error("a pre-shared key has a name and at least 32 bytes")]
    InvalidPsk,
    /// The message was not sealed by the other side for this place in the order, or was changed.
    #[error("not authentic: wrong key, wrong order, or damaged")]
    Unopened,
    /// The suite seals nothing, the message is too long, or there were too many.
    #[error("this cannot be sealed: the suite only exports, or a limit is reached")]
    CannotSeal,
    /// More bytes than the KDF can make.
    #[error("{found} bytes are more than the key derivation can make")]
    ExportLength {
        /// What was given.
        found: usize,
    },
    /// The library could not, for want of memory.
    #[error("{kem:?} failed: no memory")]
    Failed {
        /// Of this one.
        kem: Kem,
    },
}

/// What both sides have to agree on beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Suite {
    /// How they come to a secret.
    pub kem: Kem,
    /// How keys are derived from it.
    pub kdf: Kdf,
    /// What seals messages.
    pub aead: Aead,
}

impl Suite {
    /// The sender's side, and what the recipient needs to set up its own, sent in the open. `info` is what it is for: both sides have to
    /// say the same. With `psk` only who knows it can open, and with `identity` the recipient knows who sent.
    pub fn sender(
        &self,
        recipient: &PublicKey,
        info: &[u8],
        psk: Option<Psk<'_>>,
        identity: Option<&PrivateKey>,
    ) -> Result<(Vec<u8>, Sender), HpkeError> {
        self.sender_from_seed(&self.kem.new_seed(), recipient, info, psk, identity)
    }

    /// [`Self::sender`] with randomness from the caller, which is fresh and secret: ikmE of RFC 9180, or the randomness of an encapsulation.
    /// It has [`Kem::seed_bytes`], or more of ikmE.
    pub fn sender_from_seed(
        &self,
        seed: &[u8],
        recipient: &PublicKey,
        info: &[u8],
        psk: Option<Psk<'_>>,
        identity: Option<&PrivateKey>,
    ) -> Result<(Vec<u8>, Sender), HpkeError> {
        if recipient.kem() != self.kem || identity.is_some_and(|key| key.kem() != self.kem) {
            return Err(HpkeError::InvalidKey { kem: self.kem });
        }
        let (encapsulated, secret) = recipient.encapsulate(seed, identity)?;
        let mode = mode(psk, identity.is_some())?;
        Ok((encapsulated, Sender::new(self.schedule(mode, &secret, info, psk)?)))
    }

    /// The recipient's side, from what the sender sent. `info` and `psk` are as the sender's, and `identity` is the sender's public key if
    /// it used its own.
    pub fn recipient(
        &self,
        encapsulated: &[u8],
        key: &PrivateKey,
        info: &[u8],
        psk: Option<Psk<'_>>,
        identity: Option<&PublicKey>,
    ) -> Result<Recipient, HpkeError> {
        if key.kem() != self.kem || identity.is_some_and(|key| key.kem() != self.kem) {
            return Err(HpkeError::InvalidKey { kem: self.kem });
        }
        let secret = key.decapsulate(encapsulated, identity)?;
        let mode = mode(psk, identity.is_some())?;
        Ok(Recipient::new(self.schedule(mode, &secret, info, psk)?))
    }

    /// RFC 9180 §5.1.
    fn schedule(
        &self,
        mode: u8,
        shared: &[u8],
        info: &[u8],
        psk: Option<Psk<'_>>,
    ) -> Result<context::Context, HpkeError> {
        let (psk, psk_id) = psk.map_or((&[][..], &[][..]), |psk| (psk.key, psk.id));
        let labeled = Labeled { kdf: self.kdf, suite: SuiteId::hpke(self) };
        let psk_id_hash = labeled.extract(&[], "psk_id_hash", psk_id);
        let info_hash = labeled.extract(&[], "info_hash", info);
        let context = [&[mode][..], &psk_id_hash, &info_hash].concat();
        let secret = labeled.extract(shared, "secret", psk);
        context::Context::new(self.aead, labeled, &secret, &context)
    }
}

/// The number of the mode that the two make (RFC 9180 §5).
fn mode(psk: Option<Psk<'_>>, is_authenticated: bool) -> Result<u8, HpkeError> {
    if psk.is_some_and(|psk| psk.key.len() < PSK_MIN || psk.id.is_empty()) {
        return Err(HpkeError::InvalidPsk);
    }
    Ok(u8::from(psk.is_some()) + 2 * u8::from(is_authenticated))
}
