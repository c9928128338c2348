//! Result of a call: one number for programs, one sentence for people.

use std::borrow::Cow;

/// Result of a call. Later versions add numbers but never change one.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum wraith_status_t {
    /// Success.
    WRAITH_OK = 0,
    /// An argument is invalid: a NULL pointer with a length above 0, a wrong length, or an invalid
    /// code or ticket.
    WRAITH_INVALID_INPUT = 1,
    /// The handle is 0, was freed, or is of another kind.
    WRAITH_INVALID_HANDLE = 2,
    /// The caller's buffer is too small. `*out_len` is the required size, and nothing has changed.
    WRAITH_BUFFER_TOO_SMALL = 3,
    /// The call is not allowed in this state, such as a read when it is this side's turn to write.
    WRAITH_INVALID_STATE = 4,
    /// A message, signature or saved state is forged, damaged, or of another party. Nothing has
    /// changed.
    WRAITH_UNAUTHENTIC = 5,
    /// The message was received before. Nothing has changed.
    WRAITH_REPLAYED = 6,
    /// A limit is reached: handles, messages of a session, or a configured limit.
    WRAITH_EXHAUSTED = 7,
    /// The vault has failed.
    WRAITH_VAULT_FAILED = 8,
    /// The system has no randomness.
    WRAITH_NO_RANDOMNESS = 9,
    /// The operation is still running after the time limit. It continues.
    WRAITH_TIMED_OUT = 10,
    /// No address answered, no peer came, or the item does not exist.
    WRAITH_NOT_FOUND = 11,
    /// The user of the other side declined.
    WRAITH_REFUSED = 12,
    /// After a reconnect, the sender made another offer than the accepted one.
    WRAITH_OFFER_CHANGED = 13,
    /// The words are wrong, the code is used or expired, or the ticket names no offer of the
    /// sender.
    WRAITH_WRONG_CODE = 14,
    /// The connection was lost and not restored in time. The same transfer can be resumed.
    WRAITH_NETWORK_LOST = 15,
    /// A disk is full, read-only or unreadable. The same transfer can be resumed.
    WRAITH_DISK = 16,
    /// Data does not match its hash.
    WRAITH_VERIFICATION = 17,
    /// The peer sent a name that could escape the target folder.
    WRAITH_UNSAFE_NAME = 18,
    /// The transfer is complete except for some files that could not be transferred.
    WRAITH_PARTIAL = 19,
    /// The peer violated the protocol.
    WRAITH_PROTOCOL = 20,
    /// One of the two sides cancelled. The same transfer can be resumed.
    WRAITH_CANCELLED = 21,
    /// The receiver postponed the offer, which stays valid.
    WRAITH_POSTPONED = 22,
    /// Another program with the same identity receives the offer; its user accepted first.
    WRAITH_RECEIVED_ELSEWHERE = 23,
    /// The vault already has a record of this name, or a newer one: it is in use elsewhere, or was
    /// rolled back.
    WRAITH_CONFLICT = 24,
    /// The message is so late that it is no longer opened. It may have been received before. Nothing
    /// has changed.
    WRAITH_TOO_OLD = 25,
    /// The reader or writer of a byte stream failed.
    WRAITH_STREAM = 26,
    /// The program of one side panicked.
    WRAITH_PROGRAM_PANICKED = 27,
    /// Any other error.
    WRAITH_OTHER = 98,
    /// A bug in the library. The affected object is unusable; all others still work.
    WRAITH_PANICKED = 99,
}

use wraith_status_t::*;

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
        Self::new(WRAITH_INVALID_INPUT, words)
    }
}

impl From<wraith::Error> for Failure {
    fn from(error: wraith::Error) -> Self {
        Self::new(of_kind(error.kind()), error.to_string())
    }
}

impl From<wraith::state::StateError> for Failure {
    fn from(error: wraith::state::StateError) -> Self {
        wraith::Error::from(error).into()
    }
}

fn of_kind(kind: wraith::ErrorKind) -> wraith_status_t {
    use wraith::ErrorKind as Kind;
    match kind {
        Kind::InvalidInput => WRAITH_INVALID_INPUT,
        Kind::NotFound => WRAITH_NOT_FOUND,
        Kind::Refused => WRAITH_REFUSED,
        Kind::OfferChanged => WRAITH_OFFER_CHANGED,
        Kind::WrongCode => WRAITH_WRONG_CODE,
        Kind::NetworkLost => WRAITH_NETWORK_LOST,
        Kind::Disk => WRAITH_DISK,
        Kind::Stream => WRAITH_STREAM,
        Kind::Panicked => WRAITH_PROGRAM_PANICKED,
        Kind::Verification => WRAITH_VERIFICATION,
        Kind::UnsafeName => WRAITH_UNSAFE_NAME,
        Kind::Partial => WRAITH_PARTIAL,
        Kind::Protocol => WRAITH_PROTOCOL,
        Kind::Cancelled => WRAITH_CANCELLED,
        Kind::Postponed => WRAITH_POSTPONED,
        Kind::ReceivedElsewhere => WRAITH_RECEIVED_ELSEWHERE,
        _ => WRAITH_OTHER,
    }
}
