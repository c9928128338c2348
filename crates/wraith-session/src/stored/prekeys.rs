//! Prekeys in a vault.
//!
//! Before a bundle is returned, the vault records it as handed out. Before the plaintext of a first
//! message is returned, the vault records the message's one-time prekeys as used. After a failed
//! store the prekeys return to the last stored state.

use std::fmt;
use std::sync::Arc;

use rand_core::CryptoRng;
use wraith_crypto::SecretIdentity;
use zeroize::{Zeroize, Zeroizing};

use super::StoreError;
use super::slot::{PREKEYS, RecordSlot};
use crate::ratchet::{PreKeyBundle, PreKeys, Ratchet, StartError};
use crate::vault::{Durability, KeyVault};

/// The prekeys of one identity, kept in a vault. Each change is one store that survives a power
/// cut: if a used one-time prekey reappeared, a recorded first message could start its conversation
/// again.
///
/// [`StoredRatchet::respond`](super::StoredRatchet::respond) consumes them.
pub struct StoredPreKeys {
    prekeys: PreKeys,
    slot: RecordSlot,
    /// The last stored state, for rollback.
    stored: Zeroizing<Vec<u8>>,
}

impl StoredPreKeys {
    /// Stores new prekeys under an unused name.
    ///
    /// # Errors
    /// [`StoreError::Name`], [`StoreError::Exists`], [`StoreError::Vault`]. After the last the
    /// record may exist all the same, and can be loaded.
    pub fn create(
        vault: Arc<dyn KeyVault>,
        name: &str,
        prekeys: PreKeys,
    ) -> Result<Self, StoreError> {
        let mut slot = RecordSlot::create(vault, name, PREKEYS)?;
        let stored = prekeys.save();
        slot.put(&stored, Durability::Power)?;
        Ok(Self { prekeys, slot, stored })
    }

    /// Loads the prekeys of this name. If two processes on any machines share the vault and load
    /// the same prekeys, one of them fails before it returns anything new.
    ///
    /// # Errors
    /// [`StoreError`] for an invalid record; [`StoreError::RolledBack`] if the vault can detect
    /// that.
    pub fn load(vault: Arc<dyn KeyVault>, name: &str) -> Result<Self, StoreError> {
        let (slot, record) = RecordSlot::load(vault, name, PREKEYS)?;
        Ok(Self { prekeys: PreKeys::restore(&record.state)?, slot, stored: record.state })
    }

    /// Returns the prekeys, for read access.
    #[must_use]
    pub const fn prekeys(&self) -> &PreKeys {
        &self.prekeys
    }

    /// As [`PreKeys::remaining`].
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.prekeys.remaining()
    }

    /// As [`PreKeys::bundle`]. If the bundle has one-time prekeys, the vault is written before this
    /// returns.
    ///
    /// # Errors
    /// [`StoreError::Vault`]: the state is unchanged, and no bundle is handed out.
    pub fn bundle(&mut self) -> Result<PreKeyBundle, StoreError> {
        let bundle = self.prekeys.bundle();
        self.store()?;
        Ok(bundle)
    }

    /// As [`PreKeys::replenish`].
    ///
    /// [`StoreError::Start`], [`StoreError::Vault`]: the state is unchanged.
    /// [`StoreError::Start`], [`StoreError::Vault`]: nothing has changed.
    pub fn replenish(
        &mut self,
        rng: &mut impl CryptoRng,
        identity: &SecretIdentity,
        one_time: usize,
    ) -> Result<(), StoreError> {
        let made = self.prekeys.replenish(rng, identity, one_time);
        self.store_if_ok(made)
    }

    /// As [`PreKeys::rotate`].
    ///
    /// # Errors
    /// [`StoreError::Start`], [`StoreError::Vault`]: the state is unchanged.
    pub fn rotate(
        &mut self,
        rng: &mut impl CryptoRng,
        identity: &SecretIdentity,
    ) -> Result<(), StoreError> {
        let made = self.prekeys.rotate(rng, identity);
        self.store_if_ok(made)
    }

    /// As [`Ratchet::respond`], without a store: the caller continues with [`Self::store`] or
    /// [`Self::restore_stored`]. This checks in the vault that no other process writes the record,
    /// before a conversation is stored that these prekeys may not start. Invalid messages of
    /// strangers fail before that check.
    pub(super) fn respond(
        &mut self,
        identity: &SecretIdentity,
        aad: &[u8],
        message: &[u8],
    ) -> Result<(Ratchet, Vec<u8>), StoreError> {
        let (ratchet, mut plaintext) = Ratchet::respond(identity, &mut self.prekeys, aad, message)?;
        if let Err(why) = self.slot.check() {
            plaintext.zeroize();
            self.restore_stored();
            return Err(why);
        }
        Ok((ratchet, plaintext))
    }

    /// Stores the change, unless it failed halfway.
    fn store_if_ok(&mut self, made: Result<(), StartError>) -> Result<(), StoreError> {
        if let Err(why) = made {
            self.restore_stored();
            return Err(why.into());
        }
        self.store()
    }

    /// Stores the state if it differs from the stored one. On failure restores the stored one.
    pub(super) fn store(&mut self) -> Result<(), StoreError> {
        let state = self.prekeys.save();
        let stored = match state == self.stored {
            true => self.slot.resolve(),
            false => self.slot.put(&state, Durability::Power),
        };
        match stored {
            Ok(()) => self.stored = state,
            Err(_) => self.restore_stored(),
        }
        stored
    }

    pub(super) fn restore_stored(&mut self) {
        self.prekeys = PreKeys::restore(&self.stored).expect("prekeys were saved as this");
    }
}

impl fmt::Debug for StoredPreKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredPreKeys")
            .field("name", &self.slot)
            .field("prekeys", &self.prekeys)
            .finish_non_exhaustive()
    }
}
