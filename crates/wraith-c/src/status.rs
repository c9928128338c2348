//! How a call ended: one number for programs, one sentence for people.

use std::borrow::Cow;

/// How a call ended. Numbers get added, never changed.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum wraith_status_t {
    /// It is done.
    WRAITH_OK = 0,
    /// An argument makes no sense: a pointer that is NULL with a length above 0, a wrong length, a code or ticket that is none.
    WRAITH_INVALID_INPUT = 1,
    /// The handle is 0, was freed, or is of another kind.
    WRAITH_INVALID_HANDLE = 2,
    /// The caller's buffer is too small. `*out_len` says how much is needed, and nothing has changed.
    WRAITH_BUFFER_TOO_SMALL = 3,
    /// Not now: calls in another order, such as reading when it is one's turn to write.
    WRAITH_INVALID_STATE = 4,
    /// A message, signature or saved state is not what it should be: forged, damaged or of somebody else. Nothing has changed.
    WRAITH_UNAUTHENTIC = 5,
    /// The message came before, or is too old to tell. Nothing has changed.
    WRAITH_REPLAYED = 6,
    /// There is no more: handles, messages of a session, or what a limit allows.
    WRAITH_EXHAUSTED = 7,
    /// What the caller keeps keys in (a vault) has failed.
    WRAITH_VAULT_FAILED = 8,
    /// The system has no randomness.
    WRAITH_NO_RANDOMNESS = 9,
    /// It is not over after the time that was given. It goes on.
    WRAITH_TIMED_OUT = 10,
    /// Nobody answered at any address, nobody came, or there is no such thing.
    WRAITH_NOT_FOUND = 11,
    /// The other side's user said no.
    WRAITH_REFUSED = 12,
    /// The sender came back with another offer than the one that was accepted.
    WRAITH_OFFER_CHANGED = 13,
    /// Wrong words, a code that is used or expired, or a ticket that names nothing there.
    WRAITH_WRONG_CODE = 14,
    /// The connection was lost and did not come back; the same transfer again continues.
    WRAITH_NETWORK_LOST = 15,
    /// A disk: full, read-only, unreadable; the same transfer again continues.
    WRAITH_DISK = 16,
    /// Bytes do not match their hash.
    WRAITH_VERIFICATION = 17,
    /// The peer used a name that could leave the target folder.
    WRAITH_UNSAFE_NAME = 18,
    /// Done, but some files could not be transferred.
    WRAITH_PARTIAL = 19,
    /// The peer broke the protocol.
    WRAITH_PROTOCOL = 20,
    /// This side, or the other one, stopped it; the same transfer again continues.
    WRAITH_CANCELLED = 21,
    /// The receiver put it off; the offer stays good.
    WRAITH_LATER = 22,
    /// Another program with this identity receives it, and its user accepted first.
    WRAITH_RECEIVED_ELSEWHERE = 23,
    /// A vault holds a record of this name already, or a newer one: it is in use elsewhere, or was rolled back.
    WRAITH_CONFLICT = 24,
    /// Anything without a number of its own.
    WRAITH_OTHER = 98,
    /// A fault of the library. What it happened to is of no use any more; everything else is.
    WRAITH_PANICKED = 99,
}

use wraith_status_t::*;

/// Why a call fails.
#[derive(Clone, Debug)]
pub struct Failure {
    /// For programs.
    pub status: wraith_status_t,
    /// For people: one sentence without a full stop.
    pub words: Cow<'static, str>,
}

/// What every entry point's body returns.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure in these words.
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
        Kind::Verification => WRAITH_VERIFICATION,
        Kind::UnsafeName => WRAITH_UNSAFE_NAME,
        Kind::Partial => WRAITH_PARTIAL,
        Kind::Protocol => WRAITH_PROTOCOL,
        Kind::Cancelled => WRAITH_CANCELLED,
        Kind::Later => WRAITH_LATER,
        Kind::ReceivedElsewhere => WRAITH_RECEIVED_ELSEWHERE,
        _ => WRAITH_OTHER,
    }
}
