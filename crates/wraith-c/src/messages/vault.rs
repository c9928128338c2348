//! Vaults: persistent storage of sessions, conversations and prekeys.
//!
//! Invariant: every change of a stored object is in the vault before the call returns. The caller's
//! buffers are checked before the store, so a call that has stored a change does not fail for lack
//! of room.

use std::sync::Arc;

use wraith_session::ratchet::{OVERHEAD_BYTES, PreKeyBundle, PreKeys, Ratchet};
use wraith_session::vault::{FileVault, KeyVault, VaultError};
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

/// Opens the vault in a folder; creates the folder if it is missing. Its records are encrypted only
/// if the disk is. One process at a time owns it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_vault_folder(
    folder: *const u8,
    folder_len: usize,
    out: *mut wraith_vault_t,
) -> wraith_status_t {
    entry!(|call| {
        let (folder, out) = (path(call.bytes(folder, folder_len)?)?, call.out(out)?);
        out.write(VAULTS.insert(Arc::new(FileVault::open(folder)?))?);
        Ok(())
    })
}

/// Creates a vault from callbacks. `store`, `load` and `remove` are mandatory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_vault_new(
    callbacks: *const wraith_vault_callbacks_t,
    out: *mut wraith_vault_t,
) -> wraith_status_t {
    entry!(|call| {
        let (callbacks, out) = (call.options(callbacks)?, call.out(out)?);
        let vault = callbacks.and_then(CallersVault::new);
        let vault = vault.ok_or_else(|| Failure::input("a vault needs store, load and remove"))?;
        out.write(VAULTS.insert(Arc::new(vault))?);
        Ok(())
    })
}

/// Keeps a session in a vault from now on, under an unused name of 1 to 64 characters (a-z, A-Z,
/// 0-9, `-`, `_`). `WRAITH_CONFLICT` if the name is in use.
///
/// Each change by sealing or opening is in the vault before the call returns. If the process is
/// killed at any moment and the session is loaded again, it uses no number twice and opens no
/// message twice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_session_keep(
    session: wraith_session_t,
    vault: wraith_vault_t,
    name: *const u8,
    name_len: usize,
) -> wraith_status_t {
    entry!(|call| {
        let name = call.text(name, name_len)?;
        session::move_to_vault(session, self::vault(vault)?, name)
    })
}

/// Loads the session stored under this name. `WRAITH_NOT_FOUND` if there is none, `WRAITH_CONFLICT`
/// if the vault detects that it was rolled back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_session_load(
    vault: wraith_vault_t,
    name: *const u8,
    name_len: usize,
    out: *mut wraith_session_t,
) -> wraith_status_t {
    entry!(|call| {
        let (name, out) = (call.text(name, name_len)?, call.out(out)?);
        let stored = StoredSession::load(self::vault(vault)?, name)?;
        out.write(session::insert_stored(stored)?);
        Ok(())
    })
}

/// Generates prekeys of an identity and keeps them in a vault under an unused name, with `one_time`
/// one-time prekeys. `WRAITH_CONFLICT` if the name is in use. That a bundle was handed out, or a
/// prekey used, is recorded in the vault before the call returns any output.
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
        let (name, out) = (call.text(name, name_len)?, call.out(out)?);
        let (one_time, vault) = (prekeys::bounded(one_time)?, self::vault(vault)?);
        let identity = identity::identity(identity)?;
        let made = PreKeys::generate(&mut *generator()?, &identity, one_time);
        out.write(prekeys::insert_stored(StoredPreKeys::create(vault, name, made)?)?);
        Ok(())
    })
}

/// Moves prekeys from memory into a vault, as `wraith_session_keep` does. If that fails, they stay
/// in memory. After `WRAITH_VAULT_FAILED` a record may exist all the same; `wraith_vault_remove`
/// removes it.
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
            *kept = prekeys::PreKeysBacking::Vault(Box::new(stored));
            Ok(())
        })
    })
}

