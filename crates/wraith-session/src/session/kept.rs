//! A session in a vault: each state change is stored before its effect becomes visible.

use std::sync::Arc;

use super::Session;
use crate::vault::{Durability, KeyVault, RecordSlot, SESSION, StoreError, VaultError};

impl Session {
    /// Keeps this session in a vault from now on, under an unused name.
    ///
    /// # Errors
    /// [`StoreError::Name`], [`StoreError::Exists`], [`StoreError::Kept`]: the session is
    /// unchanged. After [`StoreError::Vault`] the record may exist all the same; so retry with the
    /// same name. [`StoreError::Exists`] then means that it exists, and [`load`](Self::load)
    /// continues it. Until it is kept, the session seals nothing before it is saved and confirmed.
    pub fn keep(&mut self, vault: Arc<dyn KeyVault>, name: &str) -> Result<(), StoreError> {
        if self.is_kept() {
            return Err(StoreError::Kept);
        }
        let slot = RecordSlot::claim(vault, name, SESSION)?;
        self.store_first(slot).inspect_err(|_| self.hold())
    }

    /// Loads the session of this name. If two processes on any machines share the vault and load
    /// the same session, one of them fails.
    ///
    /// # Errors
    /// [`StoreError`] for an invalid record; [`StoreError::RolledBack`] if the vault can detect
    /// that.
    pub fn load(vault: Arc<dyn KeyVault>, name: &str) -> Result<Self, StoreError> {
        let slot = RecordSlot::load(vault, name, SESSION)?;
        let mut session = Self::restore(&slot.stored)?;
        session.store_first(slot)?;
        Ok(session)
    }

    /// Returns whether the session is kept in a vault.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Sets the durability of the stores for opened messages, if the session is kept in a vault.
    ///
    /// | value | cost of a batch of opened messages | a message may open again after |
    /// |---|---|---|
    /// | [`Durability::Power`] | one flush of the vault, and one of its memory of generations | nothing |
    /// | [`Durability::Process`] | one write without a flush | a power cut, or a rolled-back record |
    ///
    /// The default is [`Durability::Power`] if the vault detects rolled-back records
    /// ([`KeyVault::latest`]), and otherwise [`Durability::Process`]. Sealing is durable in both
    /// cases. [`open_many`](Self::open_many) opens many messages for the cost of one.
    pub fn set_durability(&mut self, durability: Durability) {
        if let Some(kept) = &mut self.kept {
            kept.durability = durability;
        }
    }

    /// Stores the session in its vault now and reserves further numbers. Without a vault, does
    /// nothing.
    ///
    /// # Errors
    /// [`VaultError`].
    pub fn store(&mut self) -> Result<(), VaultError> {
        let Some(mut slot) = self.kept.take() else { return Ok(()) };
        let stored = self.store_in(&mut slot);
        self.kept = Some(slot);
        stored
    }

    fn store_first(&mut self, mut slot: Box<RecordSlot>) -> Result<(), StoreError> {
        self.store_in(&mut slot)?;
        slot.durability = slot.usual_durability();
        self.kept = Some(slot);
        Ok(())
    }

    fn store_in(&mut self, slot: &mut RecordSlot) -> Result<(), VaultError> {
        let saved = self.save();
        slot.put(saved.bytes.clone(), Durability::Power)?;
        self.confirm(&saved);
        Ok(())
    }
}
