//! A session: messages in both directions over a transport that may lose, repeat and reorder them.
//!
//! A message is its number, eight bytes in little-endian order, and behind it what Noise makes of the text with that number as
//! the nonce:
//!
//! ```text
//!     number (8) ‖ ciphertext (as long as the text) ‖ tag (16)
//! ```
//!
//! So whoever has a Noise library with explicit nonces can read it; only the change of keys is ours (`epoch`). What holds:
//!
//! - Every message opens once. What comes again, is older than the window, or was not sealed by the other side changes nothing.
//! - Keys change after a number of messages, of bytes, or a time, and on both sides with the same message.
//! - A session that was saved and restored uses no number again ([`Session::save`]).
//! - How long the other side lives is the caller's matter: an empty message is a good sign of life.
//!
//! What a theft of keys costs: whoever has a session's keys reads what comes after, until there is a new handshake; what came in epochs before the
//! last two stays unreadable. Where that is too little there is the [ratchet](crate::ratchet).

mod batch;
mod epoch;
mod receive;
mod send;
mod state;

use std::fmt;
use std::time::Duration;

use thiserror::Error;
use wraith_crypto::{Suite, TAG_BYTES};
use wraith_noise::primitives::nonce;
use zeroize::{Zeroize, Zeroizing};

pub use batch::{Batch, BatchError, OpenedBatch};
use epoch::SessionWindow;
pub use epoch::{EPOCH_MESSAGES, SESSION_WINDOW};
pub use receive::EPOCHS_AHEAD_MAX;
use receive::{EpochState, ReceiveState, Receiver};
use send::{SendState, Sender};
pub use state::{RESERVED_NUMBERS, Saved};

/// Bytes of a message's number.
const NUMBER_BYTES: usize = 8;
/// How much longer a message is than its text.
pub const MESSAGE_OVERHEAD: usize = NUMBER_BYTES + TAG_BYTES;
/// How long a session that is not used keeps its keys expanded, where the time is told.
const IDLE_TIME: Duration = Duration::from_secs(10);
/// The longest text of a message. What is longer belongs into several, or into a file.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// The longest associated data.
pub const AAD_BYTES_MAX: usize = 64 << 10;

/// Why nothing was sealed. No number was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// The text or the associated data is too long.
    #[error(
        "a message has at most {TEXT_BYTES_MAX} bytes, and its associated data {AAD_BYTES_MAX}"
    )]
    Length,
    /// The room given is too small.
    #[error("the message needs {0} bytes of room")]
    Room(usize),
    /// The session was saved, and may use no further number before it is saved again.
    #[error("save the session first: the numbers that its saved state has reserved are used up")]
    NotSaved,
    /// All 2^64 numbers are used up.
    #[error("no numbers are left: a new handshake is needed")]
    Exhausted,
}

/// Why a message was not opened. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum OpenError {
    /// Too short or too long for a message.
    #[error("no message has this length")]
    Length,
    /// Not sealed by the other side of this session, or changed on the way, or sealed with other associated data.
    #[error("the message does not authenticate")]
    Unauthentic,
    /// It was opened before.
    #[error("the message was opened before")]
    Replayed,
    /// So far behind the newest that it cannot be told whether it was opened before.
    #[error("the message is older than the last {SESSION_WINDOW}")]
    TooOld,
    /// More keys ahead than are computed for somebody who may have made its number up.
    #[error("the message is too far ahead: a new handshake is needed")]
    TooFarAhead,
}

/// When the sending side changes its key. Whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rekey {
    /// After this many messages: at most, and without being told, [`EPOCH_MESSAGES`].
    pub messages: u32,
    /// After this many bytes of text.
    pub bytes: u64,
    /// After this time, where the caller tells it ([`Session::set_time`]).
    pub time: Duration,
}

impl Default for Rekey {
    fn default() -> Self {
        Self { messages: EPOCH_MESSAGES as u32, bytes: 1 << 30, time: Duration::from_secs(600) }
    }
}

/// Both directions of a session. Secrets are wiped when dropped.
pub struct Session {
    suite: Suite,
    send: Sender,
    receive: Receiver,
    now: Option<Duration>,
    /// When a message was last sealed or opened, by the time that was told then.
    used: Option<Duration>,
}

impl Session {
    /// The session of two keys, as Noise's `Split` gives them. No two sessions may have the same.
    #[must_use]
    pub fn new(suite: Suite, send: &[u8; 32], receive: &[u8; 32]) -> Self {
        let send = SendState {
            epoch: 0,
            key: Zeroizing::new(*send),
            next: 0,
            reserved: u64::MAX,
            bytes: 0,
        };
        let current =
            EpochState { epoch: 0, key: Zeroizing::new(*receive), window: SessionWindow::new() };
        Self {
            suite,
            send: Sender::new(suite, send),
            receive: Receiver::new(suite, ReceiveState { current, previous: None }),
            now: None,
            used: None,
        }
    }

    /// When the key of what is sealed here changes. The other side follows whatever is said here.
    pub fn set_rekey(&mut self, rekey: Rekey) {
        self.send.rekey = rekey;
    }

