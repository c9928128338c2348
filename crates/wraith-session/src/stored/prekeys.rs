//! Prekeys in a vault.
//!
//! A bundle is stored as handed out before anybody has it, and one-time prekeys as used before the first message that used them is
//! given out. A store that fails takes the prekeys back to the state that was stored last.

use std::fmt;
use std::sync::Arc;

use rand_core::CryptoRng;
use wraith_crypto::SecretIdentity;
use zeroize::{Zeroize, Zeroizing};

use super::StoreError;
use super::slot::{PREKEYS, Slot};
use crate::ratchet::{PreKeyBundle, PreKeys, Ratchet, StartError};
use crate::vault::{Durability, KeyVault};

/// The prekeys of one identity, kept in a vault. Each change is one store that outlives a power cut: a one-time prekey that came back
/// would let a message that was recorded start its conversation again.
///
/// [`StoredRatchet::respond`](super::StoredRatchet::respond) uses them up.
pub struct StoredPreKeys {
    prekeys: PreKeys,
    slot: Slot,
    /// What was stored last: the state to go back to.
    stored: Zeroizing<Vec<u8>>,
}

impl StoredPreKeys {
    /// Keeps prekeys that are new, under a name that is not in use.
    ///
    /// # Errors
    /// [`StoreError::Name`], [`StoreError::Exists`], [`StoreError::Vault`]. After the last the record may be there all the same, and can be loaded.
    pub fn create(
        vault: Arc<dyn KeyVault>,
        name: &str,
        prekeys: PreKeys,
    ) -> Result<Self, StoreError> {
        let mut slot = Slot::create(vault, name, PREKEYS)?;
        let stored = prekeys.save();
        slot.put(&stored, Durability::Power)?;
        Ok(Self { prekeys, slot, stored })
    }

    /// Goes on with the prekeys of this name. Of two that do, on whatever machines, one fails as long as they share the vault, before it gives
    /// out anything that was not given out.
    ///
    /// # Errors
    /// Says what is wrong with the record; [`StoreError::RolledBack`] where the vault can tell.
    pub fn load(vault: Arc<dyn KeyVault>, name: &str) -> Result<Self, StoreError> {
        let (slot, record) = Slot::load(vault, name, PREKEYS)?;
        Ok(Self { prekeys: PreKeys::restore(&record.state)?, slot, stored: record.state })
    }

    /// The prekeys, for all that changes nothing.
    #[must_use]
    pub const fn prekeys(&self) -> &PreKeys {
        &self.prekeys
    }

    /// As [`PreKeys::remaining`].
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.prekeys.remaining()
    }

    /// As [`PreKeys::bundle`]. The vault is written before this returns, if there are one-time prekeys in the bundle.
    ///
    /// # Errors
    /// [`StoreError::Vault`]: nothing has changed, and nobody has the bundle.
    pub fn bundle(&mut self) -> Result<PreKeyBundle, StoreError> {
        let bundle = self.prekeys.bundle();
        self.store()?;
        Ok(bundle)
    }

    /// As [`PreKeys::replenish`].
    ///
    /// # Errors
    /// [`StoreError::Start`], [`StoreError::Vault`]: nothing has changed.
    pub fn replenish(
        &mut self,
        rng: &mut impl CryptoRng,
        identity: &SecretIdentity,
        one_time: usize,
    ) -> Result<(), StoreError> {
        let made = self.prekeys.replenish(rng, identity, one_time);
        self.store_unless(made)
    }

    /// As [`PreKeys::rotate`].
    ///
    /// # Errors
    /// [`StoreError::Start`], [`StoreError::Vault`]: nothing has changed.
    pub fn rotate(
        &mut self,
        rng: &mut impl CryptoRng,
        identity: &SecretIdentity,
    ) -> Result<(), StoreError> {
        let made = self.prekeys.rotate(rng, identity);
        self.store_unless(made)
    }

    /// As [`Ratchet::respond`], without storing anything: [`Self::store`] or [`Self::go_back`] comes next. Who has the record to itself is
    /// asked of the vault here, before a conversation is stored that these prekeys may not start; strangers' bytes do not get that far.
    pub(super) fn respond(
        &mut self,
        identity: &SecretIdentity,
        aad: &[u8],
        message: &[u8],
    ) -> Result<(Ratchet, Vec<u8>), StoreError> {
        let (ratchet, mut plaintext) = Ratchet::respond(identity, &mut self.prekeys, aad, message)?;
        if let Err(why) = self.slot.check() {
            plaintext.zeroize();
            self.go_back();
            return Err(why);
        }
        Ok((ratchet, plaintext))
    }

    /// Stores what was made, unless something has gone wrong in the middle of it.
    fn store_unless(&mut self, made: Result<(), StartError>) -> Result<(), StoreError> {
        if let Err(why) = made {
            self.go_back();
            return Err(why.into());
        }
        self.store()
    }

    /// Stores the state if it is another one than is stored, or goes back to that.
    pub(super) fn store(&mut self) -> Result<(), StoreError> {
        let state = self.prekeys.save();
        let stored = match state == self.stored {
            true => self.slot.resolve(),
            false => self.slot.put(&state, Durability::Power),
        };
        match stored {
            Ok(()) => self.stored = state,
            Err(_) => self.go_back(),
        }
        stored
    }

    pub(super) fn go_back(&mut self) {
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
