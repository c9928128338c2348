//! One flat error enum: a kind for programs, and a message for people.
//!
//! The kinds are those of [`wraith::ErrorKind`], plus the failures that occur only between Rust and
//! the other language. If the user can fix the problem, the message ends with advice.

use thiserror::Error;
use wraith::ErrorKind;

/// The error of all calls. Its text is a message for people.
#[derive(Clone, Debug, PartialEq, Eq, Error, uniffi::Error)]
#[uniffi(flat_error)]
#[non_exhaustive]
pub enum WraithError {
    /// A path, name, code, ticket, key or option is invalid.
    #[error("{0}")]
    InvalidInput(String),
    /// The peer did not answer at any address, no receiver connected, or the named item does not
    /// exist.
    #[error("{0}")]
    NotFound(String),
    /// The receiver's user declined.
    #[error("{0}")]
    Refused(String),
    /// The sender reconnected with another offer than the accepted one.
    #[error("{0}")]
    OfferChanged(String),
    /// The words are wrong, the code is used or expired, or the sender does not offer this ticket.
    #[error("{0}")]
    WrongCode(String),
    /// The connection was lost and could not be restored. Repeat the transfer to resume it.
    #[error("{0}")]
    NetworkLost(String),
    /// A disk is full, read-only or unreadable. Repeat the transfer to resume it.
    #[error("{0}")]
    Disk(String),
    /// The reader or writer of a byte stream failed. For a target in memory, the content exceeds its
    /// limit.
    #[error("{0}")]
    Stream(String),
    /// The program of one side panicked.
    #[error("{0}")]
    Panicked(String),
    /// Received bytes do not match their hash.
    #[error("{0}")]
    Verification(String),
    /// The peer used a name that could escape the target folder.
    #[error("{0}")]
    UnsafeName(String),
    /// The transfer ended, but some files could not be transferred.
    #[error("{0}")]
    Partial(String),
    /// The peer violated the protocol.
    #[error("{0}")]
    Protocol(String),
    /// This side or the peer cancelled the transfer. Repeat the transfer to resume it.
    #[error("{0}")]
    Cancelled(String),
    /// The receiver previewed the offer and postponed its answer; the offer stays valid.
    #[error("{0}")]
    Postponed(String),
    /// Another program with the same identity receives this offer, because its user accepted first.
    #[error("{0}")]
    ReceivedElsewhere(String),
    /// The call is invalid in this state. For example, the offer is already answered, the handshake
    /// expects the peer's message, or the saved session has no reserved numbers left.
    #[error("{0}")]
    WrongState(String),
    /// A message, signature or saved state does not authenticate: another party made it, or it was
    /// changed.
    #[error("{0}")]
    Unauthentic(String),
    /// The message was opened before.
    #[error("{0}")]
    Replayed(String),
    /// The message is so late that it is no longer opened. It may have been opened before.
    #[error("{0}")]
    TooOld(String),
    /// The peer has another identity than expected, or does not prove its identity.
    #[error("{0}")]
    WrongPeer(String),
    /// A vault operation failed: the implementation threw an exception or reported a failure.
    #[error("{0}")]
    Vault(String),
    /// Another writer uses this record name of the vault, or the vault holds an older copy.
    /// Continuing would reuse keys.
    #[error("{0}")]
    Conflict(String),
    /// A limit is reached: message numbers of a session, messages without an answer, or
    /// prekeys.
    #[error("{0}")]
    Exhausted(String),
    /// The operating system provides no randomness.
    #[error("{0}")]
    NoRandomness(String),
    /// Any other error.
    #[error("{0}")]
    Other(String),
}

impl WraithError {
    /// The error for a value that was already taken.
    pub(crate) fn used_up(what: &str) -> Self {
        Self::WrongState(format!("{what} already"))
    }

    pub(crate) fn invalid(why: impl ToString) -> Self {
        Self::InvalidInput(why.to_string())
    }
}

impl From<wraith::Error> for WraithError {
    fn from(error: wraith::Error) -> Self {
        let help = match error.cause() {
            Some(wraith::Cause::State(state)) => state.help(),
            _ => None,
        };
        let text = match help {
            Some(help) => format!("{error}; {help}"),
            None => error.to_string(),
        };
        match error.kind() {
            ErrorKind::InvalidInput => Self::InvalidInput(text),
            ErrorKind::NotFound => Self::NotFound(text),
            ErrorKind::Refused => Self::Refused(text),
            ErrorKind::OfferChanged => Self::OfferChanged(text),
            ErrorKind::WrongCode => Self::WrongCode(text),
            ErrorKind::NetworkLost => Self::NetworkLost(text),
            ErrorKind::Disk => Self::Disk(text),
            ErrorKind::Stream => Self::Stream(text),
            ErrorKind::Panicked => Self::Panicked(text),
            ErrorKind::Verification => Self::Verification(text),
            ErrorKind::UnsafeName => Self::UnsafeName(text),
            ErrorKind::Partial => Self::Partial(text),
            ErrorKind::Protocol => Self::Protocol(text),
            ErrorKind::Cancelled => Self::Cancelled(text),
            ErrorKind::Postponed => Self::Postponed(text),
            ErrorKind::ReceivedElsewhere => Self::ReceivedElsewhere(text),
            _ => Self::Other(text),
        }
    }
}

impl From<wraith::state::StateError> for WraithError {
    fn from(error: wraith::state::StateError) -> Self {
        wraith::Error::from(error).into()
    }
}
