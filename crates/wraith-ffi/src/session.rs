//! Sessions: messages that may be lost, repeated and reordered on the way.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use wraith::session::{BatchError, OpenError, OpenedBatch, Saved, SealError, StateError};
use zeroize::Zeroizing;

use crate::error::WraithError;
use crate::used_once::UsedOnce;

/// Both directions of a session. A message is its number (8 bytes, little-endian), the ciphertext and a tag of 16 bytes. Threads take
/// turns.
#[derive(Debug, uniffi::Object)]
pub struct Session(UsedOnce<wraith::session::Session>);

/// What became of one message of several.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum Opened {
    /// It is good.
    Text {
        /// Its number.
        number: u64,
        /// What was sealed.
        text: Vec<u8>,
    },
    /// It is not, and nothing has changed by it.
    Rejected {
        /// Why, for programs.
        kind: Rejection,
        /// Why, for people.
        why: String,
    },
}

/// Why a message of several was not opened: the kinds of [`WraithError`] that one alone ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum Rejection {
    /// It was made by somebody else, or changed since, or is so far ahead that a new handshake is needed.
    Unauthentic,
    /// It was opened before, or is too old to tell.
    Replayed,
    /// Too many messages are missing in front of it.
    Exhausted,
    /// The other side breaks the protocol.
    Protocol,
}

impl From<OpenError> for Rejection {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Replayed | OpenError::TooOld => Self::Replayed,
            OpenError::Length | OpenError::Unauthentic | OpenError::TooFarAhead => {
                Self::Unauthentic
            }
        }
    }
}

#[uniffi::export]
impl Session {
    /// The session that was saved as these bytes. It seals nothing before it is saved and confirmed again.
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`] if they are damaged or of another version.
    #[uniffi::constructor]
    pub fn restore(saved: Vec<u8>) -> Result<Arc<Self>, WraithError> {
        let saved = Zeroizing::new(saved);
        Ok(Self::new(wraith::session::Session::restore(&saved)?))
    }

    /// Seals `text`. `aad` is not sent, and must be the same when the message is opened.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if something is too long; [`WraithError::WrongState`] if the session must be saved first;
    /// [`WraithError::Exhausted`] if it must be made anew. No number was used.
    pub fn seal(&self, aad: Vec<u8>, text: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let mut message = Vec::new();
        self.0.with(|session| session.seal(&aad, &text, &mut message))??;
        Ok(message)
    }

    /// Opens a message. Its number is its first eight bytes, which are proved by that.
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`], also if it is so far ahead that a new handshake is needed; [`WraithError::Replayed`]. Nothing has changed.
    pub fn open(&self, aad: Vec<u8>, message: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let mut text = Vec::new();
        self.0.with(|session| session.open(&aad, &message, &mut text))??;
        Ok(text)
    }

    /// Seals every text, with the same associated data, in this order: one call for many messages.
    ///
    /// # Errors
    /// Names the first message that cannot be sealed. None is sealed then.
    pub fn seal_many(
        &self,
        aad: Vec<u8>,
        texts: Vec<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>, WraithError> {
        let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let sealed = self.0.with(|session| session.seal_many(&aad, &texts))??;
        Ok(sealed.iter().map(<[u8]>::to_vec).collect())
    }

    /// Opens every message, with the same associated data; each is judged by itself.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the session was put into a vault.
    pub fn open_many(
        &self,
        aad: Vec<u8>,
        messages: Vec<Vec<u8>>,
    ) -> Result<Vec<Opened>, WraithError> {
        let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let opened = self.0.with(|session| session.open_many(&aad, &messages))?;
        Ok(opened_each(&opened))
    }

    /// Tells the time, from any beginning that stays the same while the session lives. Without that keys change by messages and bytes
    /// only.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the session was put into a vault.
    pub fn set_time(&self, now: Duration) -> Result<(), WraithError> {
        self.0.with(|session| session.set_time(now))
    }

    /// The session as it is now. Store [`SavedSession::bytes`], then [`Session::confirm`] it: from the first save on a session seals only as many
    /// messages as confirmed states reserve, so that one that is restored uses no number again.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the session was put into a vault.
    pub fn save(&self) -> Result<Arc<SavedSession>, WraithError> {
        Ok(Arc::new(SavedSession(self.0.with(wraith::session::Session::save)?)))
    }

    /// Says that a saved state is where a later restore will find it, and nothing older.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the session was put into a vault.
    pub fn confirm(&self, saved: &SavedSession) -> Result<(), WraithError> {
        self.0.with(|session| session.confirm(&saved.0))
    }
}

impl Session {
    pub(crate) fn new(session: wraith::session::Session) -> Arc<Self> {
        Arc::new(Self(UsedOnce::new(session, "this session was put into a vault")))
    }

    /// The session, which this object has no more.
    pub(crate) fn take(&self) -> Result<wraith::session::Session, WraithError> {
        self.0.take()
    }

    /// Gives back what was taken.
    pub(crate) fn put_back(&self, session: wraith::session::Session) {
        self.0.put_back(session);
    }
}

/// What became of each message.
pub(crate) fn opened_each(opened: &OpenedBatch) -> Vec<Opened> {
    let each = opened.iter().map(|each| match each {
        Ok((number, text)) => Opened::Text { number, text: text.to_vec() },
        Err(why) => Opened::Rejected { kind: why.into(), why: why.to_string() },
    });
    each.collect()
}

/// A session as it was when it was saved: as secret as the session.
#[derive(uniffi::Object)]
pub struct SavedSession(Saved);

#[uniffi::export]
impl SavedSession {
    /// What to store, and to give to [`Session::restore`].
    pub fn bytes(&self) -> Vec<u8> {
        self.0.bytes().to_vec()
    }
}

impl fmt::Debug for SavedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedSession").finish_non_exhaustive()
    }
}

impl From<SealError> for WraithError {
    fn from(error: SealError) -> Self {
        match error {
            SealError::Length | SealError::Room(_) => Self::InvalidInput(error.to_string()),
            SealError::NotSaved => Self::WrongState(error.to_string()),
            SealError::Exhausted => Self::Exhausted(error.to_string()),
        }
    }
}

impl From<BatchError> for WraithError {
    fn from(error: BatchError) -> Self {
        let text = error.to_string();
        match Self::from(error.why) {
            Self::InvalidInput(_) => Self::InvalidInput(text),
            Self::Exhausted(_) => Self::Exhausted(text),
            _ => Self::WrongState(text),
        }
    }
}

impl From<OpenError> for WraithError {
    fn from(error: OpenError) -> Self {
        match Rejection::from(error) {
            Rejection::Replayed => Self::Replayed(error.to_string()),
            _ => Self::Unauthentic(error.to_string()),
        }
    }
}

impl From<StateError> for WraithError {
    fn from(error: StateError) -> Self {
        Self::Unauthentic(error.to_string())
    }
}
