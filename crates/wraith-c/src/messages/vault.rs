//! Vaults: persistent storage of sessions, conversations and prekeys.
//!
//! Invariant: every change of a stored object is in the vault before the call returns. The caller's
//! buffers are checked before the store, so a call that has stored a change does not fail for lack
//! of room.

use std::sync::Arc;

use wraith_session::ratchet::{OVERHEAD_BYTES, PreKeyBundle, PreKeys, Ratchet};
use wraith_session::vault::{FileVault, KeyVault, is_record_name};
use wraith_session::{Session, StoreError, system_rng};

use super::prekeys::{self, wraith_prekeys_t};
use super::ratchet::{add_started, wraith_ratchet_t};
use super::session::{self, wraith_session_t};
use crate::border::{CallersVault, export, wraith_vault_callbacks_t};
use crate::identity::wraith_identity_t;
use crate::options::path;
use crate::status::Failure;
use crate::table::{Kind, Table};

/// A vault.
pub type wraith_vault_t = u64;

static wraith_vault_t: Table<Arc<dyn KeyVault>> = Table::new(Kind::Vault);

export!(
    /// Opens the vault in a folder; creates the folder if it is missing. Its records are encrypted
    /// only if the disk is. One process at a time owns it.
    pub fn wraith_vault_folder(folder: Bytes) -> Outcome<wraith_vault_t> {
        wraith_vault_t.insert(Arc::new(FileVault::open(path(folder)?)?))
    }

    /// Creates a vault from callbacks. `store`, `load` and `remove` are mandatory.
    pub fn wraith_vault_new(
        callbacks: Options<wraith_vault_callbacks_t>,
    ) -> Outcome<wraith_vault_t> {
        let vault = callbacks.and_then(CallersVault::new);
        let vault = vault.ok_or_else(|| Failure::input("a vault needs store, load and remove"))?;
        wraith_vault_t.insert(Arc::new(vault))
    }

    /// Keeps a session in a vault from now on, under an unused name of 1 to 64 characters (a-z,
    /// A-Z, 0-9, `-`, `_`). `WRAITH_CONFLICT` if the name is in use. After `WRAITH_VAULT_FAILED` a
    /// record may exist all the same, so the session seals nothing until it is kept, or saved and
    /// stored.
    ///
    /// Each change by sealing or opening is in the vault before the call returns. If the process is
    /// killed at any moment and the session is loaded again, it uses no number twice and opens no
    /// message twice.
    pub fn wraith_session_keep(
        session: Locked<wraith_session_t>,
        vault: Object<wraith_vault_t>,
        name: Text,
    ) -> Outcome {
        Ok(session.session.keep((*vault).clone(), name)?)
    }

    /// Loads the session stored under this name. `WRAITH_NOT_FOUND` if there is none,
    /// `WRAITH_CONFLICT` if the vault detects that it was rolled back.
    pub fn wraith_session_load(
        vault: Object<wraith_vault_t>,
        name: Text,
    ) -> Outcome<wraith_session_t> {
        session::insert(Session::load((*vault).clone(), name)?)
    }

    /// Generates prekeys of an identity and keeps them in a vault under an unused name, with
    /// `one_time` one-time prekeys. `WRAITH_CONFLICT` if the name is in use. That a bundle was
    /// handed out, or a prekey used, is recorded in the vault before the call returns any output.
    pub fn wraith_prekeys_generate_in_vault(
        vault: Object<wraith_vault_t>,
        name: Text,
        identity: Object<wraith_identity_t>,
        one_time: usize,
    ) -> Outcome<wraith_prekeys_t> {
        let mut prekeys = prekeys::generate(&identity, one_time)?;
        prekeys.keep((*vault).clone(), name)?;
        wraith_prekeys_t.add(prekeys)
    }

    /// Moves prekeys from memory into a vault, as `wraith_session_keep` does. If that fails, they
    /// stay in memory. After `WRAITH_VAULT_FAILED` a record may exist all the same;
    /// `wraith_vault_remove` removes it.
    pub fn wraith_prekeys_keep(
        prekeys: Locked<wraith_prekeys_t>,
        vault: Object<wraith_vault_t>,
        name: Text,
    ) -> Outcome {
        Ok(prekeys.keep((*vault).clone(), name)?)
    }

    /// Loads the prekeys stored under this name; fails as `wraith_session_load` does.
    pub fn wraith_prekeys_load(
        vault: Object<wraith_vault_t>,
        name: Text,
    ) -> Outcome<wraith_prekeys_t> {
        wraith_prekeys_t.add(PreKeys::load((*vault).clone(), name)?)
    }

    /// Like `wraith_ratchet_initiate`, but keeps the conversation in a vault from the start, under
    /// an unused name. `WRAITH_CONFLICT` if the name is in use. Each change by encryption or
    /// decryption is in the vault before the call returns. If the vault fails, nothing has changed.
    pub fn wraith_ratchet_initiate_in_vault(
        vault: Object<wraith_vault_t>,
        name: Text,
        identity: Object<wraith_identity_t>,
        bundle: Bytes,
    ) -> Outcome<wraith_ratchet_t> {
        let bundle = PreKeyBundle::decode(bundle)?;
        let mut ratchet = Ratchet::initiate(&mut system_rng()?, &identity, &bundle)?;
        ratchet.keep((*vault).clone(), name)?;
        wraith_ratchet_t.add(ratchet)
    }

    /// Like `wraith_ratchet_respond`, but keeps the conversation in a vault from the start. The
    /// prekeys must be in a vault too, the same or another one; otherwise `WRAITH_INVALID_STATE`.
    ///
    /// The conversation is stored first, then its prekeys are stored as used, then the text is
    /// returned. If a call was interrupted or its vault failed, repeat it with the same message and
    /// name; the result is the same.
    ///
    /// Therefore derive the name from `wraith_ratchet_initiator_of`, and pass every message that
    /// has an initiator to this function first. If it returns `WRAITH_CONFLICT`, `WRAITH_NOT_FOUND`
    /// or `WRAITH_REPLAYED`, pass the message to `wraith_ratchet_decrypt` of the conversation of
    /// that name.
    pub fn wraith_ratchet_respond_in_vault(
        vault: Object<wraith_vault_t>,
        name: Text,
        identity: Object<wraith_identity_t>,
        prekeys: Locked<wraith_prekeys_t>,
        aad: Bytes,
        message: Bytes,
        out: Buffer,
        ratchet: Out<wraith_ratchet_t>,
    ) -> Outcome {
        out.room(message.len().saturating_sub(OVERHEAD_BYTES))?;
        let vault = (*vault).clone();
        let started =
            Ratchet::respond_in_vault(vault, name, &identity, &mut prekeys, aad, message)?;
        add_started(started, ratchet, out)
    }

    /// Moves a conversation from memory into a vault, as `wraith_session_keep` does. If that fails,
    /// it stays in memory. After `WRAITH_VAULT_FAILED` a record may exist all the same;
    /// `wraith_vault_remove` removes it.
    pub fn wraith_ratchet_keep(
        ratchet: Locked<wraith_ratchet_t>,
        vault: Object<wraith_vault_t>,
        name: Text,
    ) -> Outcome {
        Ok(ratchet.keep((*vault).clone(), name)?)
    }

    /// Loads the conversation stored under this name; fails as `wraith_session_load` does. If two
    /// processes load it, one of them fails with `WRAITH_CONFLICT` before it returns any output.
    pub fn wraith_ratchet_load(
        vault: Object<wraith_vault_t>,
        name: Text,
    ) -> Outcome<wraith_ratchet_t> {
        wraith_ratchet_t.add(Ratchet::load((*vault).clone(), name)?)
    }

    /// Removes the record of this name, if there is one. Free the object stored under it first.
    pub fn wraith_vault_remove(vault: wraith_vault_t, name: Text) -> Outcome {
        if !is_record_name(name) {
            return Err(StoreError::Name.into());
        }
        Ok(wraith_vault_t.get(vault)?.delete(name)?)
    }

    /// Frees the handle. The vault stays open while an object is kept in it.
    pub fn wraith_vault_free(vault: wraith_vault_t) -> Outcome {
        wraith_vault_t.free(vault)
    }
);
