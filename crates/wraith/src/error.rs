//! What went wrong, as one type with a kind: what a program decides by, and the words that people read.
//!
//! Invariant: an [`Error`] says what happened and why in one sentence; [`Error::cause`] has the typed reason where there is one,
//! so that nobody needs to read the sentence to tell two cases apart.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use wraith_discovery::{CodeError, TicketError};
pub(crate) use wraith_files::plain;
use wraith_transfer::{Role, TransferError};
use wraith_transport::ConnectError;

use crate::state::{StateError, StateErrorKind};

/// What an [`Error`] is about. Kinds get added, never renamed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A path, name, code, ticket or option makes no sense.
    InvalidInput,
    /// Nobody answered at any address, or nobody came.
    NotFound,
    /// The other side's user said no.
    Refused,
    /// The sender came back with another offer than the one that was accepted.
    OfferChanged,
    /// Wrong words, a code that is used or expired, or a ticket that names nothing there.
    WrongCode,
    /// The connection was lost and did not come back; the same transfer again continues.
    NetworkLost,
    /// A disk: full, read-only, unreadable; the same transfer again continues.
    Disk,
    /// Bytes do not match their hash.
    Verification,
    /// The peer used a name that could leave the target folder.
    UnsafeName,
    /// Done, but some files could not be transferred.
    Partial,
    /// The peer broke the protocol.
    Protocol,
    /// This side, or the other one, stopped it; the same transfer again continues.
    Cancelled,
    /// The receiver only looked; the offer stays good.
    Later,
    /// Another program with this identity receives it, and its user accepted first.
    ReceivedElsewhere,
    /// Anything without a kind of its own.
    Other,
}

/// The typed reason behind an [`Error`].
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Cause {
    /// The transfer itself failed.
    Transfer(TransferError),
    /// The other side of a code was not met.
    NotMet(wraith_discovery::JoinError),
    /// This side has tried the code before, at this time: it was used up by that, whatever came of it.
    CodeSpent(std::time::SystemTime),
    /// Nobody used the code before its time was up.
    CodeExpired,
    /// Somebody tried the code with wrong words at this place, and it is burned.
    CodeBurned(wraith_discovery::Place),
    /// There is no place where a code could be waited with; each place that was tried, and why not.
    NoPlace(Vec<(wraith_discovery::Place, wraith_discovery::PlaceError)>),
    /// The peer was reached at none of these addresses.
    Unreachable(Vec<SocketAddr>),
    /// A contact was reached nowhere: what was tried, and what came of it.
    ContactNotFound(Vec<(String, String)>),
    /// The contact's machine is there, and does not go on with this one.
    NotAdmitted(wraith_transport::Addr),
    /// This process of the same machine and identity receives it.
    ReceivedBy(crate::state::OtherReceiver),
    /// The ticket was made by a version of wraith with another handshake.
    TicketVersion,
    /// Nobody came in time.
    NobodyCame,
    /// This machine has no address at which anybody could reach it.
    NoAddress,
    /// This address cannot be listened on.
    CannotBind(SocketAddr),
    /// This many of the receivers lack files that could not be sent.
    SomeLackFiles {
        /// Receivers that lack files.
        lacking: u32,
        /// Receivers that were served.
        served: u32,
    },
    /// A pipe, socket or device was named, which has no content of its own.
    NoContent,
    /// What a machine remembers could not be read or written.
    State(StateError),
}

/// Why something could not be done. Cheap to clone; `Display` is one sentence for people, without a full stop.
#[derive(Clone)]
pub struct Error(Arc<Repr>);

struct Repr {
    kind: ErrorKind,
    message: String,
    cause: Option<Cause>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Repr { kind, message: message.into(), cause: None }))
    }

    pub(crate) fn because(kind: ErrorKind, message: impl Into<String>, cause: Cause) -> Self {
        Self(Arc::new(Repr { kind, message: message.into(), cause: Some(cause) }))
    }

    /// This side stopped it.
    pub(crate) fn cancelled(role: Role) -> Self {
        TransferError::Cancelled { role }.into()
    }

    /// What it is about.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The typed reason, where there is one.
    pub fn cause(&self) -> Option<&Cause> {
        self.0.cause.as_ref()
    }

    /// The transfer's own error, where it was the transfer that failed.
    pub fn transfer(&self) -> Option<&TransferError> {
        match &self.0.cause {
            Some(Cause::Transfer(error)) => Some(error),
            _ => None,
        }
    }

    /// True if the same transfer again continues where this one stopped.
    pub fn is_resumable(&self) -> bool {
        match &self.0.cause {
            Some(Cause::Transfer(error)) => error.is_resumable(),
            _ => matches!(self.0.kind, ErrorKind::NetworkLost | ErrorKind::Disk),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Repr { kind, message, cause } = &*self.0;
        f.debug_struct("Error")
            .field("kind", kind)
            .field("message", message)
            .field("cause", cause)
            .finish()
    }
}

impl std::error::Error for Error {}

impl From<TransferError> for Error {
    fn from(error: TransferError) -> Self {
        let kind = match &error {
            TransferError::Refused { .. } => ErrorKind::Refused,
            TransferError::WrongSecret => ErrorKind::WrongCode,
            TransferError::NoStream => ErrorKind::InvalidInput,
            TransferError::NetworkLost { .. } => ErrorKind::NetworkLost,
            TransferError::Cancelled { .. } => ErrorKind::Cancelled,
            TransferError::Disk { .. } => ErrorKind::Disk,
            TransferError::Verification { .. } => ErrorKind::Verification,
            TransferError::Partial { .. } => ErrorKind::Partial,
            TransferError::UnsafeName { .. } => ErrorKind::UnsafeName,
            TransferError::Protocol { .. } => ErrorKind::Protocol,
            TransferError::Later => ErrorKind::Later,
            TransferError::Elsewhere => ErrorKind::ReceivedElsewhere,
            TransferError::Other { .. } => ErrorKind::Other,
        };
        Self::because(kind, error.to_string(), Cause::Transfer(error))
    }
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        Self::new(ErrorKind::NotFound, error.to_string())
    }
}

impl From<StateError> for Error {
    fn from(error: StateError) -> Self {
        let kind = match error.kind() {
            StateErrorKind::Refused | StateErrorKind::Ambiguous => ErrorKind::InvalidInput,
            StateErrorKind::Disk | StateErrorKind::Exposed => ErrorKind::Disk,
            _ => ErrorKind::Other,
        };
        Self::because(kind, error.to_string(), Cause::State(error))
    }
}

impl From<CodeError> for Error {
    fn from(error: CodeError) -> Self {
        Self::new(ErrorKind::InvalidInput, error.to_string())
    }
}

impl From<TicketError> for Error {
    fn from(error: TicketError) -> Self {
        Self::new(ErrorKind::InvalidInput, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_transfer_keeps_its_type_and_whether_it_resumes() {
        let error: Error = TransferError::NetworkLost { why: "gone".into() }.into();
        assert_eq!(error.kind(), ErrorKind::NetworkLost);
        assert!(error.is_resumable() && error.transfer().is_some());
        let refused: Error = TransferError::Refused { why: String::new() }.into();
        assert!(!refused.is_resumable());
    }

    #[test]
    fn an_error_is_one_word_wide_and_can_cross_threads() {
        fn assert<T: Send + Sync + 'static>() {}
        assert::<Error>();
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
