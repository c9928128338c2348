//! Sessions that survive their process: a vault holds each state change before its effect becomes
//! visible.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use wraith::session::StoreError;
use wraith::session::vault::VaultError;

use crate::error::WraithError;
use crate::session::{Opened, Session, opened_each};
use crate::vault::{ForeignVault, KeyVault, lock};

/// A session that is kept in a vault. If the vault fails, the state is unchanged, and the call can
/// be repeated. Thread-safe. A vault implementation must not use the session that is being stored:
/// such a call throws [`WraithError::WrongState`].
#[derive(Debug, uniffi::Object)]
pub struct StoredSession(Mutex<wraith::session::StoredSession>);

#[uniffi::export]
impl StoredSession {
    /// Moves `session` into the vault, under an unused name: 1 to 64 of a-z, A-Z, 0-9, - and _.
    ///
    /// After an error `session` keeps its state, and the call can be repeated. After
    /// [`WraithError::Vault`] the vault may have stored the record all the same. Retry with the
    /// same name: [`WraithError::Conflict`] then means that it was stored, and
    /// [`StoredSession::load`] continues it. Do not retry with another name, because that would
    /// reuse the record's numbers. On its own `session` seals nothing before it is saved and
    /// confirmed.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] for an invalid name; [`WraithError::Conflict`] if a record of
    /// this name exists; [`WraithError::WrongState`] if the session was already moved into a vault;
    /// [`WraithError::Vault`].
    #[uniffi::constructor]
    pub fn create(
        vault: Arc<dyn KeyVault>,
        name: String,
        session: &Session,
    ) -> Result<Arc<Self>, WraithError> {
        let vault = Arc::new(ForeignVault(vault));
        match wraith::session::StoredSession::create(vault, &name, session.take()?) {
            Ok(stored) => Ok(Arc::new(Self(Mutex::new(stored)))),
            Err((why, back)) => {
                session.put_back(*back);
                Err(why.into())
            }
        }
    }

    /// Loads the session of this name. If two processes share the vault and load the same session,
    /// one of them fails.
    ///
    /// # Errors
    /// - [`WraithError::NotFound`]: there is no such record.
    /// - [`WraithError::Conflict`]: the record was rolled back, and the vault can detect that.
    /// - [`WraithError::Unauthentic`]: the record is damaged.
    /// - [`WraithError::InvalidInput`]: the record holds something else.
    /// - [`WraithError::Vault`]: the vault failed.
    #[uniffi::constructor]
    pub fn load(vault: Arc<dyn KeyVault>, name: String) -> Result<Arc<Self>, WraithError> {
        let stored = wraith::session::StoredSession::load(Arc::new(ForeignVault(vault)), &name)?;
        Ok(Arc::new(Self(Mutex::new(stored))))
    }

    /// As [`Session::seal`]. The vault is written once every few hundred messages.
    ///
    /// # Errors
    /// As [`Session::seal`], and [`WraithError::Vault`]: no number was used.
    pub fn seal(&self, aad: Vec<u8>, text: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let mut message = Vec::new();
        self.lock()?.seal(&aad, &text, &mut message)?;
        Ok(message)
    }

    /// As [`Session::open`]. The vault is written before this returns.
    ///
    /// # Errors
    /// As [`Session::open`], and [`WraithError::Vault`]: the state is unchanged.
    pub fn open(&self, aad: Vec<u8>, message: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let mut text = Vec::new();
        self.lock()?.open(&aad, &message, &mut text)?;
        Ok(text)
    }

    /// As [`Session::seal_many`].
    ///
    /// # Errors
    /// As [`Session::seal_many`], and [`WraithError::Vault`]: no number was used.
    pub fn seal_many(
        &self,
        aad: Vec<u8>,
        texts: Vec<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>, WraithError> {
        let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let sealed = self.lock()?.seal_many(&aad, &texts)?;
        Ok(sealed.iter().map(<[u8]>::to_vec).collect())
    }

    /// As [`Session::open_many`]. The vault is written once, before this returns.
    ///
    /// # Errors
    /// [`WraithError::Vault`]: the state is unchanged, and no message was opened.
    pub fn open_many(
        &self,
        aad: Vec<u8>,
        messages: Vec<Vec<u8>>,
    ) -> Result<Vec<Opened>, WraithError> {
        let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        Ok(opened_each(&self.lock()?.open_many(&aad, &messages)?))
    }

    /// As [`Session::set_time`].
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if called from within a vault operation of this session.
    pub fn set_time(&self, now: Duration) -> Result<(), WraithError> {
        self.lock()?.set_time(now);
        Ok(())
    }

    /// Stores the session now and reserves further numbers.
    ///
    /// # Errors
    /// [`WraithError::Vault`], [`WraithError::Conflict`].
    pub fn save(&self) -> Result<(), WraithError> {
        Ok(self.lock()?.save()?)
    }
}

impl StoredSession {
    fn lock(&self) -> Result<MutexGuard<'_, wraith::session::StoredSession>, WraithError> {
        lock(&self.0)
    }
}

impl From<StoreError> for WraithError {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::Name | StoreError::Kind => Self::InvalidInput(text),
            StoreError::Missing => Self::NotFound(text),
            StoreError::Exists
            | StoreError::RolledBack { .. }
            | StoreError::Vault(VaultError::Conflict) => Self::Conflict(text),
            StoreError::Vault(VaultError::Failed(_)) => Self::Vault(text),
            StoreError::Record(_) => Self::Unauthentic(text),
            StoreError::State(error) => error.into(),
            StoreError::Seal(error) => error.into(),
            StoreError::Batch(error) => error.into(),
            StoreError::Open(error) => error.into(),
            StoreError::Start(error) => error.into(),
            StoreError::Encrypt(error) => error.into(),
            StoreError::EncryptBatch(error) => error.why.into(),
            StoreError::Decrypt(error) => error.into(),
        }
    }
}
