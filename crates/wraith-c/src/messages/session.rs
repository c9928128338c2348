//! Sessions: encrypted messages over a transport that may lose, repeat and reorder them.

use std::sync::Mutex;
use std::time::Duration;

use wraith_session::{MESSAGE_OVERHEAD, SavedSession, Session, StoreError};
use zeroize::Zeroizing;

use super::batch::{opened_bytes, write_opened};
use crate::border::{Plain, export, write_wanted};
use crate::status::wraith_status_t::WRAITH_INVALID_STATE;
use crate::status::{Failure, Outcome, wraith_status_t};
use crate::table::{Kind, Table};

/// Overhead of a message over its text, in bytes.
pub const WRAITH_SESSION_OVERHEAD: usize = 24;
const _: () = assert!(WRAITH_SESSION_OVERHEAD == MESSAGE_OVERHEAD);
/// Buffer size for a saved session, in bytes.
pub const WRAITH_SESSION_SAVED_MAX: usize = 704;

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

pub(super) static wraith_session_t: Table<Mutex<SessionEntry>> = Table::new(Kind::Session);

/// A session and the state of its handle.
pub(super) struct SessionEntry {
    pub(super) session: Session,
    /// The last saved state, until it is confirmed as stored.
    saved: Option<SavedSession>,
}

impl SessionEntry {
    /// Returns the session if the caller saves it.
    fn in_memory(&mut self) -> Outcome<&mut Session> {
        not_kept(self.session.is_kept())?;
        Ok(&mut self.session)
    }
}

pub(super) fn insert(session: Session) -> Outcome<wraith_session_t> {
    wraith_session_t.add(SessionEntry { session, saved: None })
}

/// Checks that the caller saves an object itself.
pub(super) fn not_kept(is_kept: bool) -> Outcome {
    if is_kept { Err(StoreError::Kept.into()) } else { Ok(()) }
}

export!(
    /// Seals `text`. The message is `text_len + WRAITH_SESSION_OVERHEAD` bytes. `aad` is not sent;
    /// opening needs the same `aad`. `number`, which may be NULL, gets the message number.
    pub fn wraith_session_seal(
        session: Locked<wraith_session_t>,
        aad: Bytes,
        text: Bytes,
        out: Buffer,
        number: OutOrNull<u64>,
    ) -> Outcome {
        out.room(Session::sealed_len(text.len()))?;
        let mut message = Vec::new();
        let taken = session.session.seal(aad, text, &mut message)?;
        out.write(&message)?;
        write_wanted(number.as_ref(), taken);
        Ok(())
    }

    /// Opens `message`. Its text is `message_len - WRAITH_SESSION_OVERHEAD` bytes.
    /// `WRAITH_UNAUTHENTIC` if the other side did not seal it. `WRAITH_REPLAYED` if it was opened
    /// before, `WRAITH_TOO_OLD` if it is older than the last 2048. `number` may be NULL.
    pub fn wraith_session_open(
        session: Locked<wraith_session_t>,
        aad: Bytes,
        message: Bytes,
        out: Buffer,
        number: OutOrNull<u64>,
    ) -> Outcome {
        out.room(message.len().saturating_sub(MESSAGE_OVERHEAD))?;
        let mut text = Zeroizing::new(Vec::with_capacity(message.len()));
        let opened = session.session.open(aad, message, &mut text)?;
        out.write(&text)?;
        write_wanted(number.as_ref(), opened);
        Ok(())
    }

    /// Seals `count` texts with the same `aad` and writes the messages to `out` one after the
    /// other, each `WRAITH_SESSION_OVERHEAD` bytes longer than its text. All are sealed, or none:
    /// `failed`, which may be NULL, gets the index of the first that cannot be.
    pub fn wraith_session_seal_many(
        session: Locked<wraith_session_t>,
        aad: Bytes,
        texts: Messages,
        out: Buffer,
        failed: OutOrNull<usize>,
    ) -> Outcome {
        let total = |sum: usize, text: &&[u8]| sum.saturating_add(Session::sealed_len(text.len()));
        out.room(texts.iter().fold(0, total))?;
        let sealed = session.session.seal_many(aad, &texts);
        let sealed = sealed.inspect_err(|error| write_wanted(failed.as_ref(), error.index))?;
        out.write(&sealed.iter().collect::<Vec<_>>().concat())
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
        let session = wraith_session_t.hold(session)?;
        let mut session = session.lock()?;
        let batch = session.session.open_many(aad, &messages)?;
        write_opened(&batch, most, &results, out, |status, number, offset, len| wraith_opened_t {
            status,
            number,
            offset,
            len,
        })
    }

    /// Sets the current time in milliseconds, from any fixed starting point. Keys then change every
    /// ten minutes. Without it, they change only by the number of messages and bytes.
    pub fn wraith_session_set_time(session: Locked<wraith_session_t>, now_ms: u64) -> Outcome {
        session.session.set_time(Duration::from_millis(now_ms));
        Ok(())
    }

    /// Serializes the session; the bytes are as secret as the session. Needs room for
    /// `WRAITH_SESSION_SAVED_MAX`.
    ///
    /// After the first save, the session seals at most 512 further messages until
    /// `wraith_session_stored` confirms that a restore will find these bytes. Beyond that,
    /// `wraith_session_seal` returns `WRAITH_INVALID_STATE`. A session in a vault needs none of
    /// this.
    pub fn wraith_session_save(session: Locked<wraith_session_t>, out: Buffer) -> Outcome {
        out.room(WRAITH_SESSION_SAVED_MAX)?;
        let saved = session.in_memory()?.save();
        out.write(saved.bytes())?;
        session.saved = Some(saved);
        Ok(())
    }

    /// Confirms that the bytes of the last save are stored, and nothing older.
    /// `WRAITH_INVALID_STATE` if there was no save since the last confirmation.
    pub fn wraith_session_stored(session: Locked<wraith_session_t>) -> Outcome {
        let nothing = || Failure::new(WRAITH_INVALID_STATE, "nothing was saved since");
        let saved = session.saved.take().ok_or_else(nothing)?;
        session.in_memory()?.confirm(&saved);
        Ok(())
    }

    /// Restores a session from saved bytes. It seals nothing before it is saved and stored anew.
    /// `WRAITH_UNAUTHENTIC` if the bytes are damaged or of an unknown version.
    pub fn wraith_session_restore(saved: Bytes) -> Outcome<wraith_session_t> {
        insert(Session::restore(saved)?)
    }

    /// Frees the session and wipes its keys.
    pub fn wraith_session_free(session: wraith_session_t) -> Outcome {
        wraith_session_t.free(session)
    }
);
