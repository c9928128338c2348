//! The place of a state in a vault.
//!
//! A vault keeps one record (an encoded state with its generation number) per name. Invariant:
//! `generation` is the generation of the record in the vault, unless the last store failed. The
//! outcome of a failed store is determined before the next store. A slot that another writer has
//! changed is never written again.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::StoreError;
use crate::vault::{Durability, KeyVault, Record, VaultError, is_record_name};

/// Kinds of records.
pub(super) const SESSION: u8 = 1;
pub(super) const RATCHET: u8 = 2;
pub(super) const PREKEYS: u8 = 3;

/// The place of a state in a vault.
pub(super) struct RecordSlot {
    vault: Arc<dyn KeyVault>,
    name: String,
    kind: u8,
    /// Generation of the record that is known to be in the vault.
    generation: u64,
    doubt: StoreOutcome,
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
    pub(super) fn create(
        vault: Arc<dyn KeyVault>,
        name: &str,
        kind: u8,
    ) -> Result<Self, StoreError> {
        if !is_record_name(name) {
            return Err(StoreError::Name);
        }
        if vault.load(name)?.is_some() {
            return Err(StoreError::Exists);
        }
        // A reused name continues the count, so that an old copy cannot pass as new.
        let generation = vault.latest(name)?.unwrap_or(0);
        Ok(Self { vault, name: name.to_owned(), kind, generation, doubt: StoreOutcome::None })
    }

    /// Loads a record and its slot.
    pub(super) fn load(
        vault: Arc<dyn KeyVault>,
        name: &str,
        kind: u8,
    ) -> Result<(Self, Record), StoreError> {
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
        let name = name.to_owned();
        Ok((Self { vault, name, kind, generation: found, doubt: StoreOutcome::None }, record))
    }

    /// Returns [`Durability::Power`] if the vault remembers the latest generation of a record that
    /// was stored before, because it counts only durable stores. A memory that cannot be read counts
    /// as one.
    pub(super) fn usual_durability(&self) -> Durability {
        match self.vault.latest(&self.name) {
            Ok(None) => Durability::Process,
            Ok(Some(_)) | Err(_) => Durability::Power,
        }
    }

    /// Stores the state atomically.
    pub(super) fn put(&mut self, state: &[u8], durability: Durability) -> Result<(), StoreError> {
        self.resolve()?;
        let generation = self.generation.checked_add(1).ok_or(VaultError::Conflict)?;
        let record = Record::encode(self.kind, generation, state);
        match self.vault.store(&self.name, generation, &record, durability) {
            Ok(()) => {
                self.generation = generation;
                Ok(())
            }
            Err(why) => {
                self.doubt = match why {
                    VaultError::Conflict => StoreOutcome::Lost,
                    VaultError::Failed(_) => StoreOutcome::Failed(record),
                };
                Err(why.into())
            }
        }
    }

    /// Checks, without a store, that no other writer has changed the slot.
    pub(super) fn check(&mut self) -> Result<(), StoreError> {
        self.resolve()?;
        let held = self.vault.load(&self.name)?;
        let held = held.and_then(|bytes| Record::decode(&bytes).ok());
        if held.is_some_and(|record| record.generation == self.generation) {
            return Ok(());
        }
        self.doubt = StoreOutcome::Lost;
        Err(VaultError::Conflict.into())
    }

    /// Determines the outcome of a failed store: the vault holds the previous record, the attempted
    /// one, or another writer's.
    pub(super) fn resolve(&mut self) -> Result<(), StoreError> {
        let tried = match &self.doubt {
            StoreOutcome::None => return Ok(()),
            StoreOutcome::Lost => return Err(VaultError::Conflict.into()),
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
            StoreOutcome::Lost => Err(VaultError::Conflict.into()),
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
