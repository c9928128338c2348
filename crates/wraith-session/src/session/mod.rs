//! A session: messages in both directions over a transport that may lose, duplicate and reorder
//! them.
//!
//! A message is its number, eight bytes in little-endian order, followed by the Noise transport
//! message of the text with that number as the nonce:
//!
//! ```text
//!  number (8) ‖ ciphertext (as long as the text) ‖ tag (16)
//! ```
//!
//! Any Noise library with explicit nonces can read it; only the key change (`epoch`) is specific to
//! this crate. Invariants:
//!
//! - Every message opens at most once. A message that is a duplicate, older than the replay window,
//!   or not sealed by the peer changes nothing.
//! - Keys change after a number of messages, a number of bytes, or a time. Both sides change keys
//!   with the same message.
//! - A session that was stored and loaded never reuses a number ([`Session::keep`],
//!   [`Session::save`]).
//!
//! The caller detects a dead peer; an empty message serves as a keep-alive.
//!
//! A thief of a session's keys can read all later messages of this session; only a new handshake
//! ends that. Messages of epochs before the last two stay confidential. For stronger guarantees use
//! the [ratchet](crate::ratchet).

mod batch;
mod epoch;
mod kept;
mod receive;
mod send;
mod state;

use std::time::Duration;

use thiserror::Error;
use wraith_crypto::{Suite, TAG_BYTES, redacted_debug};
use wraith_noise::primitives::nonce;
use zeroize::{Zeroize, Zeroizing};

pub use batch::{Batch, BatchError, OpenedBatch};
use epoch::SessionWindow;
pub use epoch::{EPOCH_MESSAGES, SESSION_WINDOW};
pub use receive::EPOCHS_AHEAD_MAX;
use receive::{EpochState, ReceiveState, Receiver};
use send::{NoNumber, SendState, Sender};
pub use state::{RESERVED_NUMBERS, SavedSession};

use crate::vault::{RecordSlot, VaultError};

/// Bytes of a message's number.
const NUMBER_BYTES: usize = 8;
/// Bytes that a message adds to its text.
pub const MESSAGE_OVERHEAD: usize = NUMBER_BYTES + TAG_BYTES;
/// Idle time after which expanded keys are released, if the caller sets the time.
const IDLE_TIME: Duration = Duration::from_secs(10);
/// Maximum length of a message's text, in bytes. Longer content belongs into several messages, or
/// into a file.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Maximum length of the associated data, in bytes.
pub const AAD_BYTES_MAX: usize = 64 << 10;

/// Why sealing failed. No number was used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// The text or the associated data is too long.
    #[error(
        "a message has at most {TEXT_BYTES_MAX} bytes, and its associated data {AAD_BYTES_MAX}"
    )]
    Length,
    /// The output buffer is too small.
    #[error("the message needs a buffer of {0} bytes")]
    Room(usize),
    /// The session was saved, and must be saved again before it uses further numbers.
    #[error("all reserved numbers are used; save the session again")]
    NotSaved,
    /// All 2^64 numbers are used.
    #[error("all message numbers are used; start a new handshake")]
    Exhausted,
    /// The session could not be stored in its vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// Why a message was not opened. The state is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// The message or its associated data has an invalid length.
    #[error("the message or its associated data has an invalid length")]
    Length,
    /// The message was not sealed by the peer of this session, was changed, or has other associated
    /// data.
    #[error("the message does not authenticate")]
    Unauthentic,
    /// The message was opened before.
    #[error("the message was opened before")]
    Replayed,
    /// The message is older than the replay window, so a duplicate could not be detected.
    #[error("the message is older than the last {SESSION_WINDOW}")]
    TooOld,
    /// The message's epoch is too far ahead. This limits the work that a forged number can cause.
    #[error("the message is too far ahead: a new handshake is needed")]
    TooFarAhead,
    /// The session could not be stored in its vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// Limits at which the sending side changes its key. The first one reached applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RekeyLimits {
    /// Messages per key. At most [`EPOCH_MESSAGES`], which is also the default.
    pub messages: u32,
    /// Bytes of text per key.
    pub bytes: u64,
    /// Age of a key, if the caller sets the time ([`Session::set_time`]).
    pub time: Duration,
}

impl Default for RekeyLimits {
    fn default() -> Self {
        Self { messages: EPOCH_MESSAGES as u32, bytes: 1 << 30, time: Duration::from_secs(600) }
    }
}

/// Both directions of a session, in memory or [kept](Self::keep) in a vault. Secrets are wiped when
/// dropped.
pub struct Session {
    suite: Suite,
    send: Sender,
    receive: Receiver,
    now: Option<Duration>,
    /// Time of the last sealed or opened message, as set by the caller.
    used: Option<Duration>,
    /// The place in a vault, if the session is kept in one.
    kept: Option<Box<RecordSlot>>,
}

