//! Sessions: encrypted messages over a transport that may lose, repeat and reorder them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use wraith_session::vault::KeyVault;
use wraith_session::{
    Batch, BatchError, MESSAGE_OVERHEAD, OpenError, OpenedBatch, SavedSession, SealError, Session,
    StateError, StoreError, StoredSession,
};
use zeroize::Zeroize;

use crate::border::{Plain, entry};
use crate::bytes::wraith_bytes_t;
use crate::status::wraith_status_t::*;
use crate::status::{Failure, Outcome, wraith_status_t};
use crate::table::{Kind, Table};

/// Overhead of a message over its text, in bytes.
pub const WRAITH_SESSION_OVERHEAD: usize = 24;
const _: () = assert!(WRAITH_SESSION_OVERHEAD == MESSAGE_OVERHEAD);
/// Buffer size for a saved session, in bytes.
pub const WRAITH_SESSION_SAVED_MAX: usize = 704;
/// Maximum number of messages of one call.
pub const WRAITH_BATCH_MAX: usize = 65536;
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

static SESSIONS: Table<Mutex<SessionEntry>> = Table::new(Kind::Session);

/// A session and the state of its handle.
struct SessionEntry {
    session: SessionBacking,
    /// The last saved state, until it is confirmed as stored.
    saved: Option<SavedSession>,
    /// Empty between calls.
    scratch: Vec<u8>,
}

/// Where a session is kept.
enum SessionBacking {
    Memory(Session),
    Vault(StoredSession),
}

impl SessionBacking {
    fn seal(&mut self, aad: &[u8], text: &[u8], out: &mut Vec<u8>) -> Outcome<u64> {
        match self {
            Self::Memory(session) => Ok(session.seal(aad, text, out)?),
            Self::Vault(session) => Ok(session.seal(aad, text, out)?),
        }
    }

    fn open(&mut self, aad: &[u8], message: &[u8], out: &mut Vec<u8>) -> Outcome<u64> {
        match self {
            Self::Memory(session) => Ok(session.open(aad, message, out)?),
            Self::Vault(session) => Ok(session.open(aad, message, out)?),
        }
    }

    fn seal_many(&mut self, aad: &[u8], texts: &[&[u8]]) -> Result<Batch, StoreError> {
        match self {
            Self::Memory(session) => Ok(session.seal_many(aad, texts)?),
            Self::Vault(session) => session.seal_many(aad, texts),
        }
    }

    fn open_many(&mut self, aad: &[u8], messages: &[&[u8]]) -> Outcome<OpenedBatch> {
        match self {
            Self::Memory(session) => Ok(session.open_many(aad, messages)),
            Self::Vault(session) => Ok(session.open_many(aad, messages)?),
        }
    }

    /// Returns the session if the caller saves it.
    fn in_memory(&mut self) -> Outcome<&mut Session> {
        match self {
            Self::Memory(session) => Ok(session),
            Self::Vault(_) => {
                Err(Failure::new(WRAITH_INVALID_STATE, "this session is kept in a vault"))
            }
        }
    }
}

impl SessionEntry {
    fn new(session: SessionBacking) -> Mutex<Self> {
        Mutex::new(Self { session, saved: None, scratch: Vec::new() })
    }

    /// Wipes the first `text` bytes of the scratch buffer, and empties it.
    fn wipe(&mut self, text: usize) {
        self.scratch[..text].zeroize();
        self.scratch.clear();
        self.scratch.shrink_to(SCRATCH_MAX);
    }
}

pub(super) fn insert(session: Session) -> Outcome<wraith_session_t> {
    SESSIONS.insert(SessionEntry::new(SessionBacking::Memory(session)))
}

pub(super) fn insert_stored(session: StoredSession) -> Outcome<wraith_session_t> {
    SESSIONS.insert(SessionEntry::new(SessionBacking::Vault(session)))
}

/// Puts a session into a vault. If that fails, the session stays in memory and must be saved within
/// the next messages.
pub(super) fn move_to_vault(
    handle: wraith_session_t,
    vault: Arc<dyn KeyVault>,
    name: &str,
) -> Outcome {
    SESSIONS.with(handle, |entry| {
        // A copy whose numbers start after all that this session may still use.
        let copy = Session::restore(entry.session.in_memory()?.save().bytes())?;
        entry.session = SessionBacking::Vault(
            StoredSession::create(vault, name, copy).map_err(|(why, _)| why)?,
        );
        entry.saved = None;
        Ok(())
    })
}

