//! Where sessions, conversations and prekeys are kept, so that they survive their process.
//!
//! Invariant: whatever changes one that is kept is in the vault before the call returns. Buffers are looked at before, so that
//! no store is followed by a failure for want of room.

use std::sync::Arc;

use wraith::FileVault;
use wraith_session::ratchet::{OVERHEAD_BYTES, PreKeyBundle, PreKeys, Ratchet};
use wraith_session::vault::{KeyVault, VaultError};
use wraith_session::{StoreError, StoredPreKeys, StoredRatchet, StoredSession};
use zeroize::Zeroizing;

use super::prekeys::{self, PREKEYS, wraith_prekeys_t};
use super::ratchet::{self, RATCHETS, wraith_ratchet_t};
use super::session::{self, wraith_session_t};
use crate::border::{CallersVault, entry, wraith_vault_callbacks_t};
use crate::files::node::path;
use crate::identity::{self, wraith_identity_t};
use crate::random::generator;
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

/// New prekeys of an identity, kept in a vault under a name that is not in use: `WRAITH_CONFLICT` if it is. `one_time` of them
/// are for one conversation each. A bundle that is handed out, and a prekey that is used, is in the vault as such before anybody
/// sees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_prekeys_generate_in_vault(
    vault: wraith_vault_t,
    name: *const u8,
    name_len: usize,
    identity: wraith_identity_t,
    one_time: usize,
    out: *mut wraith_prekeys_t,
) -> wraith_status_t {
    entry!(|call| {
        let (name, place) = (call.text(name, name_len)?, call.place(out)?);
        let (one_time, vault) = (prekeys::bounded(one_time)?, self::vault(vault)?);
        let identity = identity::identity(identity)?;
        let made = PreKeys::generate(&mut *generator()?, &identity, one_time);
        place.put(prekeys::insert_stored(StoredPreKeys::create(vault, name, made)?)?);
        Ok(())
    })
}

/// Keeps prekeys that were in memory in a vault from now on, as `wraith_session_keep` does. Where it fails they stay in memory;
/// after `WRAITH_VAULT_FAILED` there may be a record all the same, which `wraith_vault_remove` removes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_prekeys_keep(
    prekeys: wraith_prekeys_t,
    vault: wraith_vault_t,
    name: *const u8,
    name_len: usize,
) -> wraith_status_t {
    entry!(|call| {
        let name = call.text(name, name_len)?;
        PREKEYS.with(prekeys, |kept| {
            let copy = PreKeys::restore(&kept.in_memory()?.save())?;
            let stored = StoredPreKeys::create(self::vault(vault)?, name, copy)?;
            *kept = prekeys::Kept::Vault(Box::new(stored));
            Ok(())
        })
    })
}

/// The prekeys that are kept under this name; fails as `wraith_session_load` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_prekeys_load(
    vault: wraith_vault_t,
    name: *const u8,
    name_len: usize,
    out: *mut wraith_prekeys_t,
) -> wraith_status_t {
    entry!(|call| {
        let (name, place) = (call.text(name, name_len)?, call.place(out)?);
        let stored = StoredPreKeys::load(self::vault(vault)?, name)?;
        place.put(prekeys::insert_stored(stored)?);
        Ok(())
    })
}

/// As `wraith_ratchet_initiate`; the conversation is kept in a vault from its beginning, under a name that is not in use:
/// `WRAITH_CONFLICT` if it is. What is encrypted or decrypted is in the vault before the call returns, and a vault that fails
/// changes nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_initiate_in_vault(
    vault: wraith_vault_t,
    name: *const u8,
    name_len: usize,
    identity: wraith_identity_t,
    bundle: *const u8,
    bundle_len: usize,
    out: *mut wraith_ratchet_t,
) -> wraith_status_t {
    entry!(|call| {
        let (name, place) = (call.text(name, name_len)?, call.place(out)?);
        let bundle = PreKeyBundle::decode(call.bytes(bundle, bundle_len)?)?;
        let (vault, identity) = (self::vault(vault)?, identity::identity(identity)?);
        let mut generator = generator()?;
        let stored = StoredRatchet::initiate(vault, name, &mut *generator, &identity, &bundle)?;
        place.put(ratchet::insert_stored(stored)?);
        Ok(())
    })
}