/// Loads the prekeys stored under this name; fails as `wraith_session_load` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_prekeys_load(
    vault: wraith_vault_t,
    name: *const u8,
    name_len: usize,
    out: *mut wraith_prekeys_t,
) -> wraith_status_t {
    entry!(|call| {
        let (name, out) = (call.text(name, name_len)?, call.out(out)?);
        let stored = StoredPreKeys::load(self::vault(vault)?, name)?;
        out.write(prekeys::insert_stored(stored)?);
        Ok(())
    })
}

/// Like `wraith_ratchet_initiate`, but keeps the conversation in a vault from the start, under an
/// unused name. `WRAITH_CONFLICT` if the name is in use. Each change by encryption or decryption is
/// in the vault before the call returns. If the vault fails, nothing has changed.
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
        let (name, out) = (call.text(name, name_len)?, call.out(out)?);
        let bundle = PreKeyBundle::decode(call.bytes(bundle, bundle_len)?)?;
        let (vault, identity) = (self::vault(vault)?, identity::identity(identity)?);
        let mut generator = generator()?;
        let stored = StoredRatchet::initiate(vault, name, &mut *generator, &identity, &bundle)?;
        out.write(ratchet::insert_stored(stored)?);
        Ok(())
    })
}

/// Like `wraith_ratchet_respond`, but keeps the conversation in a vault from the start. The prekeys
/// must be in a vault too, the same or another one; otherwise `WRAITH_INVALID_STATE`.
///
/// The conversation is stored first, then its prekeys are stored as used, then the text is
/// returned. If a call was interrupted or its vault failed, repeat it with the same message and
/// name; the result is the same.
///
/// Therefore derive the name from `wraith_ratchet_initiator_of`, and pass every message that has an
/// initiator to this function first. If it returns `WRAITH_CONFLICT`, `WRAITH_NOT_FOUND` or
/// `WRAITH_REPLAYED`, pass the message to `wraith_ratchet_decrypt` of the conversation of that
/// name.
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
        let (output, out) = (call.output(out, out_cap, out_len)?, call.out(ratchet)?);
        output.room(message.len().saturating_sub(OVERHEAD_BYTES))?;
        let (vault, identity) = (self::vault(vault)?, identity::identity(identity)?);
        PREKEYS.with(prekeys, |kept| {
            let prekeys = kept.in_vault()?;
            let (stored, text) =
                StoredRatchet::respond(vault, name, &identity, prekeys, aad, message)?;
            let text = Zeroizing::new(text);
            out.write(ratchet::insert_stored(stored)?);
            output.write(&text)
        })
    })
}

/// Moves a conversation from memory into a vault, as `wraith_session_keep` does. If that fails, it
/// stays in memory. After `WRAITH_VAULT_FAILED` a record may exist all the same;
/// `wraith_vault_remove` removes it.
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
            *kept = ratchet::RatchetBacking::Vault(Box::new(stored));
            Ok(())
        })
    })
}

/// Loads the conversation stored under this name; fails as `wraith_session_load` does. If two
/// processes load it, one of them fails with `WRAITH_CONFLICT` before it returns any output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_ratchet_load(
    vault: wraith_vault_t,
    name: *const u8,
    name_len: usize,
    out: *mut wraith_ratchet_t,
) -> wraith_status_t {
    entry!(|call| {
        let (name, out) = (call.text(name, name_len)?, call.out(out)?);
        let stored = StoredRatchet::load(self::vault(vault)?, name)?;
        out.write(ratchet::insert_stored(stored)?);
        Ok(())
    })
}

/// Removes the record of this name, if there is one. Free the object stored under it first.
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

/// Frees the handle. The vault stays open while an object is kept in it.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_vault_free(vault: wraith_vault_t) -> wraith_status_t {
    entry!(|_call| VAULTS.remove(vault).map(drop))
}
