//! Sessions: encrypted messages over a transport that may lose, repeat and reorder them.

use std::sync::Mutex;
use std::time::Duration;

use wraith_session::{MESSAGE_OVERHEAD, SavedSession, Session, StoreError};
use zeroize::Zeroize;

use super::batch::{BatchResult, opened_bytes, write_index, write_opened};
use crate::border::{OutPtr, Output, Plain, export};
use crate::status::wraith_status_t::WRAITH_INVALID_STATE;
use crate::status::{Failure, Outcome, wraith_status_t};
use crate::table::{Kind, Table};

/// Overhead of a message over its text, in bytes.
pub const WRAITH_SESSION_OVERHEAD: usize = 24;
const _: () = assert!(WRAITH_SESSION_OVERHEAD == MESSAGE_OVERHEAD);
/// Buffer size for a saved session, in bytes.
pub const WRAITH_SESSION_SAVED_MAX: usize = 704;
/// Buffer capacity kept from one call to the next, in bytes.
const SCRATCH_MAX: usize = 64 << 10;

/// A session.
pub type wraith_session_t = u64;

/// The result for one message of a batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct wraith_opened_t {
    /// `WRAITH_OK`, or why the message was not opened. A failed message changes nothing.
    pub status: wraith_status_t,
    /// The message number.
    pub number: u64,
    /// Offset of its text in the buffer.
    pub offset: usize,
    /// Length of its text.
    pub len: usize,
}

// SAFETY: only written, from valid values.
unsafe impl Plain for wraith_opened_t {}

impl BatchResult for wraith_opened_t {
    fn new(status: wraith_status_t, number: u64, offset: usize, len: usize) -> Self {
        Self { status, number, offset, len }
    }
}

pub(super) static SESSIONS: Table<Mutex<SessionEntry>> = Table::new(Kind::Session);

/// A session and the state of its handle.
pub(super) struct SessionEntry {
    pub(super) session: Session,
    /// The last saved state, until it is confirmed as stored.
    saved: Option<SavedSession>,
    /// Empty between calls.
    scratch: Vec<u8>,
}

impl SessionEntry {
    /// Writes the scratch buffer and the message number. Empties the buffer, and wipes its first
    /// `text` bytes.
    fn write(
        &mut self,
        out: Output<'_>,
        place: Option<OutPtr<'_, u64>>,
        number: u64,
        text: usize,
    ) -> Outcome {
        out.write(&self.scratch)?;
        if let Some(place) = place {
            place.write(number);
        }
        self.scratch[..text].zeroize();
        self.scratch.clear();
        self.scratch.shrink_to(SCRATCH_MAX);
        Ok(())
    }

    /// Returns the session if the caller saves it.
    fn in_memory(&mut self) -> Outcome<&mut Session> {
        not_kept(self.session.is_kept())?;
        Ok(&mut self.session)
    }
}

pub(super) fn insert(session: Session) -> Outcome<wraith_session_t> {
    SESSIONS.add(SessionEntry { session, saved: None, scratch: Vec::new() })
}

/// Checks that the caller saves an object itself.
pub(super) fn not_kept(is_kept: bool) -> Outcome {
    if is_kept { Err(StoreError::Kept.into()) } else { Ok(()) }
}