/// As `wraith_ratchet_respond`; the conversation is kept in a vault from its beginning. The prekeys have to be in a vault too,
/// the same or another one: `WRAITH_INVALID_STATE` if they are not.
///
/// The conversation is stored first, then its prekeys as used, then the text is given out. A call that was cut off, or
/// whose vault has failed, is made again with the same message and name, and ends as it would have. So let the name follow from
/// `wraith_ratchet_initiator_of`, and bring every message that has an initiator here first. If this gives `WRAITH_CONFLICT`,
/// `WRAITH_NOT_FOUND` or `WRAITH_REPLAYED`, bring it to `wraith_ratchet_decrypt` of the conversation of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_respond_in_vault(
    vault: wraith_vault_t,
    name: *const u8,
    name_len: usize,
    identity: wraith_identity_t,
    prekeys: wraith_prekeys_t,
    aad: *const u8,
    aad_len: usize,
    message: *const u8,
    message_len: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
    ratchet: *mut wraith_ratchet_t,
) -> wraith_status_t {
    entry!(|call| {
        let name = call.text(name, name_len)?;
        let (aad, message) = (call.bytes(aad, aad_len)?, call.bytes(message, message_len)?);
        let (output, place) = (call.output(out, out_cap, out_len)?, call.place(ratchet)?);
        output.room(message.len().saturating_sub(OVERHEAD_BYTES))?;
        let (vault, identity) = (self::vault(vault)?, identity::identity(identity)?);
        PREKEYS.with(prekeys, |kept| {
            let prekeys = kept.in_vault()?;
            let (stored, text) =
                StoredRatchet::respond(vault, name, &identity, prekeys, aad, message)?;
            let text = Zeroizing::new(text);
            place.put(ratchet::insert_stored(stored)?);
            output.write(&text)
        })
    })
}

/// Keeps a conversation that was in memory in a vault from now on, as `wraith_session_keep` does. Where it fails it stays in
/// memory; after `WRAITH_VAULT_FAILED` there may be a record all the same, which `wraith_vault_remove` removes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_keep(
    ratchet: wraith_ratchet_t,
    vault: wraith_vault_t,
    name: *const u8,
    name_len: usize,
) -> wraith_status_t {
    entry!(|call| {
        let name = call.text(name, name_len)?;
        RATCHETS.with(ratchet, |kept| {
            let copy = Ratchet::restore(&kept.in_memory()?.save())?;
            let stored = StoredRatchet::create(self::vault(vault)?, name, copy)?;
            *kept = ratchet::Kept::Vault(Box::new(stored));
            Ok(())
        })
    })
}

/// The conversation that is kept under this name; fails as `wraith_session_load` does. Of two that load it one fails with
/// `WRAITH_CONFLICT` before it gives out anything.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_load(
    vault: wraith_vault_t,
    name: *const u8,
    name_len: usize,
    out: *mut wraith_ratchet_t,
) -> wraith_status_t {
    entry!(|call| {
        let (name, place) = (call.text(name, name_len)?, call.place(out)?);
        let stored = StoredRatchet::load(self::vault(vault)?, name)?;
        place.put(ratchet::insert_stored(stored)?);
        Ok(())
    })
}

/// Removes the record of this name, if there is one. What is kept there must be freed before.
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

/// Frees the handle. The vault stays open while anything is kept in it.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_vault_free(vault: wraith_vault_t) -> wraith_status_t {
    entry!(|_call| VAULTS.remove(vault).map(drop))
}
