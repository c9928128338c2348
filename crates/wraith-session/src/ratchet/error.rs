//! What can go wrong. None of these errors leaves a trace in the state it came from.

use thiserror::Error;

use super::codec::BadBytes;
use crate::bytes::StateError;

/// Why a conversation did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The bytes are no bundle, or no first message: of another length, or with a field that cannot be.
    #[error("malformed")]
    Malformed,
    /// A version or a suite that this code does not know.
    #[error("unknown version")]
    UnknownVersion,
    /// A NodeId that nobody can have, or that is the own one; or prekeys of another identity than the one given.
    #[error("not an identity to talk with")]
    Identity,
    /// A prekey is not signed by the identity that its bundle names.
    #[error("the signature of a prekey does not verify")]
    Signature,
    /// A public key of small order, or an encapsulation key with a coefficient that is none.
    #[error("a public key that is none")]
    PublicKey,
    /// The message names a prekey that is not there: never made, used, rotated away, or forgotten.
    #[error("the prekey is not there, or was used")]
    UnknownPreKey,
    /// The message has started a conversation before.
    #[error("this message has started a conversation before")]
    Replayed,
    /// Too many conversations have started with the current signed prekeys and no one-time key: rotate them. (Or 2³² prekeys
    /// have been made.)
    #[error("the prekeys have been used too often")]
    PreKeysExhausted,
    /// The first message did not open.
    #[error("the first message did not open: {0}")]
    Message(#[from] DecryptError),
}

/// Why nothing was encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EncryptError {
    /// The plaintext is longer than [`PLAINTEXT_BYTES_MAX`](super::PLAINTEXT_BYTES_MAX).
    #[error("the plaintext is too long")]
    TooLong,
    /// 2³² − 1 messages in a row without an answer.
    #[error("too many messages without an answer")]
    ChainExhausted,
    /// The peer's key gives no secret. Only a state that was tampered with has such a key.
    #[error("the peer's key is none")]
    PublicKey,
}

/// Why a message did not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecryptError {
    /// Shorter than any message, or the first byte is that of no kind of message.
    #[error("no message")]
    Malformed,
    /// Longer than any message ([`MESSAGE_BYTES_MAX`](super::MESSAGE_BYTES_MAX)).
    #[error("the message is too long")]
    TooLong,
    /// Not from this conversation, damaged, with other associated data, or so old that its header key is gone.
    #[error("not authentic")]
    Unauthentic,
    /// The key of this number is gone: it has been used, has expired, or had to make place.
    #[error("opened before, or too late")]
    KeyGone,
    /// More messages were skipped at once than [`SKIP_MAX`](super::SKIP_MAX).
    #[error("too many messages are missing in front of it")]
    TooManySkipped,
    /// The peer, authenticated, breaks the protocol.
    #[error("the peer breaks the protocol")]
    Violation,
}

impl From<BadBytes> for StateError {
    fn from(_: BadBytes) -> Self {
        Self::Malformed
    }
}

impl From<BadBytes> for StartError {
    fn from(_: BadBytes) -> Self {
        Self::Malformed
    }
}
