//! Sessions: messages over a transport that may lose, duplicate and reorder them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use wraith::session::{BatchError, OpenError, OpenedBatch, SealError, StateError};
use zeroize::Zeroizing;

use crate::error::WraithError;
use crate::used_once::UsedOnce;

/// Both directions of a session. A message is its number (8 bytes, little-endian), the ciphertext
/// and a tag of 16 bytes. Thread-safe.
#[derive(Debug, uniffi::Object)]
pub struct Session(UsedOnce<wraith::session::Session>);

/// Result of one message of a batch.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum Opened {
    /// The message is authentic and new.
    Text {
        /// Number of the message.
        number: u64,
        /// Its text.
        text: Vec<u8>,
    },
    /// The message was refused and changed nothing.
    Rejected {
        /// The reason, for programs.
        kind: Rejection,
        /// The reason, for people.
        why: String,
    },
}

/// Why a message of a batch was refused: the kind of [`WraithError`] that a single call would
/// throw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum Rejection {
    /// The message was forged or changed, or is so far ahead that a new handshake is needed.
    Unauthentic,
    /// The message was opened before.
    Replayed,
    /// The message is so late that it is no longer opened. It may have been opened before.
    TooOld,
    /// The peer violates the protocol.
    Protocol,
}

impl From<OpenError> for Rejection {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Replayed => Self::Replayed,
            OpenError::TooOld => Self::TooOld,
            OpenError::Length | OpenError::Unauthentic | OpenError::TooFarAhead => {
                Self::Unauthentic
            }
        }
    }
}

#[uniffi::export]
impl Session {
    /// Restores a session from saved bytes. It seals nothing before it is saved and confirmed
    /// again.
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`] if the bytes are damaged or of another version.
    #[uniffi::constructor]
    pub fn restore(saved: Vec<u8>) -> Result<Arc<Self>, WraithError> {
        let saved = Zeroizing::new(saved);
        Ok(Self::new(wraith::session::Session::restore(&saved)?))
    }

    /// Seals `text` and returns the message. `aad` is not sent, and must be equal when the message
    /// is opened.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if an argument is too long; [`WraithError::WrongState`] if the
    /// session must be saved first; [`WraithError::Exhausted`] if a new handshake is needed. No
    /// number was used.
    pub fn seal(&self, aad: Vec<u8>, text: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let mut message = Vec::new();
        self.0.with(|session| session.seal(&aad, &text, &mut message))??;
        Ok(message)
    }

    /// Opens a message and returns its text. The first eight bytes of the message are its number,
    /// which is then authenticated.
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`], also if the message is so far ahead that a new handshake is
    /// needed; [`WraithError::Replayed`]; [`WraithError::TooOld`]. The state is unchanged.
    pub fn open(&self, aad: Vec<u8>, message: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let mut text = Vec::new();
        self.0.with(|session| session.open(&aad, &message, &mut text))??;
        Ok(text)
    }

    /// Seals all texts in order, with the same associated data.
    ///
    /// # Errors
    /// Names the first message that cannot be sealed. No message is sealed then.
    pub fn seal_many(
        &self,
        aad: Vec<u8>,
        texts: Vec<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>, WraithError> {
        let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let sealed = self.0.with(|session| session.seal_many(&aad, &texts))??;
        Ok(sealed.iter().map(<[u8]>::to_vec).collect())
    }

    /// Opens all messages, with the same associated data. Returns a result for each.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the session was moved into a vault.
    pub fn open_many(
        &self,
        aad: Vec<u8>,
        messages: Vec<Vec<u8>>,
    ) -> Result<Vec<Opened>, WraithError> {
        let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let opened = self.0.with(|session| session.open_many(&aad, &messages))?;
        Ok(opened_each(&opened))
    }

    /// Sets the current time, counted from any moment that stays fixed for the session. Without it
    /// keys change only by messages and bytes.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the session was moved into a vault.
    pub fn set_time(&self, now: Duration) -> Result<(), WraithError> {
        self.0.with(|session| session.set_time(now))
    }

    /// Returns the current state. Store [`SavedSession::bytes`], then call [`Session::confirm`].
    /// After the first save, a session seals only as many messages as the confirmed states reserve.
    /// So a restored session never reuses a number.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the session was moved into a vault.
    pub fn save(&self) -> Result<Arc<SavedSession>, WraithError> {
        Ok(Arc::new(SavedSession(self.0.with(wraith::session::Session::save)?)))
    }

    /// Confirms that a saved state is stored, and that a later restore finds nothing older.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the session was moved into a vault.
    pub fn confirm(&self, saved: &SavedSession) -> Result<(), WraithError> {
        self.0.with(|session| session.confirm(&saved.0))
    }
}

impl Session {
    pub(crate) fn new(session: wraith::session::Session) -> Arc<Self> {
        Arc::new(Self(UsedOnce::new(session, "this session was moved into a vault")))
    }

    /// Takes the session out of this object.
    pub(crate) fn take(&self) -> Result<wraith::session::Session, WraithError> {
        self.0.take()
    }

    /// Returns a session to this object.
    pub(crate) fn put_back(&self, session: wraith::session::Session) {
        self.0.put_back(session);
    }
}

/// Converts the result of each message.
pub(crate) fn opened_each(opened: &OpenedBatch) -> Vec<Opened> {
    let each = opened.iter().map(|each| match each {
        Ok((number, text)) => Opened::Text { number, text: text.to_vec() },
        Err(why) => Opened::Rejected { kind: why.into(), why: why.to_string() },
    });
    each.collect()
}

/// A saved state of a session. It is as secret as the session.
#[derive(uniffi::Object)]
pub struct SavedSession(wraith::session::SavedSession);

#[uniffi::export]
impl SavedSession {
    /// Returns the bytes to store, for [`Session::restore`].
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
            Rejection::TooOld => Self::TooOld(error.to_string()),
            _ => Self::Unauthentic(error.to_string()),
        }
    }
}

impl From<StateError> for WraithError {
    fn from(error: StateError) -> Self {
        Self::Unauthentic(error.to_string())
    }
}