impl From<SealError> for Failure {
    fn from(error: SealError) -> Self {
        let status = match error {
            SealError::Length | SealError::Room(_) => WRAITH_INVALID_INPUT,
            SealError::NotSaved => WRAITH_INVALID_STATE,
            SealError::Exhausted => WRAITH_EXHAUSTED,
        };
        Self::new(status, error.to_string())
    }
}

fn of_open(error: OpenError) -> wraith_status_t {
    match error {
        OpenError::Length | OpenError::Unauthentic | OpenError::TooFarAhead => WRAITH_UNAUTHENTIC,
        OpenError::Replayed => WRAITH_REPLAYED,
        OpenError::TooOld => WRAITH_TOO_OLD,
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::new(of_open(error), error.to_string())
    }
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        Self::new(WRAITH_UNAUTHENTIC, error.to_string())
    }
}

/// Seals `text`. The message is `text_len + WRAITH_SESSION_OVERHEAD` bytes. `aad` is not sent;
/// opening needs the same `aad`. `number`, which may be NULL, gets the message number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_session_seal(
    session: wraith_session_t,
    aad: *const u8,
    aad_len: usize,
    text: *const u8,
    text_len: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
    number: *mut u64,
) -> wraith_status_t {
    entry!(|call| {
        let (aad, text) = (call.bytes(aad, aad_len)?, call.bytes(text, text_len)?);
        let (output, out) = (call.output(out, out_cap, out_len)?, call.out_or_null(number)?);
        output.room(Session::sealed_len(text.len()))?;
        SESSIONS.with(session, |entry| {
            let number = entry.session.seal(aad, text, &mut entry.scratch)?;
            output.write(&entry.scratch)?;
            if let Some(out) = out {
                out.write(number);
            }
            entry.wipe(0);
            Ok(())
        })
    })
}

/// Opens `message`. Its text is `message_len - WRAITH_SESSION_OVERHEAD` bytes. `WRAITH_UNAUTHENTIC`
/// if the other side did not seal it. `WRAITH_REPLAYED` if it was opened before, `WRAITH_TOO_OLD` if
/// it is older than the last 2048. `number` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_session_open(
    session: wraith_session_t,
    aad: *const u8,
    aad_len: usize,
    message: *const u8,
    message_len: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
    number: *mut u64,
) -> wraith_status_t {
    entry!(|call| {
        let (aad, message) = (call.bytes(aad, aad_len)?, call.bytes(message, message_len)?);
        let (output, out) = (call.output(out, out_cap, out_len)?, call.out_or_null(number)?);
        output.room(message.len().saturating_sub(MESSAGE_OVERHEAD))?;
        SESSIONS.with(session, |entry| {
            let number = entry.session.open(aad, message, &mut entry.scratch)?;
            output.write(&entry.scratch)?;
            if let Some(out) = out {
                out.write(number);
            }
            entry.wipe(entry.scratch.len());
            Ok(())
        })
    })
}

/// Seals `count` texts with the same `aad` and writes the messages to `out` one after the other,
/// each `WRAITH_SESSION_OVERHEAD` bytes longer than its text. All are sealed, or none: `failed`,
/// which may be NULL, gets the index of the first that cannot be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_session_seal_many(
    session: wraith_session_t,
    aad: *const u8,
    aad_len: usize,
    texts: *const wraith_bytes_t,
    count: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
    failed: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let aad = call.bytes(aad, aad_len)?;
        let (output, failed) = (call.output(out, out_cap, out_len)?, call.out_or_null(failed)?);
        let texts = call.slices(texts, bounded(count)?)?;
        let total = |sum: usize, text: &&[u8]| sum.saturating_add(Session::sealed_len(text.len()));
        output.room(texts.iter().fold(0, total))?;
        SESSIONS.with(session, |entry| {
            let sealed = entry.session.seal_many(aad, &texts).map_err(|error| {
                if let (Some(failed), StoreError::Batch(BatchError { index, .. })) =
                    (failed, &error)
                {
                    failed.write(*index);
                }
                Failure::from(error)
            })?;
            output.write(&sealed.iter().collect::<Vec<_>>().concat())
        })
    })
}

