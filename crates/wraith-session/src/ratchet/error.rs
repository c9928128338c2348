//! Errors of a ratchet. Each of them leaves the state unchanged.

use thiserror::Error;

use crate::codec::InvalidEncoding;
use crate::vault::{StoreError, VaultError};

/// Why a conversation did not start.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The bytes are no bundle or no first message: a wrong length, or a field with an invalid
    /// value.
    #[error("malformed")]
    Malformed,
    /// This program does not support the version or the suite.
    #[error("unknown version")]
    UnknownVersion,
    /// The NodeId is invalid or the local one, or the prekeys belong to another identity than the
    /// one given.
    #[error("the identity is invalid, or is the local one")]
    Identity,
    /// A prekey is not signed by the identity named in its bundle.
    #[error("the signature of a prekey does not verify")]
    Signature,
    /// An X25519 key has small order, or an encapsulation key has an invalid coefficient.
    #[error("a public key is invalid")]
    PublicKey,
    /// The message names a prekey that does not exist: never made, used, rotated out, or discarded.
    #[error("the prekey does not exist, or was already used")]
    UnknownPreKey,
    /// The message has already started a conversation.
    #[error("this message has started a conversation before")]
    Replayed,
    /// Too many conversations have started with the current signed prekeys and no one-time prekeys;
    /// rotate them. Also returned once 2³² prekeys have been made.
    #[error("the signed prekeys have reached their limit; rotate them")]
    PreKeysExhausted,
    /// The first message did not open.
    #[error("the first message did not open: {0}")]
    Message(#[from] DecryptError),
    /// The conversation or the prekeys could not be stored in their vaults.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why encryption failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncryptError {
    /// The plaintext is longer than [`PLAINTEXT_BYTES_MAX`](super::PLAINTEXT_BYTES_MAX).
    #[error("the plaintext is too long")]
    TooLong,
    /// The chain has 2³² − 1 messages without an answer.
    #[error("too many messages without an answer")]
    ChainExhausted,
    /// The peer's key allows no agreement. Only a tampered state can hold such a key.
    #[error("the peer's public key is invalid")]
    PublicKey,
    /// The conversation could not be stored in its vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// Why decryption failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecryptError {
    /// The message is too short, or its first byte is no known kind.
    #[error("not a ratchet message")]
    Malformed,
    /// The message is longer than [`MESSAGE_BYTES_MAX`](super::MESSAGE_BYTES_MAX).
    #[error("the message is too long")]
    TooLong,
    /// The message is of another conversation, was changed, or has other associated data; or it is
    /// so old that its chain is no longer recognized
    /// ([`FORGOTTEN_CHAINS_MAX`](super::FORGOTTEN_CHAINS_MAX),
    /// [`COMPLETE_CHAINS_MAX`](super::COMPLETE_CHAINS_MAX)).
    #[error("not authentic")]
    Unauthentic,
    /// The message was opened before.
    #[error("the message was opened before")]
    Replayed,
    /// The message is so late that its key is gone. It may also have been opened before.
    #[error("the message is too old")]
    TooOld,
    /// The authenticated peer violates the protocol.
    #[error("the peer violated the protocol")]
    Violation,
    /// The conversation could not be stored in its vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

impl From<InvalidEncoding> for StartError {
    fn from(_: InvalidEncoding) -> Self {
        Self::Malformed
    }
}
