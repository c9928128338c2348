//! The place of a state in a vault.
//!
//! A vault keeps one record (an encoded state with its generation number) per name. Invariant:
//! `generation` is the generation of the record in the vault, unless the last store failed. The
//! outcome of a failed store is determined before the next store. A slot that another writer has
//! changed is never written again.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::{Durability, KeyVault, NewRecord, Record, StoreError, VaultError, is_record_name};

/// Kinds of records.
pub(crate) const SESSION: u8 = 1;
pub(crate) const RATCHET: u8 = 2;
pub(crate) const PREKEYS: u8 = 3;

/// The place of a state in a vault.
pub(crate) struct RecordSlot {
    vault: Arc<dyn KeyVault>,
    name: String,
    kind: u8,
    /// Generation of the record that is known to be in the vault.
    generation: u64,
    doubt: StoreOutcome,
    /// The last stored state, for rollback.
    pub(crate) stored: Zeroizing<Vec<u8>>,
    /// Durability of the stores for which the caller may choose it.
    pub(crate) durability: Durability,
}

/// Uncertainty about a slot after a failed store.
enum StoreOutcome {
    /// No uncertainty: the vault holds the last stored record.
    None,
    /// This record may or may not have been stored.
    Failed(Zeroizing<Vec<u8>>),
    /// Another writer has continued from an earlier state of this one. Storing would let both use
    /// the same numbers.
    Lost,
}

impl RecordSlot {
    /// Claims an unused name.
    pub(crate) fn claim(
        vault: Arc<dyn KeyVault>,
        name: &str,
        kind: u8,
    ) -> Result<Box<Self>, StoreError> {
        if !is_record_name(name) {
            return Err(StoreError::Name);
        }
        if vault.load(name)?.is_some() {
            return Err(StoreError::Exists);
        }
        // A reused name continues the count, so that an old copy cannot pass as new.
        let generation = vault.latest(name)?.unwrap_or(0);
        Ok(Self::at(vault, name, kind, generation, Zeroizing::default()))
    }

    /// Claims an unused name and stores a state there.
    pub(crate) fn create(
        vault: Arc<dyn KeyVault>,
        name: &str,
        kind: u8,
        state: Zeroizing<Vec<u8>>,
    ) -> Result<Box<Self>, StoreError> {
        let mut slot = Self::claim(vault, name, kind)?;
        slot.put(state, Durability::Power)?;
        Ok(slot)
    }

    /// Loads a record and its slot.
    pub(crate) fn load(
        vault: Arc<dyn KeyVault>,
        name: &str,
        kind: u8,
    ) -> Result<Box<Self>, StoreError> {
        if !is_record_name(name) {
            return Err(StoreError::Name);
        }
        let bytes = vault.load(name)?.ok_or(StoreError::Missing)?;
        let record = Record::decode(&bytes)?;
        if record.kind != kind {
            return Err(StoreError::Kind);
        }
        let found = record.generation;
        if let Some(latest) = vault.latest(name)?.filter(|latest| *latest > found) {
            return Err(StoreError::RolledBack { found, latest });
        }
        Ok(Self::at(vault, name, kind, found, record.state))
    }

    fn at(
        vault: Arc<dyn KeyVault>,
        name: &str,
        kind: u8,
        generation: u64,
        stored: Zeroizing<Vec<u8>>,
    ) -> Box<Self> {
        let (name, doubt, durability) = (name.to_owned(), StoreOutcome::None, Durability::Power);
        Box::new(Self { vault, name, kind, generation, doubt, stored, durability })
    }

    /// Returns [`Durability::Power`] if the vault remembers the latest generation of a record that
    /// was stored before, because it counts only durable stores. A memory that cannot be read
    /// counts as one.
    pub(crate) fn usual_durability(&self) -> Durability {
        match self.vault.latest(&self.name) {
            Ok(None) => Durability::Process,
            Ok(Some(_)) | Err(_) => Durability::Power,
        }
    }

    /// Stores the state atomically.
    pub(crate) fn put(
        &mut self,
        state: Zeroizing<Vec<u8>>,
        durability: Durability,
    ) -> Result<(), VaultError> {
        self.resolve()?;
        let generation = self.generation.checked_add(1).ok_or(VaultError::Conflict)?;
        let record = Record::encode(self.kind, generation, &state);
        let new = NewRecord { generation, bytes: &record, durability };
        match self.vault.store(&self.name, new) {
            Ok(()) => {
                (self.generation, self.stored) = (generation, state);
                Ok(())
            }
            Err(why) => {
                self.doubt = match why {
                    VaultError::Conflict => StoreOutcome::Lost,
                    VaultError::Failed(_) => StoreOutcome::Failed(record),
                };
                Err(why)
            }
        }
    }

    /// Checks, without a store, that no other writer has changed the slot.
    pub(crate) fn check(&mut self) -> Result<(), VaultError> {
        self.resolve()?;
        let held = self.vault.load(&self.name)?;
        let held = held.and_then(|bytes| Record::decode(&bytes).ok());
        if held.is_some_and(|record| record.generation == self.generation) {
            return Ok(());
        }
        self.doubt = StoreOutcome::Lost;
        Err(VaultError::Conflict)
    }

    /// Determines the outcome of a failed store: the vault holds the previous record, the attempted
    /// one, or another writer's.
    pub(crate) fn resolve(&mut self) -> Result<(), VaultError> {
        let tried = match &self.doubt {
            StoreOutcome::None => return Ok(()),
            StoreOutcome::Lost => return Err(VaultError::Conflict),
            StoreOutcome::Failed(tried) => tried,
        };
        let held = self.vault.load(&self.name)?;
        let held = held.as_ref().map(|bytes| (Record::decode(bytes).ok(), bytes));
        self.doubt = match held {
            Some((_, bytes)) if bytes == tried => {
                self.generation += 1;
                StoreOutcome::None
            }
            Some((Some(record), _)) if record.generation == self.generation => StoreOutcome::None,
            _ => StoreOutcome::Lost,
        };
        match self.doubt {
            StoreOutcome::Lost => Err(VaultError::Conflict),
            StoreOutcome::None | StoreOutcome::Failed(_) => Ok(()),
        }
    }
}

/// Prints the name, never the state.
impl fmt::Debug for RecordSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