/// Opens `count` messages with the same `aad`, each independently. `results`, an array of `count`,
/// gets the result of each message and the position of its text in `out`. Needs room for all
/// messages less `WRAITH_SESSION_OVERHEAD` bytes each.
///
/// Of two equal messages, the first is opened. The call returns `WRAITH_OK` even if some messages
/// fail.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_session_open_many(
    session: wraith_session_t,
    aad: *const u8,
    aad_len: usize,
    messages: *const wraith_bytes_t,
    count: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
    results: *mut wraith_opened_t,
) -> wraith_status_t {
    entry!(|call| {
        let (aad, output) = (call.bytes(aad, aad_len)?, call.output(out, out_cap, out_len)?);
        let messages = call.slices(messages, bounded(count)?)?;
        let results = call.out_array(results, count)?;
        let text_len = |message: &&[u8]| message.len().saturating_sub(MESSAGE_OVERHEAD);
        output.room(messages.iter().map(text_len).fold(0, usize::saturating_add))?;
        SESSIONS.with(session, |entry| {
            let opened = entry.session.open_many(aad, &messages)?;
            let mut texts = zeroize::Zeroizing::new(Vec::new());
            for (out, result) in results.iter().zip(opened.iter()) {
                let offset = texts.len();
                out.write(match result {
                    Ok((number, text)) => {
                        texts.extend_from_slice(text);
                        wraith_opened_t { status: WRAITH_OK, number, offset, len: text.len() }
                    }
                    Err(why) => wraith_opened_t { status: of_open(why), number: 0, offset, len: 0 },
                });
            }
            output.write(&texts)
        })
    })
}

pub(super) fn bounded(count: usize) -> Outcome<usize> {
    match count <= WRAITH_BATCH_MAX {
        true => Ok(count),
        false => Err(Failure::input(format!("one call has at most {WRAITH_BATCH_MAX} messages"))),
    }
}

/// Sets the current time in milliseconds, from any fixed starting point. Keys then change every ten
/// minutes. Without it, they change only by the number of messages and bytes.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_session_set_time(
    session: wraith_session_t,
    now_ms: u64,
) -> wraith_status_t {
    entry!(|_call| {
        SESSIONS.with(session, |entry| {
            let now = Duration::from_millis(now_ms);
            match &mut entry.session {
                SessionBacking::Memory(session) => session.set_time(now),
                SessionBacking::Vault(session) => session.set_time(now),
            }
            Ok(())
        })
    })
}

/// Serializes the session; the bytes are as secret as the session. Needs room for
/// `WRAITH_SESSION_SAVED_MAX`.
///
/// After the first save, the session seals at most 512 further messages until
/// `wraith_session_stored` confirms that a restore will find these bytes. Beyond that,
/// `wraith_session_seal` returns `WRAITH_INVALID_STATE`. A session in a vault needs none of this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_session_save(
    session: wraith_session_t,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let output = call.output(out, out_cap, out_len)?;
        output.room(WRAITH_SESSION_SAVED_MAX)?;
        SESSIONS.with(session, |entry| {
            let saved = entry.session.in_memory()?.save();
            output.write(saved.bytes())?;
            entry.saved = Some(saved);
            Ok(())
        })
    })
}

/// Confirms that the bytes of the last save are stored, and nothing older. `WRAITH_INVALID_STATE`
/// if there was no save since the last confirmation.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_session_stored(session: wraith_session_t) -> wraith_status_t {
    entry!(|_call| {
        SESSIONS.with(session, |entry| {
            let saved = entry.saved.take();
            let saved = saved
                .ok_or_else(|| Failure::new(WRAITH_INVALID_STATE, "nothing was saved since"))?;
            entry.session.in_memory()?.confirm(&saved);
            Ok(())
        })
    })
}

/// Restores a session from saved bytes. It seals nothing before it is saved and stored anew.
/// `WRAITH_UNAUTHENTIC` if the bytes are damaged or of an unknown version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_session_restore(
    saved: *const u8,
    saved_len: usize,
    out: *mut wraith_session_t,
) -> wraith_status_t {
    entry!(|call| {
        let (saved, out) = (call.bytes(saved, saved_len)?, call.out(out)?);
        out.write(insert(Session::restore(saved)?)?);
        Ok(())
    })
}

/// Frees the session and wipes its keys.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_session_free(session: wraith_session_t) -> wraith_status_t {
    entry!(|_call| SESSIONS.remove(session).map(drop))
}
