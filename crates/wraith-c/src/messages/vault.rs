//! Where sessions are kept, so that they survive their process.

use std::sync::Arc;

use wraith::FileVault;
use wraith_session::vault::{KeyVault, VaultError};
use wraith_session::{StoreError, StoredSession};

use super::session::{self, wraith_session_t};
use crate::border::{CallersVault, entry, wraith_vault_callbacks_t};
use crate::files::node::path;
use crate::status::wraith_status_t::*;
use crate::status::{Failure, Outcome, wraith_status_t};
use crate::table::{Kind, Table};

/// A vault.
pub type wraith_vault_t = u64;

static VAULTS: Table<Arc<dyn KeyVault>> = Table::new(Kind::Vault);

fn vault(handle: wraith_vault_t) -> Outcome<Arc<dyn KeyVault>> {
    VAULTS.get(handle).map(|vault| vault.as_ref().clone())
}

impl From<VaultError> for Failure {
    fn from(error: VaultError) -> Self {
        let status = match error {
            VaultError::Conflict => WRAITH_CONFLICT,
            VaultError::Failed(_) => WRAITH_VAULT_FAILED,
        };
        Self::new(status, error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let status = match &error {
            StoreError::Name | StoreError::Kind => WRAITH_INVALID_INPUT,
            StoreError::Exists | StoreError::RolledBack { .. } => WRAITH_CONFLICT,
            StoreError::Missing => WRAITH_NOT_FOUND,
            StoreError::Record(_) | StoreError::State(_) => WRAITH_UNAUTHENTIC,
            StoreError::Vault(error) => return error.clone().into(),
            StoreError::Seal(error) => return (*error).into(),
            StoreError::Batch(error) => return error.why.into(),
            StoreError::Open(error) => return (*error).into(),
            StoreError::Start(error) => return (*error).into(),
            StoreError::Encrypt(error) => return (*error).into(),
            StoreError::EncryptBatch(error) => return error.why.into(),
            StoreError::Decrypt(error) => return (*error).into(),
        };
        Self::new(status, error.to_string())
    }
}

/// The vault that is a folder, which is made where it is missing. Its records are not encrypted beside what the disk is. One
/// process at a time has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_vault_folder(
    folder: *const u8,
    folder_len: usize,
    out: *mut wraith_vault_t,
) -> wraith_status_t {
    entry!(|call| {
        let (folder, place) = (path(call.bytes(folder, folder_len)?)?, call.place(out)?);
        place.put(VAULTS.insert(Arc::new(FileVault::open(folder)?))?);
        Ok(())
    })
}

/// A vault of your own. `store`, `load` and `remove` have to be there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_vault_new(
    callbacks: *const wraith_vault_callbacks_t,
    out: *mut wraith_vault_t,
) -> wraith_status_t {
    entry!(|call| {
        let (callbacks, place) = (call.options(callbacks)?, call.place(out)?);
        let vault = callbacks.and_then(CallersVault::new);
        let vault = vault.ok_or_else(|| Failure::input("a vault needs store, load and remove"))?;
        place.put(VAULTS.insert(Arc::new(vault))?);
        Ok(())
    })
}

/// Keeps a session in a vault from now on, under a name (1 to 64 of a-z, A-Z, 0-9, `-`, `_`) that is not in use:
/// `WRAITH_CONFLICT` if it is. What is sealed or opened is then in the vault before the call returns. A process that is
/// killed at any moment and loads it uses no number twice and opens nothing twice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_session_keep(
    session: wraith_session_t,
    vault: wraith_vault_t,
    name: *const u8,
    name_len: usize,
) -> wraith_status_t {
    entry!(|call| {
        let name = call.text(name, name_len)?;
        session::keep(session, self::vault(vault)?, name)
    })
}

/// The session that is kept under this name. `WRAITH_NOT_FOUND` if there is none, `WRAITH_CONFLICT` if the vault was rolled
/// back and knows it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_session_load(
    vault: wraith_vault_t,
    name: *const u8,
    name_len: usize,
    out: *mut wraith_session_t,
) -> wraith_status_t {
    entry!(|call| {
        let (name, place) = (call.text(name, name_len)?, call.place(out)?);
        let stored = StoredSession::load(self::vault(vault)?, name)?;
        place.put(session::insert_stored(stored)?);
        Ok(())
    })
}

/// Removes the record of this name, if there is one. A session that is kept there must be freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_vault_remove(
    vault: wraith_vault_t,
    name: *const u8,
    name_len: usize,
) -> wraith_status_t {
    entry!(|call| {
        let name = call.text(name, name_len)?;
        if !wraith_session::vault::is_record_name(name) {
            return Err(StoreError::Name.into());
        }
        Ok(self::vault(vault)?.delete(name)?)
    })
}

/// Frees the handle. The vault stays open while a session is kept in it.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_vault_free(vault: wraith_vault_t) -> wraith_status_t {
    entry!(|_call| VAULTS.remove(vault).map(drop))
}