    /// Tells the time, from any beginning that stays the same while the session lives. Without that keys do not age.
    pub fn set_time(&mut self, now: Duration) {
        self.now = Some(now);
        self.receive.on_time(now);
        if self.used.is_some_and(|used| now.saturating_sub(used) >= IDLE_TIME) {
            self.park();
        }
    }

    /// Gives back memory that the next message takes again, for half a microsecond: an idle session then holds less than a kibibyte. Where
    /// the time is told, this happens after ten seconds without a message.
    pub fn park(&mut self) {
        self.send.park();
        self.receive.park();
        self.used = None;
    }

    /// What encrypts.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// The length of the message of a text.
    #[must_use]
    pub const fn sealed_len(text: usize) -> usize {
        text.saturating_add(MESSAGE_OVERHEAD)
    }

    /// Seals `text` and appends the message to `out`; returns its number. `aad` is not sent, and must be the same when the message is opened.
    ///
    /// # Errors
    /// No number was used, and `out` is as it was.
    pub fn seal(&mut self, aad: &[u8], text: &[u8], out: &mut Vec<u8>) -> Result<u64, SealError> {
        check_lengths(aad, text)?;
        let number = self.send.take(self.now, text.len())?;
        self.used = self.now;
        out.reserve(Self::sealed_len(text.len()));
        out.extend_from_slice(&number.to_le_bytes());
        let start = out.len();
        out.extend_from_slice(text);
        let tag = self.send.key().seal(nonce(self.suite, number), aad, &mut out[start..]);
        out.extend_from_slice(&tag);
        Ok(number)
    }

    /// As [`seal`](Self::seal), into the front of `out`; returns the number and the length of the message.
    ///
    /// # Errors
    /// [`SealError::Room`] if `out` is too short; no number was used then.
    pub fn seal_into(
        &mut self,
        aad: &[u8],
        text: &[u8],
        out: &mut [u8],
    ) -> Result<(u64, usize), SealError> {
        check_lengths(aad, text)?;
        let len = Self::sealed_len(text.len());
        let out = out.get_mut(..len).ok_or(SealError::Room(len))?;
        let number = self.send.take(self.now, text.len())?;
        self.used = self.now;
        seal_slice(self.send.key(), self.suite, number, aad, text, out);
        Ok((number, len))
    }

    /// Opens `message` and appends its text to `out`; returns its number.
    ///
    /// # Errors
    /// Nothing has changed, and `out` is as it was.
    pub fn open(
        &mut self,
        aad: &[u8],
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<u64, OpenError> {
        check_message(aad, message.len())?;
        let start = out.len();
        out.extend_from_slice(message);
        match self.open_in_place(aad, &mut out[start..]) {
            Ok((number, text)) => {
                let len = text.len();
                out.copy_within(start + NUMBER_BYTES..start + NUMBER_BYTES + len, start);
                out.truncate(start + len);
                Ok(number)
            }
            Err(why) => {
                out[start..].zeroize();
                out.truncate(start);
                Err(why)
            }
        }
    }

    /// Opens `message` where it lies; returns its number and its text.
    ///
    /// # Errors
    /// Nothing has changed but the bytes of `message`, which are unspecified then.
    pub fn open_in_place<'a>(
        &mut self,
        aad: &[u8],
        message: &'a mut [u8],
    ) -> Result<(u64, &'a mut [u8]), OpenError> {
        check_message(aad, message.len())?;
        self.receive.prepare([&*message].into_iter());
        let verified = self.receive.verify(aad, message)?;
        self.receive.accept(self.now, &verified)?;
        self.used = self.now;
        let end = message.len() - TAG_BYTES;
        Ok((verified.number, &mut message[NUMBER_BYTES..end]))
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("suite", &self.suite)
            .field("next", &self.send.state.next)
            .finish_non_exhaustive()
    }
}

fn check_lengths(aad: &[u8], text: &[u8]) -> Result<(), SealError> {
    match aad.len() <= AAD_BYTES_MAX && text.len() <= TEXT_BYTES_MAX {
        true => Ok(()),
        false => Err(SealError::Length),
    }
}

fn check_message(aad: &[u8], len: usize) -> Result<(), OpenError> {
    match aad.len() <= AAD_BYTES_MAX
        && (MESSAGE_OVERHEAD..=Session::sealed_len(TEXT_BYTES_MAX)).contains(&len)
    {
        true => Ok(()),
        false => Err(OpenError::Length),
    }
}

/// Writes the message of a number into `out`, which is as long as it.
fn seal_slice(
    key: &wraith_crypto::AeadKey,
    suite: Suite,
    number: u64,
    aad: &[u8],
    text: &[u8],
    out: &mut [u8],
) {
    let (head, rest) = out.split_at_mut(NUMBER_BYTES);
    head.copy_from_slice(&number.to_le_bytes());
    let (body, tail) = rest.split_at_mut(text.len());
    tail.copy_from_slice(&key.seal_from(nonce(suite, number), aad, body, 0, text));
}
