//! What went wrong, as one flat enum: the kind to decide by, and a sentence for people.
//!
//! The kinds are those of [`wraith::ErrorKind`], and those that only a border between languages has. Where something may help, the
//! sentence ends with it.

use thiserror::Error;
use wraith::ErrorKind;

/// Why something could not be done. The text is one sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, Error, uniffi::Error)]
#[uniffi(flat_error)]
#[non_exhaustive]
pub enum WraithError {
    /// A path, name, code, ticket, key or option makes no sense.
    #[error("{0}")]
    InvalidInput(String),
    /// Nobody answered at any address, nobody came, or there is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// The other side's user said no.
    #[error("{0}")]
    Refused(String),
    /// The sender came back with another offer than the one that was accepted.
    #[error("{0}")]
    OfferChanged(String),
    /// Wrong words, a code that is used or expired, or a ticket that names nothing there.
    #[error("{0}")]
    WrongCode(String),
    /// The connection was lost and did not come back; the same transfer again continues.
    #[error("{0}")]
    NetworkLost(String),
    /// A disk: full, read-only, unreadable; the same transfer again continues.
    #[error("{0}")]
    Disk(String),
    /// Bytes do not match their hash.
    #[error("{0}")]
    Verification(String),
    /// The peer used a name that could leave the target folder.
    #[error("{0}")]
    UnsafeName(String),
    /// Done, but some files could not be transferred.
    #[error("{0}")]
    Partial(String),
    /// The peer broke the protocol.
    #[error("{0}")]
    Protocol(String),
    /// This side, or the other one, stopped it; the same transfer again continues.
    #[error("{0}")]
    Cancelled(String),
    /// The receiver only looked; the offer stays good.
    #[error("{0}")]
    Later(String),
    /// Another program with this identity receives it, and its user accepted first.
    #[error("{0}")]
    ReceivedElsewhere(String),
    /// Not now, or not any more: an offer is answered once, a handshake has turns, a saved session has numbers.
    #[error("{0}")]
    WrongState(String),
    /// A message, signature or saved state was made by somebody else, or changed since.
    #[error("{0}")]
    Unauthentic(String),
    /// A message was opened before, or is too old to tell.
    #[error("{0}")]
    Replayed(String),
    /// The other side is not who was expected, or does not prove who it is.
    #[error("{0}")]
    WrongPeer(String),
    /// A vault did not do what it was asked for: it threw an exception, or said that it failed.
    #[error("{0}")]
    Vault(String),
    /// Somebody else stores under this name of a vault, or what is there is an older copy: to go on would use keys again.
    #[error("{0}")]
    Conflict(String),
    /// There is no more: numbers of a session, messages without an answer, prekeys, or messages that may be missing.
    #[error("{0}")]
    Exhausted(String),
    /// The system has no randomness.
    #[error("{0}")]
    NoRandomness(String),
    /// Anything without a kind of its own.
    #[error("{0}")]
    Other(String),
}

impl WraithError {
    /// Of something that is there once, and was taken.
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
            ErrorKind::Verification => Self::Verification(text),
            ErrorKind::UnsafeName => Self::UnsafeName(text),
            ErrorKind::Partial => Self::Partial(text),
            ErrorKind::Protocol => Self::Protocol(text),
            ErrorKind::Cancelled => Self::Cancelled(text),
            ErrorKind::Later => Self::Later(text),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_and_the_sentence_of_an_error_cross_together() {
        let error = "no ticket".parse::<wraith::Source>().unwrap_err();
        let text = error.to_string();
        assert_eq!(WraithError::from(error), WraithError::InvalidInput(text));
    }

    #[test]
    fn what_there_is_no_more_of_is_told_apart_from_what_is_not_yet() {
        use wraith::session::SealError;
        use wraith::session::ratchet::{DecryptError, EncryptError, StartError};

        for error in [
            SealError::Exhausted.into(),
            EncryptError::ChainExhausted.into(),
            StartError::PreKeysExhausted.into(),
            DecryptError::TooManySkipped.into(),
        ] {
            assert!(matches!(error, WraithError::Exhausted(_)), "{error:?}");
        }
        assert!(matches!(SealError::NotSaved.into(), WraithError::WrongState(_)));
    }
}
