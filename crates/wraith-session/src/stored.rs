//! States that survive their process: whatever changes a session is in a vault before anybody can see that it has changed.
//!
//! Invariant: what was given out (a sealed message, an opened text) is in the vault. So a process that is killed at any moment and starts again from its
//! vault uses no number twice and opens nothing twice. A vault that fails changes nothing: the call can be made again. Whoever finds that
//! somebody else has stored under its name stores nothing any more.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::session::{Batch, BatchError, OpenError, OpenedBatch, SealError, Session, StateError};
use crate::vault::{Durability, KeyVault, Record, RecordError, VaultError, is_record_name};

/// Why a stored state was not loaded, or not stored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// Not a name of a record.
    #[error("a name has 1 to 64 of a-z, A-Z, 0-9, - and _")]
    Name,
    /// There is a record of this name already.
    #[error("there is a record of this name already")]
    Exists,
    /// There is no record of this name.
    #[error("there is no record of this name")]
    Missing,
    /// The vault failed.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// What the vault holds is no record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The record is of something else.
    #[error("the record is not of this kind")]
    Kind,
    /// The state in the record is damaged or of another version.
    #[error(transparent)]
    State(#[from] StateError),
    /// The record is older than the newest that the vault knows of: it was restored from a copy. To go on with it would use numbers
    /// and keys again.
    #[error("the record was rolled back: generation {found}, but {latest} was stored already")]
    RolledBack {
        /// The generation of the record.
        found: u64,
        /// The latest one.
        latest: u64,
    },
    /// Nothing was sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// Nothing was sealed of a batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The message was not opened.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// The place of a state in a vault.
pub(crate) struct Slot {
    vault: Arc<dyn KeyVault>,
    name: String,
    kind: u8,
    /// The one that is known to be in the vault.
    generation: u64,
    doubt: Doubt,
}

/// What is not known of a place after a store that failed.
enum Doubt {
    /// Nothing: what was stored last is there.
    None,
    /// Whether this record was stored all the same.
    Failed(Zeroizing<Vec<u8>>),
    /// The place is somebody else's now, who has gone on from an earlier state of ours. To store would let both use the same numbers.
    Lost,
}

impl Slot {
    /// A place where nothing is yet.
    pub(crate) fn create(
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
        // A name that was used before goes on counting: an old copy must not look new.
        let generation = vault.latest(name)?.unwrap_or(0);
        Ok(Self { vault, name: name.to_owned(), kind, generation, doubt: Doubt::None })
    }

    /// What is stored, and its place.
    pub(crate) fn load(
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
        Ok((Self { vault, name, kind, generation: found, doubt: Doubt::None }, record))
    }

    pub(crate) fn put(&mut self, state: &[u8], durability: Durability) -> Result<(), StoreError> {
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
                    VaultError::Conflict => Doubt::Lost,
                    VaultError::Failed(_) => Doubt::Failed(record),
                };
                Err(why.into())
            }
        }
    }

    /// Finds out what a store that failed has left: the record before, the one that was to be stored, or somebody else's.
    fn resolve(&mut self) -> Result<(), StoreError> {
        let tried = match &self.doubt {
            Doubt::None => return Ok(()),
            Doubt::Lost => return Err(VaultError::Conflict.into()),
            Doubt::Failed(tried) => tried,
        };
        let held = self.vault.load(&self.name)?;
        let held = held.as_ref().map(|bytes| (Record::decode(bytes).ok(), bytes));
        self.doubt = match held {
            Some((_, bytes)) if bytes == tried => {
                self.generation += 1;
                Doubt::None
            }
            Some((Some(record), _)) if record.generation == self.generation => Doubt::None,
            _ => Doubt::Lost,
        };
        match self.doubt {
            Doubt::Lost => Err(VaultError::Conflict.into()),
            Doubt::None | Doubt::Failed(_) => Ok(()),
        }
    }
}

/// Kind of a session's record.
const SESSION: u8 = 1;

/// A session that is kept in a vault.
pub struct StoredSession {
    session: Session,
    slot: Slot,
}

impl StoredSession {
    /// Keeps a session that is new, under a name that is not in use.
    ///
    /// # Errors
    /// [`StoreError::Name`], [`StoreError::Exists`], [`StoreError::Vault`].
    pub fn create(
        vault: Arc<dyn KeyVault>,
        name: &str,
        session: Session,
    ) -> Result<Self, StoreError> {
        let slot = Slot::create(vault, name, SESSION)?;
        let mut stored = Self { session, slot };
        stored.save()?;
        Ok(stored)
    }

    /// Goes on with the session of this name. Of two that do, on whatever machines, one fails as long as they share the vault.
    ///
    /// # Errors
    /// Says what is wrong with the record; [`StoreError::RolledBack`] where the vault can tell.
    pub fn load(vault: Arc<dyn KeyVault>, name: &str) -> Result<Self, StoreError> {
        let (slot, record) = Slot::load(vault, name, SESSION)?;
        let mut stored = Self { session: Session::restore(&record.state)?, slot };
        stored.save()?;
        Ok(stored)
    }

    /// The session, for all that changes nothing.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// As [`Session::set_rekey`]. It is not part of the record.
    pub fn set_rekey(&mut self, rekey: crate::Rekey) {
        self.session.set_rekey(rekey);
    }

    /// As [`Session::set_time`].
    pub fn set_time(&mut self, now: std::time::Duration) {
        self.session.set_time(now);
    }

    /// As [`Session::seal`]. The vault is written once in a few hundred messages.
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
    /// [`StoreError::Open`], [`StoreError::Vault`]: nothing has changed.
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
    /// [`StoreError::Vault`]: nothing has changed, and no message was opened. Messages that are none are among the results.
    pub fn open_many(&mut self, aad: &[u8], messages: &[&[u8]]) -> Result<OpenedBatch, StoreError> {
        let batch = self.session.verify_many(aad, messages);
        let verified = batch.verified();
        if !verified.is_empty() {
            self.slot.put(&self.session.state_with(&verified), Durability::Process)?;
        }
        Ok(self.session.accept_many(batch))
    }

    /// Stores the session now, with room for further numbers.
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
        f.debug_struct("StoredSession").field("name", &self.slot.name).finish_non_exhaustive()
    }
}