export!(
    /// Seals `text`. The message is `text_len + WRAITH_SESSION_OVERHEAD` bytes. `aad` is not sent;
    /// opening needs the same `aad`. `number`, which may be NULL, gets the message number.
    pub fn wraith_session_seal(
        session: wraith_session_t,
        aad: Bytes,
        text: Bytes,
        out: Buffer,
        number: OutOrNull<u64>,
    ) -> Outcome {
        out.room(Session::sealed_len(text.len()))?;
        SESSIONS.with(session, |entry| {
            let taken = entry.session.seal(aad, text, &mut entry.scratch)?;
            entry.write(out, number, taken, 0)
        })
    }

    /// Opens `message`. Its text is `message_len - WRAITH_SESSION_OVERHEAD` bytes.
    /// `WRAITH_UNAUTHENTIC` if the other side did not seal it. `WRAITH_REPLAYED` if it was opened
    /// before, `WRAITH_TOO_OLD` if it is older than the last 2048. `number` may be NULL.
    pub fn wraith_session_open(
        session: wraith_session_t,
        aad: Bytes,
        message: Bytes,
        out: Buffer,
        number: OutOrNull<u64>,
    ) -> Outcome {
        out.room(message.len().saturating_sub(MESSAGE_OVERHEAD))?;
        SESSIONS.with(session, |entry| {
            let opened = entry.session.open(aad, message, &mut entry.scratch)?;
            entry.write(out, number, opened, entry.scratch.len())
        })
    }

    /// Seals `count` texts with the same `aad` and writes the messages to `out` one after the
    /// other, each `WRAITH_SESSION_OVERHEAD` bytes longer than its text. All are sealed, or none:
    /// `failed`, which may be NULL, gets the index of the first that cannot be.
    pub fn wraith_session_seal_many(
        session: wraith_session_t,
        aad: Bytes,
        texts: Messages,
        out: Buffer,
        failed: OutOrNull<usize>,
    ) -> Outcome {
        let total = |sum: usize, text: &&[u8]| sum.saturating_add(Session::sealed_len(text.len()));
        out.room(texts.iter().fold(0, total))?;
        SESSIONS.with(session, |entry| {
            let sealed = entry.session.seal_many(aad, &texts);
            let sealed = sealed.inspect_err(|error| write_index(failed.as_ref(), error.index))?;
            out.write(&sealed.iter().collect::<Vec<_>>().concat())
        })
    }

    /// Opens `count` messages with the same `aad`, each independently. `results`, an array of
    /// `count`, gets the result of each message and the position of its text in `out`. Needs room
    /// for all messages less `WRAITH_SESSION_OVERHEAD` bytes each.
    ///
    /// Of two equal messages, the first is opened. The call returns `WRAITH_OK` even if some
    /// messages fail.
    pub fn wraith_session_open_many(
        session: wraith_session_t,
        aad: Bytes,
        messages: Messages,
        out: Buffer,
        call: &Call,
        results: *mut wraith_opened_t,
    ) -> Outcome {
        let results = call.out_array(results, messages.len())?;
        let most = opened_bytes(&messages, MESSAGE_OVERHEAD);
        out.room(most)?;
        SESSIONS.with(session, |entry| {
            write_opened(&entry.session.open_many(aad, &messages)?, most, &results, out)
        })
    }

    /// Sets the current time in milliseconds, from any fixed starting point. Keys then change every
    /// ten minutes. Without it, they change only by the number of messages and bytes.
    pub fn wraith_session_set_time(session: wraith_session_t, now_ms: u64) -> Outcome {
        SESSIONS.with(session, |entry| {
            entry.session.set_time(Duration::from_millis(now_ms));
            Ok(())
        })
    }

    /// Serializes the session; the bytes are as secret as the session. Needs room for
    /// `WRAITH_SESSION_SAVED_MAX`.
    ///
    /// After the first save, the session seals at most 512 further messages until
    /// `wraith_session_stored` confirms that a restore will find these bytes. Beyond that,
    /// `wraith_session_seal` returns `WRAITH_INVALID_STATE`. A session in a vault needs none of
    /// this.
    pub fn wraith_session_save(session: wraith_session_t, out: Buffer) -> Outcome {
        out.room(WRAITH_SESSION_SAVED_MAX)?;
        SESSIONS.with(session, |entry| {
            let saved = entry.in_memory()?.save();
            out.write(saved.bytes())?;
            entry.saved = Some(saved);
            Ok(())
        })
    }

    /// Confirms that the bytes of the last save are stored, and nothing older.
    /// `WRAITH_INVALID_STATE` if there was no save since the last confirmation.
    pub fn wraith_session_stored(session: wraith_session_t) -> Outcome {
        SESSIONS.with(session, |entry| {
            let nothing = || Failure::new(WRAITH_INVALID_STATE, "nothing was saved since");
            let saved = entry.saved.take().ok_or_else(nothing)?;
            entry.in_memory()?.confirm(&saved);
            Ok(())
        })
    }

    /// Restores a session from saved bytes. It seals nothing before it is saved and stored anew.
    /// `WRAITH_UNAUTHENTIC` if the bytes are damaged or of an unknown version.
    pub fn wraith_session_restore(saved: Bytes) -> Outcome<wraith_session_t> {
        insert(Session::restore(saved)?)
    }

    /// Frees the session and wipes its keys.
    pub fn wraith_session_free(session: wraith_session_t) -> Outcome {
        SESSIONS.free(session)
    }
);
