//! A session in a vault.

use std::fmt;
use std::sync::Arc;

use super::StoreError;
use super::slot::{RecordSlot, SESSION};
use crate::session::{Batch, BatchError, OpenedBatch, SealError, Session};
use crate::vault::{Durability, KeyVault};

/// A session that is kept in a vault.
pub struct StoredSession {
    session: Session,
    slot: RecordSlot,
    /// Durability of the stores for opened messages.
    opened: Durability,
}

impl StoredSession {
    /// Stores a new session under an unused name.
    ///
    /// # Errors
    /// [`StoreError::Name`], [`StoreError::Exists`], [`StoreError::Vault`]. Each returns the
    /// session, because a handshake returns it only once. After [`StoreError::Vault`] the record
    /// may exist all the same; so retry with the same name. [`StoreError::Exists`] then means that
    /// it exists, and [`load`](Self::load) continues it. The returned session seals nothing before
    /// it is saved and confirmed.
    pub fn create(
        vault: Arc<dyn KeyVault>,
        name: &str,
        session: Session,
    ) -> Result<Self, (StoreError, Box<Session>)> {
        let slot = match RecordSlot::create(vault, name, SESSION) {
            Ok(slot) => slot,
            Err(why) => return Err((why, Box::new(session))),
        };
        let mut stored = Self { session, slot, opened: Durability::Process };
        match stored.save() {
            Ok(()) => {
                stored.opened = stored.slot.usual_durability();
                Ok(stored)
            }
            Err(why) => {
                stored.session.hold();
                Err((why, Box::new(stored.session)))
            }
        }
    }

    /// Loads the session of this name. If two processes on any machines share the vault and load
    /// the same session, one of them fails.
    ///
    /// # Errors
    /// [`StoreError`] for an invalid record; [`StoreError::RolledBack`] if the vault can detect
    /// that.
    pub fn load(vault: Arc<dyn KeyVault>, name: &str) -> Result<Self, StoreError> {
        let (slot, record) = RecordSlot::load(vault, name, SESSION)?;
        let session = Session::restore(&record.state)?;
        let mut stored = Self { session, slot, opened: Durability::Process };
        stored.save()?;
        stored.opened = stored.slot.usual_durability();
        Ok(stored)
    }

    /// Returns the session, for read access.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// As [`Session::set_rekey`]. The setting is not stored.
    pub fn set_rekey(&mut self, rekey: crate::RekeyLimits) {
        self.session.set_rekey(rekey);
    }

    /// As [`Session::set_time`].
    pub fn set_time(&mut self, now: std::time::Duration) {
        self.session.set_time(now);
    }

    /// Sets the durability of the stores for opened messages.
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
        self.opened = durability;
    }

    /// As [`Session::seal`]. The vault is written once every few hundred messages.
    ///
    /// # Errors
    /// [`StoreError::Seal`], [`StoreError::Vault`]: no number was used.
    pub fn seal(&mut self, aad: &[u8], text: &[u8], out: &mut Vec<u8>) -> Result<u64, StoreError> {
        loop {
            match self.session.seal(aad, text, out) {
                Err(SealError::NotSaved) => self.save()?,
                sealed => return Ok(sealed?),
            }
        }
    }

    /// As [`Session::seal_many`].
    ///
    /// # Errors
    /// [`StoreError::Batch`], [`StoreError::Vault`]: no number was used.
    pub fn seal_many(&mut self, aad: &[u8], texts: &[&[u8]]) -> Result<Batch, StoreError> {
        loop {
            match self.session.seal_many(aad, texts) {
                Err(BatchError { why: SealError::NotSaved, .. }) => {
                    self.session.want(texts.len() as u64);
                    self.save()?;
                }
                sealed => return Ok(sealed?),
            }
        }
    }

    /// As [`Session::open`]. The vault is written before this returns.
    ///
    /// # Errors
    /// [`StoreError::Open`], [`StoreError::Vault`]: the state is unchanged.
    pub fn open(
        &mut self,
        aad: &[u8],
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<u64, StoreError> {
        let opened = self.open_many(aad, &[message])?;
        let (number, text) = opened.iter().next().expect("one message has one result")?;
        out.extend_from_slice(text);
        Ok(number)
    }

    /// As [`Session::open_many`]. The vault is written once, before this returns.
    ///
    /// # Errors
    /// [`StoreError::Vault`]: the state is unchanged, and no message was opened. Errors of single
    /// messages are among the results.
    pub fn open_many(&mut self, aad: &[u8], messages: &[&[u8]]) -> Result<OpenedBatch, StoreError> {
        let batch = self.session.verify_many(aad, messages);
        let verified = batch.verified();
        if !verified.is_empty() {
            self.slot.put(&self.session.state_with(&verified), self.opened)?;
        }
        Ok(self.session.accept_many(batch))
    }

    /// Stores the session now and reserves further numbers.
    ///
    /// # Errors
    /// [`StoreError::Vault`].
    pub fn save(&mut self) -> Result<(), StoreError> {
        let saved = self.session.save();
        self.slot.put(saved.bytes(), Durability::Power)?;
        self.session.confirm(&saved);
        Ok(())
    }
}

impl fmt::Debug for StoredSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredSession").field("name", &self.slot).finish_non_exhaustive()
    }
}