impl Session {
    /// Creates a session from the two keys of Noise's `Split`. No two sessions may share a key.
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
        Self::with(suite, send, ReceiveState { current, previous: None })
    }

    fn with(suite: Suite, send: SendState, receive: ReceiveState) -> Self {
        let (send, receive) = (Sender::new(suite, send), Receiver::new(suite, receive));
        Self { suite, send, receive, now: None, used: None, kept: None }
    }

    /// Sets the rekey limits of the sending direction. The peer follows automatically. The setting
    /// is not saved.
    pub fn set_rekey(&mut self, rekey: RekeyLimits) {
        self.send.rekey = rekey;
    }

    /// Sets the current time, from any origin that stays fixed for the session. Without it keys do
    /// not age.
    pub fn set_time(&mut self, now: Duration) {
        self.now = Some(now);
        self.receive.on_time(now);
        if self.used.is_some_and(|used| now.saturating_sub(used) >= IDLE_TIME) {
            self.park();
        }
    }

    /// Releases memory that the next message allocates again within half a microsecond; an idle
    /// session then holds less than a kibibyte. If the caller sets the time, this happens after ten
    /// seconds without a message.
    pub fn park(&mut self) {
        self.send.park();
        self.receive.park();
        self.used = None;
    }

    /// Returns the AEAD suite.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// Returns the length of the message for a text of this length.
    #[must_use]
    pub const fn sealed_len(text: usize) -> usize {
        text.saturating_add(MESSAGE_OVERHEAD)
    }

    /// Seals `text`, appends the message to `out`, and returns its number. `aad` is not sent, and
    /// must be equal when the message is opened. In a vault, the session is stored once every few
    /// hundred messages.
    ///
    /// # Errors
    /// [`SealError`]. No number was used, and `out` is unchanged.
    pub fn seal(&mut self, aad: &[u8], text: &[u8], out: &mut Vec<u8>) -> Result<u64, SealError> {
        check_lengths(aad, text)?;
        let number = self.take_number(text.len())?;
        out.reserve(Self::sealed_len(text.len()));
        out.extend_from_slice(&number.to_le_bytes());
        let start = out.len();
        out.extend_from_slice(text);
        let tag = self.send.key().seal(nonce(self.suite, number), aad, &mut out[start..]);
        out.extend_from_slice(&tag);
        Ok(number)
    }

    /// As [`seal`](Self::seal), into the front of `out`. Returns the number and the length of the
    /// message.
    ///
    /// # Errors
    /// [`SealError::Room`] if `out` is too short. No number was used.
    pub fn seal_into(
        &mut self,
        aad: &[u8],
        text: &[u8],
        out: &mut [u8],
    ) -> Result<(u64, usize), SealError> {
        check_lengths(aad, text)?;
        let len = Self::sealed_len(text.len());
        let out = out.get_mut(..len).ok_or(SealError::Room(len))?;
        let number = self.take_number(text.len())?;
        seal_slice(self.send.key(), self.suite, number, aad, text, out);
        Ok((number, len))
    }

    /// Assigns the next number to a message of `len` bytes.
    fn take_number(&mut self, len: usize) -> Result<u64, SealError> {
        let number = loop {
            match self.send.take(self.now, len) {
                Err(NoNumber::NotSaved) if self.kept.is_some() => self.store()?,
                taken => break taken?,
            }
        };
        self.used = self.now;
        Ok(number)
    }

    /// Opens `message`, appends its text to `out`, and returns its number. In a vault, the session
    /// is stored before this returns.
    ///
    /// # Errors
    /// [`OpenError`]. The state and `out` are unchanged.
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

    /// Opens `message` in place. Returns its number and its text.
    ///
    /// # Errors
    /// [`OpenError`]. The state is unchanged; the bytes of `message` are unspecified.
    pub fn open_in_place<'a>(
        &mut self,
        aad: &[u8],
        message: &'a mut [u8],
    ) -> Result<(u64, &'a mut [u8]), OpenError> {
        check_message(aad, message.len())?;
        self.receive.prepare([&*message].into_iter());
        let verified = self.receive.verify(aad, message)?;
        self.store_opened([&verified].into_iter()).inspect_err(|_| message.zeroize())?;
        self.receive.accept(self.now, &verified)?;
        self.used = self.now;
        let end = message.len() - TAG_BYTES;
        Ok((verified.number, &mut message[NUMBER_BYTES..end]))
    }
}

redacted_debug!(|it: Session| suite: it.suite, next: it.send.state.next, kept: it.kept);

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

/// Writes the message of a number into `out`, which has exactly its length.
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
