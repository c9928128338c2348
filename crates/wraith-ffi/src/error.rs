//! One flat error enum: a kind for programs, and a message for people.
//!
//! The kinds are those of [`wraith::ErrorKind`] and of [`wraith::session::Reason`], plus the
//! failures that occur only between Rust and the other language. If the user can fix the problem,
//! the message ends with advice.

use thiserror::Error;
use wraith::ErrorKind;
use wraith::session::fragment::FragmentError;
use wraith::session::ratchet::{DecryptError, EncryptError, StartError};
use wraith::session::sealed_box::SealedBoxError;
use wraith::session::vault::VaultError;
use wraith::session::{
    BatchError, HandshakeError, OpenError, Reason, SealError, StateError, StoreError,
};

/// Defines the error from the table of all kinds of failures.
macro_rules! reasons {
    (
        both {
            $($(#[$both_doc:meta])* $both:ident $both_status:ident = $both_number:literal, exit $both_exit:ident;)*
        }
        transfers {
            $($(#[$kind_doc:meta])* $kind:ident $kind_status:ident = $kind_number:literal, exit $kind_exit:ident;)*
        }
        sessions {
            $($(#[$reason_doc:meta])* $reason:ident $reason_status:ident = $reason_number:literal,)*
        }
        libraries { $($(#[$own_doc:meta])* $own:ident $own_status:ident = $own_number:literal,)* }
        c { $($c:tt)* }
        exceptions { $($(#[$exception_doc:meta])* $exception:ident $exception_status:ident,)* }
        neither { $($neither:ident $neither_exception:ident $neither_status:ident,)* }
    ) => {
        /// The error of all calls. Its text is a message for people.
        #[derive(Clone, Debug, PartialEq, Eq, Error, uniffi::Error)]
        #[uniffi(flat_error)]
        #[non_exhaustive]
        pub enum WraithError {
            $($(#[$both_doc])* #[error("{0}")] $both(String),)*
            $($(#[$kind_doc])* #[error("{0}")] $kind(String),)*
            $($(#[$reason_doc])* #[error("{0}")] $reason(String),)*
            $($(#[$exception_doc])* #[error("{0}")] $exception(String),)*
            $($(#[$own_doc])* #[error("{0}")] $own(String),)*
        }

        impl WraithError {
            fn of_kind(kind: ErrorKind, text: String) -> Self {
                match kind {
                    $(ErrorKind::$both => Self::$both(text),)*
                    $(ErrorKind::$kind => Self::$kind(text),)*
                    _ => Self::Other(text),
                }
            }

            fn of_reason(reason: Reason, text: String) -> Self {
                match reason {
                    $(Reason::$both => Self::$both(text),)*
                    $(Reason::$reason => Self::$reason(text),)*
                    $(Reason::$exception => Self::$exception(text),)*
                    $(Reason::$neither => Self::$neither_exception(text),)*
                    _ => Self::Other(text),
                }
            }
        }
    };
}

/// Converts the errors of `wraith-session`.
macro_rules! session_errors {
    ($($error:ty,)*) => { $(
        impl From<$error> for WraithError {
            fn from(error: $error) -> Self {
                Self::of_reason(error.reason(), error.to_string())
            }
        }
    )* };
}

include!("../../wraith/reasons.rs");

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
        Self::of_kind(error.kind(), text)
    }
}

impl From<wraith::state::StateError> for WraithError {
    fn from(error: wraith::state::StateError) -> Self {
        wraith::Error::from(error).into()
    }
}
