//! Sessions: messages over a transport that may lose, duplicate and reorder them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use wraith::session as inner;
use wraith::session::StoreError;
use zeroize::Zeroizing;

use crate::error::WraithError;
use crate::vault::{ForeignVault, KeyVault, lock};

/// Both directions of a session, in memory or kept in a vault ([`Session::keep`]). A message is its
/// number (8 bytes, little-endian), the ciphertext and a tag of 16 bytes. Thread-safe.
///
/// In a vault, each state change is stored before its effect becomes visible. If the vault fails,
/// the state is unchanged, and the call can be repeated. A vault implementation must not use the
/// session that is being stored: each call then throws [`WraithError::WrongState`].
#[derive(Debug, uniffi::Object)]
pub struct Session(Mutex<inner::Session>);

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

impl From<&WraithError> for Rejection {
    fn from(error: &WraithError) -> Self {
        match error {
            WraithError::Replayed(_) => Self::Replayed,
            WraithError::TooOld(_) => Self::TooOld,
            WraithError::Protocol(_) => Self::Protocol,
            _ => Self::Unauthentic,
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
        Ok(Self::new(inner::Session::restore(&saved)?))
    }

    /// Loads the session of this name from a vault. If two processes share the vault and load the
    /// same session, one of them fails.
    ///
    /// # Errors
    /// - [`WraithError::NotFound`]: there is no such record.
    /// - [`WraithError::Conflict`]: the record was rolled back, and the vault can detect that.
    /// - [`WraithError::Unauthentic`]: the record is damaged.
    /// - [`WraithError::InvalidInput`]: the record holds something else.
    /// - [`WraithError::Vault`]: the vault failed.
    #[uniffi::constructor]
    pub fn load(vault: Arc<dyn KeyVault>, name: String) -> Result<Arc<Self>, WraithError> {
        Ok(Self::new(inner::Session::load(ForeignVault::of(vault), &name)?))
    }

    /// Keeps this session in the vault from now on, under an unused name of 1 to 64
    /// characters (a-z, A-Z, 0-9, `-`, `_`).
    ///
    /// After an error the session is in memory, and the call can be repeated. After
    /// [`WraithError::Vault`] the vault may have stored the record all the same. Retry with the
    /// same name: [`WraithError::Conflict`] then means that it was stored, and [`Session::load`]
    /// continues it. Do not retry with another name, because that would reuse the record's numbers.
    /// Until then the session seals nothing before it is saved and confirmed.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] for an invalid name; [`WraithError::Conflict`] if a record of
    /// this name exists; [`WraithError::WrongState`] if the session is in a vault;
    /// [`WraithError::Vault`].
    pub fn keep(&self, vault: Arc<dyn KeyVault>, name: String) -> Result<(), WraithError> {
        Ok(self.lock()?.keep(ForeignVault::of(vault), &name)?)
    }

    /// Seals `text` and returns the message. `aad` is not sent, and must be equal when the message
    /// is opened. A vault is written once every few hundred messages.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if an argument is too long; [`WraithError::WrongState`] if the
    /// session must be saved first; [`WraithError::Exhausted`] if a new handshake is needed;
    /// [`WraithError::Vault`]. No number was used.
    pub fn seal(&self, aad: Vec<u8>, text: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let mut message = Vec::new();
        self.lock()?.seal(&aad, &text, &mut message)?;
        Ok(message)
    }

    /// Opens a message and returns its text. The first eight bytes of the message are its number,
    /// which is then authenticated. A vault is written before this returns.
    ///
    /// # Errors [`WraithError::Unauthentic`], also if the message is so far ahead that a new
    /// handshake is needed; [`WraithError::Replayed`]; [`WraithError::TooOld`];
    /// [`WraithError::Vault`]. The state is unchanged.
    pub fn open(&self, aad: Vec<u8>, message: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let mut text = Vec::new();
        self.lock()?.open(&aad, &message, &mut text)?;
        Ok(text)
    }

    /// Seals all texts in order, with the same associated data.
    ///
    /// # Errors
    /// As [`Session::seal`]; names the first message that cannot be sealed. No message is sealed
    /// then.
    pub fn seal_many(
        &self,
        aad: Vec<u8>,
        texts: Vec<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>, WraithError> {
        let sealed = self.lock()?.seal_many(&aad, &slices(&texts))?;
        Ok(sealed.iter().map(<[u8]>::to_vec).collect())
    }

    /// Opens all messages, with the same associated data. Returns a result for each. A vault is
    /// written once, before this returns.
    ///
    /// # Errors
    /// [`WraithError::Vault`]: the state is unchanged, and no message was opened.
    pub fn open_many(
        &self,
        aad: Vec<u8>,
        messages: Vec<Vec<u8>>,
    ) -> Result<Vec<Opened>, WraithError> {
        Ok(opened_each(&self.lock()?.open_many(&aad, &slices(&messages))?))
    }

    /// Sets the current time, counted from any moment that stays fixed for the session. Without it
    /// keys change only by messages and bytes.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if called from within a vault operation of this session.
    pub fn set_time(&self, now: Duration) -> Result<(), WraithError> {
        self.lock()?.set_time(now);
        Ok(())
    }

    /// Returns the current state, for a caller without a vault. Store [`SavedSession::bytes`], then
    /// call [`Session::confirm`]. After the first save, a session seals only as many messages as
    /// the confirmed states reserve. So a restored session never reuses a number.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the session is in a vault.
    pub fn save(&self) -> Result<Arc<SavedSession>, WraithError> {
        let mut session = self.lock()?;
        not_kept(session.is_kept())?;
        Ok(Arc::new(SavedSession(session.save())))
    }

    /// Confirms that a saved state is stored, and that a later restore finds nothing older.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the session is in a vault.
    pub fn confirm(&self, saved: &SavedSession) -> Result<(), WraithError> {
        let mut session = self.lock()?;
        not_kept(session.is_kept())?;
        session.confirm(&saved.0);
        Ok(())
    }

    /// Stores the session in its vault now and reserves further numbers. Without a vault, does
    /// nothing.
    ///
    /// # Errors
    /// [`WraithError::Vault`], [`WraithError::Conflict`].
    pub fn store(&self) -> Result<(), WraithError> {
        Ok(self.lock()?.store()?)
    }
}

impl Session {
    pub(crate) fn new(session: inner::Session) -> Arc<Self> {
        Arc::new(Self(Mutex::new(session)))
    }

    fn lock(&self) -> Result<MutexGuard<'_, inner::Session>, WraithError> {
        lock(&self.0)
    }
}

/// Checks that the caller saves an object itself.
pub(crate) fn not_kept(is_kept: bool) -> Result<(), WraithError> {
    if is_kept { Err(StoreError::Kept.into()) } else { Ok(()) }
}

pub(crate) fn slices(messages: &[Vec<u8>]) -> Vec<&[u8]> {
    messages.iter().map(Vec::as_slice).collect()
}

/// Converts the result of each message.
pub(crate) fn opened_each<E: Clone + Into<WraithError>>(
    opened: &inner::OpenedBatch<E>,
) -> Vec<Opened> {
    let each = opened.iter().map(|each| match each {
        Ok((number, text)) => Opened::Text { number, text: text.to_vec() },
        Err(why) => {
            let error = why.into();
            Opened::Rejected { kind: (&error).into(), why: error.to_string() }
        }
    });
    each.collect()
}

/// A saved state of a session. It is as secret as the session.
#[derive(uniffi::Object)]
pub struct SavedSession(inner::SavedSession);

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
