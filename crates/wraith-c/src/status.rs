//! Result of a call: one number for programs, one sentence for people.

use std::borrow::Cow;

use wraith::ErrorKind;
use wraith_session::fragment::FragmentError;
use wraith_session::ratchet::{DecryptError, EncryptError, StartError};
use wraith_session::sealed_box::SealedBoxError;
use wraith_session::vault::VaultError;
use wraith_session::{
    BatchError, HandshakeError, OpenError, Reason, SealError, StateError, StoreError,
};

/// Defines the statuses from the table of all kinds of failures.
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
        c { $($(#[$c_doc:meta])* $c:ident = $c_number:literal,)* }
        exceptions { $($(#[$exception_doc:meta])* $exception:ident $exception_status:ident,)* }
        neither { $($neither:ident $neither_exception:ident $neither_status:ident,)* }
    ) => {
        /// Result of a call. Later versions add numbers but never change one.
        #[repr(i32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum wraith_status_t {
            $($(#[$c_doc])* $c = $c_number,)*
            $($(#[$both_doc])* $both_status = $both_number,)*
            $($(#[$kind_doc])* $kind_status = $kind_number,)*
            $($(#[$reason_doc])* $reason_status = $reason_number,)*
            $($(#[$own_doc])* $own_status = $own_number,)*
        }

        impl wraith_status_t {
            fn of_kind(kind: ErrorKind) -> Self {
                match kind {
                    $(ErrorKind::$both => Self::$both_status,)*
                    $(ErrorKind::$kind => Self::$kind_status,)*
                    _ => Self::WRAITH_OTHER,
                }
            }

            fn of_reason(reason: Reason) -> Self {
                match reason {
                    $(Reason::$both => Self::$both_status,)*
                    $(Reason::$reason => Self::$reason_status,)*
                    $(Reason::$exception => Self::$exception_status,)*
                    $(Reason::$neither => Self::$neither_status,)*
                    _ => Self::WRAITH_OTHER,
                }
            }
        }
    };
}

/// Converts the errors of `wraith-session`.
macro_rules! session_errors {
    ($($error:ty,)*) => { $(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::new(wraith_status_t::of_reason(error.reason()), error.to_string())
            }
        }
    )* };
}

include!("../../wraith/reasons.rs");

/// Why a call failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// For programs.
    pub status: wraith_status_t,
    /// For people: one sentence without a full stop.
    pub words: Cow<'static, str>,
}

/// The result of an entry point's body.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Creates a failure with this status and message.
    pub fn new(status: wraith_status_t, words: impl Into<Cow<'static, str>>) -> Self {
        Self { status, words: words.into() }
    }

    pub(crate) fn input(words: impl Into<Cow<'static, str>>) -> Self {
        Self::new(wraith_status_t::WRAITH_INVALID_INPUT, words)
    }
}

impl From<wraith::Error> for Failure {
    fn from(error: wraith::Error) -> Self {
        Self::new(wraith_status_t::of_kind(error.kind()), error.to_string())
    }
}

impl From<wraith::state::StateError> for Failure {
    fn from(error: wraith::state::StateError) -> Self {
        wraith::Error::from(error).into()
    }
}
