//! Sessions that survive their process: what changes one is in a vault before anybody can see that it has changed.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use wraith::session::StoreError;
use wraith::session::vault::VaultError;

use crate::error::WraithError;
use crate::session::{Opened, Session, opened_each};
use crate::vault::{KeyVault, Theirs, hold};

/// A session that is kept in a vault. A vault that fails changes nothing, and the call can be made again. Threads take turns; a call
/// of the vault that uses it is refused with [`WraithError::WrongState`].
#[derive(Debug, uniffi::Object)]
pub struct StoredSession(Mutex<wraith::session::StoredSession>);

#[uniffi::export]
impl StoredSession {
    /// Keeps `session`, which is used up by that, under a name that is not in use: 1 to 64 of a-z, A-Z, 0-9, - and _.
    ///
    /// After an error the session is where it was, and this can be called again. A store that has failed ([`WraithError::Vault`]) may have
    /// kept the record all the same, so try the same name again: [`WraithError::Conflict`] then says that it did, and
    /// [`StoredSession::load`] goes on with it. Under another name, or by itself, the session would use the numbers of that record. By itself
    /// it seals nothing any more before it was saved and confirmed.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if it is no name; [`WraithError::Conflict`] if there is a record of this name;
    /// [`WraithError::WrongState`] if the session was put into a vault before; [`WraithError::Vault`].
    #[uniffi::constructor]
    pub fn create(
        vault: Arc<dyn KeyVault>,
        name: String,
        session: &Session,
    ) -> Result<Arc<Self>, WraithError> {
        let vault = Arc::new(Theirs(vault));
        match wraith::session::StoredSession::create(vault, &name, session.take()?) {
            Ok(stored) => Ok(Arc::new(Self(Mutex::new(stored)))),
            Err((why, back)) => {
                session.put_back(*back);
                Err(why.into())
            }
        }
    }

    /// Goes on with the session of this name. Of two that do, one fails as long as they share the vault.
    ///
    /// # Errors
    /// [`WraithError::NotFound`] if there is none; [`WraithError::Conflict`] if it was rolled back, where the vault can tell;
    /// [`WraithError::Unauthentic`] if it is damaged; [`WraithError::InvalidInput`] if it is of something else; [`WraithError::Vault`].
    #[uniffi::constructor]
    pub fn load(vault: Arc<dyn KeyVault>, name: String) -> Result<Arc<Self>, WraithError> {
        let stored = wraith::session::StoredSession::load(Arc::new(Theirs(vault)), &name)?;
        Ok(Arc::new(Self(Mutex::new(stored))))
    }

    /// As [`Session::seal`]. The vault is written once in a few hundred messages.
    ///
    /// # Errors
    /// As there, and [`WraithError::Vault`]: no number was used.
    pub fn seal(&self, aad: Vec<u8>, text: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let mut message = Vec::new();
        self.lock()?.seal(&aad, &text, &mut message)?;
        Ok(message)
    }

    /// As [`Session::open`]. The vault is written before this returns.
    ///
    /// # Errors
    /// As there, and [`WraithError::Vault`]: nothing has changed.
    pub fn open(&self, aad: Vec<u8>, message: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let mut text = Vec::new();
        self.lock()?.open(&aad, &message, &mut text)?;
        Ok(text)
    }

    /// As [`Session::seal_many`].
    ///
    /// # Errors
    /// As there, and [`WraithError::Vault`]: no number was used.
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
    /// [`WraithError::Vault`]: nothing has changed, and no message was opened.
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
    /// [`WraithError::WrongState`] in a call of the vault.
    pub fn set_time(&self, now: Duration) -> Result<(), WraithError> {
        self.lock()?.set_time(now);
        Ok(())
    }

    /// Stores the session now, with room for further numbers.
    ///
    /// # Errors
    /// [`WraithError::Vault`], [`WraithError::Conflict`].
    pub fn save(&self) -> Result<(), WraithError> {
        Ok(self.lock()?.save()?)
    }
}

impl StoredSession {
    fn lock(&self) -> Result<MutexGuard<'_, wraith::session::StoredSession>, WraithError> {
        hold(&self.0)
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
