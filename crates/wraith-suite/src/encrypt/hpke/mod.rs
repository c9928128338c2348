//! HPKE (RFC 9180): messages of any length and number to the holder of a key, in one direction.
//!
//! All four modes are supported. The KEMs are Diffie-Hellman groups, and post-quantum KEMs
//! (draft-ietf-hpke-pq), which cannot authenticate the sender.
//!
//! ```
//! use wraith_suite::encrypt::hpke::{Aead, Kdf, Kem, PrivateKey, Suite};
//!
//! let suite = Suite { kem: Kem::X25519, kdf: Kdf::Sha256, aead: Aead::ChaCha20Poly1305 };
//! let key = PrivateKey::generate(suite.kem)?;
//! let (encapsulated, mut sender) = suite.sender(&key.public(), b"what for", None, None)?;
//! let sealed = sender.seal(b"in the open", b"text")?;
//!
//! let mut recipient = suite.recipient(&encapsulated, &key, b"what for", None, None)?;
//! assert_eq!(recipient.open(b"in the open", &sealed)?, b"text");
//! # Ok::<(), wraith_suite::encrypt::hpke::HpkeError>(())
//! ```

mod context;
mod kem;
mod labeled;

use thiserror::Error;

pub use context::{Recipient, Sender};
pub use kem::{Kem, PrivateKey, PublicKey};

use crate::aead;
use labeled::{LabeledKdf, SuiteId};

/// Least length of a pre-shared key in bytes (RFC 9180 §9.5).
pub const PSK_MIN: usize = 32;

/// Key derivation function: HKDF.
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
    /// Returns the ID in the registry (RFC 9180 §7.2).
    #[must_use]
    pub const fn id(self) -> u16 {
        match self {
            Self::Sha256 => 1,
            Self::Sha384 => 2,
            Self::Sha512 => 3,
        }
    }
}

/// AEAD that seals messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Aead {
    /// AES-128-GCM.
    Aes128Gcm,
    /// AES-256-GCM.
    Aes256Gcm,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305,
    /// No AEAD: the context only exports secrets.
    ExportOnly,
}

impl Aead {
    /// Returns the ID in the registry (RFC 9180 §7.3).
    #[must_use]
    pub const fn id(self) -> u16 {
        match self {
            Self::Aes128Gcm => 1,
            Self::Aes256Gcm => 2,
            Self::ChaCha20Poly1305 => 3,
            Self::ExportOnly => 0xffff,
        }
    }

    /// Returns the algorithm, or `None` for export-only.
    const fn algorithm(self) -> Option<aead::Algorithm> {
        match self {
            Self::Aes128Gcm => Some(aead::Algorithm::Aes128Gcm),
            Self::Aes256Gcm => Some(aead::Algorithm::Aes256Gcm),
            Self::ChaCha20Poly1305 => Some(aead::Algorithm::ChaCha20Poly1305),
            Self::ExportOnly => None,
        }
    }
}

/// A pre-shared key and its ID.
#[derive(Clone, Copy)]
pub struct Psk<'a> {
    /// At least [`PSK_MIN`] unpredictable bytes.
    pub key: &'a [u8],
    /// The ID, which must not be empty.
    pub id: &'a [u8],
}

wraith_crypto::redacted_debug!(|it: Psk<'_>| id: it.id);

/// Reason why nothing was set up, sealed or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HpkeError {
    /// The bytes are not a key of this KEM, or the key belongs to another KEM.
    #[error("not a key of {kem:?}")]
    InvalidKey {
        /// The KEM in use.
        kem: Kem,
    },
    /// The encapsulated key is invalid, or one whose secret does not depend on the private key.
    #[error("not an encapsulated key of {kem:?}")]
    InvalidEncapsulation {
        /// The KEM in use.
        kem: Kem,
    },
    /// The KEM does not support sender authentication.
    #[error("{kem:?} cannot authenticate a sender")]
    CannotAuthenticate {
        /// The KEM in use.
        kem: Kem,
    },
    /// The pre-shared key is too short, or its ID is empty.
    #[error("a pre-shared key has a name and at least 32 bytes")]
    InvalidPsk,
    /// The message comes from elsewhere, was modified, or was sealed with another sequence number.
    #[error("not authentic: wrong key, wrong order, or damaged")]
    Unopened,
    /// The suite is export-only, the message is too long, or the sequence numbers are exhausted.
    #[error("cannot seal: the suite is export-only, or a limit is reached")]
    CannotSeal,
    /// The requested secret is longer than the KDF supports.
    #[error("{found} bytes are more than the key derivation can make")]
    ExportLength {
        /// Requested length in bytes.
        found: usize,
    },
    /// The library failed: out of memory.
    #[error("{kem:?} failed: no memory")]
    Failed {
        /// The KEM in use.
        kem: Kem,
    },
}

/// Algorithms of a context. Both sides have to agree on them beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Suite {
    /// KEM that establishes the shared secret.
    pub kem: Kem,
    /// Key derivation function.
    pub kdf: Kdf,
    /// AEAD that seals messages.
    pub aead: Aead,
}

impl Suite {
    /// Sets up the sender. Returns its context, and the encapsulated key that the recipient needs,
    /// which is sent in the clear. `info` describes the application and has to be equal on both
    /// sides.
    ///
    /// With `psk`, only a holder of the pre-shared key can open. With `identity`, the recipient can
    /// authenticate the sender.
    pub fn sender(
        &self,
        recipient: &PublicKey,
        info: &[u8],
        psk: Option<Psk<'_>>,
        identity: Option<&PrivateKey>,
    ) -> Result<(Vec<u8>, Sender), HpkeError> {
        self.sender_from_seed(&self.kem.new_seed(), recipient, info, psk, identity)
    }

    /// Like [`Self::sender`], with fresh, secret randomness from the caller: ikmE of RFC 9180, or
    /// the randomness of an encapsulation. `seed` has [`Kem::seed_bytes`] bytes; ikmE may be
    /// longer.
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

    /// Sets up the recipient from the sender's encapsulated key. `info` and `psk` have to equal the
    /// sender's. `identity` is the sender's public key, if the sender used its identity.
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

    /// KeySchedule (RFC 9180 §5.1).
    fn schedule(
        &self,
        mode: u8,
        shared: &[u8],
        info: &[u8],
        psk: Option<Psk<'_>>,
    ) -> Result<context::Context, HpkeError> {
        let (psk, psk_id) = psk.map_or((&[][..], &[][..]), |psk| (psk.key, psk.id));
        let labeled = LabeledKdf { kdf: self.kdf, suite: SuiteId::hpke(self) };
        let psk_id_hash = labeled.extract(&[], "psk_id_hash", psk_id);
        let info_hash = labeled.extract(&[], "info_hash", info);
        let context = [&[mode][..], &psk_id_hash, &info_hash].concat();
        let secret = labeled.extract(shared, "secret", psk);
        context::Context::new(self.aead, labeled, &secret, &context)
    }
}

/// Returns the mode ID (RFC 9180 §5).
fn mode(psk: Option<Psk<'_>>, is_authenticated: bool) -> Result<u8, HpkeError> {
    if psk.is_some_and(|psk| psk.key.len() < PSK_MIN || psk.id.is_empty()) {
        return Err(HpkeError::InvalidPsk);
    }
    Ok(u8::from(psk.is_some()) + 2 * u8::from(is_authenticated))
}
