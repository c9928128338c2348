//! The error type of this crate: a kind for programs and a message for people.
//!
//! Invariant: an [`Error`] states in one sentence what happened and why. [`Error::cause`] has the
//! typed reason where there is one, so no caller needs to parse the message.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use wraith_crypto::PolicyNotBuilt;
use wraith_discovery::{CodeError, TicketError};
pub(crate) use wraith_files::plain;
use wraith_transfer::{Role, TransferError};
use wraith_transport::ConnectError;

use crate::exit::Exit;
use crate::state::{StateError, StateErrorKind};

/// Defines the categories from the table of all kinds of failures.
macro_rules! reasons {
    (
        both { $($(#[$both_doc:meta])* $both:ident $both_c:ident = $both_n:literal, exit $both_exit:ident;)* }
        transfers { $($(#[$doc:meta])* $kind:ident $c:ident = $n:literal, exit $exit:ident;)* }
        $($others:tt)*
    ) => {
        /// Category of an [`Error`]. Later versions add kinds but never rename one.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorKind {
            $($(#[$both_doc])* $both,)*
            $($(#[$doc])* $kind,)*
            /// Any other error.
            Other,
        }

        impl ErrorKind {
            /// Returns the exit code of a program that fails with an error of this kind.
            const fn exit(self) -> Exit {
                match self {
                    $(Self::$both => Exit::$both_exit,)*
                    $(Self::$kind => Exit::$exit,)*
                    Self::Other => Exit::Other,
                }
            }
        }
    };
}

/// The errors of `wraith_session` are none of this crate.
macro_rules! session_errors {
    ($($error:ty,)*) => {};
}

include!("../reasons.rs");

/// The typed reason behind an [`Error`].
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Cause {
    /// The transfer failed.
    Transfer(TransferError),
    /// The other side of the code was not found.
    NotMet(wraith_discovery::JoinError),
    /// This side tried the code before, at this time. Any attempt uses up a code, successful or
    /// not.
    CodeSpent(std::time::SystemTime),
    /// The code expired before a peer used it.
    CodeExpired,
    /// A peer tried the code with wrong words at this place, so the code is burned.
    CodeBurned(wraith_discovery::PlaceName),
    /// No meeting place is available for a code. Lists each place that was tried, and its error.
    NoPlace(Vec<(wraith_discovery::PlaceName, wraith_discovery::PlaceError)>),
    /// The peer did not answer at any of these addresses.
    Unreachable(Vec<SocketAddr>),
    /// A contact was not found. Lists each attempt and its result.
    ContactNotFound(Vec<(String, String)>),
    /// The contact's machine answered but does not admit this node.
    NotAdmitted(wraith_transport::Addr),
    /// This process, on the same machine and with the same identity, receives the offer.
    ReceivedBy(crate::state::OtherReceiver),
    /// The ticket comes from a version of wraith with an incompatible handshake.
    TicketVersion,
    /// The policies of the two sides permit no common cipher for packets. The peer would not answer.
    NoCommonSuite,
    /// No peer came in time.
    NoReceiver,
    /// This machine has no address at which a peer could reach it.
    NoAddress,
    /// Listening on this address failed.
    CannotBind(SocketAddr),
    /// Some receivers lack files that could not be sent.
    SomeLackFiles {
        /// Number of receivers that lack files.
        lacking: u32,
        /// Number of receivers that were served.
        served: u32,
    },
    /// The path is a pipe, socket or device, which has no content of its own.
    NoContent,
    /// The persistent state could not be read or written.
    State(StateError),
}

/// An error of this crate. Cheap to clone. `Display` prints one sentence without a full stop.
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

    /// Returns the error for a cancellation by this side.
    pub(crate) fn cancelled(role: Role) -> Self {
        TransferError::Cancelled { role }.into()
    }

    /// Returns the category of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the typed reason, if there is one.
    pub fn cause(&self) -> Option<&Cause> {
        self.0.cause.as_ref()
    }

    /// Returns the error of the transfer, if the transfer failed.
    pub fn transfer(&self) -> Option<&TransferError> {
        match &self.0.cause {
            Some(Cause::Transfer(error)) => Some(error),
            _ => None,
        }
    }

    /// Returns the exit code of a program that fails with this error.
    pub fn exit(&self) -> Exit {
        match self.cause() {
            Some(Cause::State(state)) => state.exit(),
            _ => self.kind().exit(),
        }
    }

    /// Returns true if the same transfer, started again, continues where this one stopped.
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

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.cause {
            Some(Cause::Transfer(TransferError::Stream { source: Some(source), .. })) => {
                Some(source.error())
            }
            Some(Cause::State(error)) => Some(error),
            Some(Cause::NotMet(error)) => Some(error),
            _ => None,
        }
    }
}

impl From<TransferError> for Error {
    fn from(error: TransferError) -> Self {
        let kind = match &error {
            TransferError::Refused { .. } => ErrorKind::Refused,
            TransferError::WrongSecret => ErrorKind::WrongCode,
            TransferError::NoStream => ErrorKind::InvalidInput,
            TransferError::NetworkLost { .. } => ErrorKind::NetworkLost,
            TransferError::Cancelled { .. } => ErrorKind::Cancelled,
            TransferError::Disk { .. } => ErrorKind::Disk,
            TransferError::Stream { .. } => ErrorKind::Stream,
            TransferError::Panicked { .. } => ErrorKind::Panicked,
            TransferError::Verification { .. } => ErrorKind::Verification,
            TransferError::Partial { .. } => ErrorKind::Partial,
            TransferError::UnsafeName { .. } => ErrorKind::UnsafeName,
            TransferError::Protocol { .. } => ErrorKind::Protocol,
            TransferError::Postponed => ErrorKind::Postponed,
            TransferError::Elsewhere => ErrorKind::ReceivedElsewhere,
            TransferError::Other { .. } => ErrorKind::Other,
        };
        Self::because(kind, error.to_string(), Cause::Transfer(error))
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

macro_rules! from_errors {
    ($($error:ty => $kind:ident),*) => { $(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::new(ErrorKind::$kind, error.to_string())
            }
        }
    )* };
}

from_errors!(
    ConnectError => NotFound,
    PolicyNotBuilt => InvalidInput,
    CodeError => InvalidInput,
    TicketError => InvalidInput
);

#[cfg(test)]
mod tests {
    use wraith_transfer::LostReason;

    use super::*;

    #[test]
    fn an_error_of_the_transfer_keeps_its_type_and_whether_it_resumes() {
        let error: Error = TransferError::NetworkLost { why: LostReason::IdleTimeout }.into();
        assert_eq!(error.kind(), ErrorKind::NetworkLost);
        assert!(error.is_resumable() && error.transfer().is_some());
        let refused: Error = TransferError::Refused { why: String::new() }.into();
        assert!(!refused.is_resumable());
    }

    #[test]
    fn an_error_has_the_exit_code_of_its_kind_or_of_the_state() {
        let exit = |kind| Error::new(kind, "").exit();
        assert_eq!(exit(ErrorKind::InvalidInput), Exit::Usage);
        assert_eq!(exit(ErrorKind::OfferChanged), Exit::Refused);
        assert_eq!(exit(ErrorKind::Cancelled), Exit::NetworkLost, "the same command continues");
        assert_eq!(exit(ErrorKind::Stream), Exit::Disk);
        assert_eq!(exit(ErrorKind::Protocol), Exit::Other);
        let unwritable = crate::state::StateDir::in_folder("/dev/null/state").identity();
        assert_eq!(Error::from(unwritable.map(drop).unwrap_err()).exit(), Exit::Disk);
        assert!(Exit::ALL.is_sorted_by_key(|exit| *exit as u8));
    }

    #[test]
    fn an_error_is_one_word_wide_and_can_cross_threads() {
        fn assert<T: Send + Sync + 'static>() {}
        assert::<Error>();
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
