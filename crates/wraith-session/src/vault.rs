//! Where saved states are kept: a trait, so that an application can use what its system has for secrets.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use thiserror::Error;
use wraith_crypto::{equal, kdf};
use zeroize::Zeroizing;

use crate::bytes::Reader;

/// The longest name of a record.
pub const RECORD_NAME_BYTES_MAX: usize = 64;
const MAGIC: &[u8; 4] = b"WrSt";
const VERSION: u8 = 1;
const CHECK_BYTES: usize = 32;

/// What a record has to outlive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, however it ends.
    Process,
    /// A power cut.
    Power,
}

/// A vault did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VaultError {
    /// It holds a record of this or of a later generation: another process uses the same name, or an older copy is in use.
    #[error("the vault holds a newer record of this name: is it in use elsewhere?")]
    Conflict,
    /// Anything else, in the vault's words.
    #[error("the vault failed: {0}")]
    Failed(String),
}

/// Keeps records by name. They hold keys: whoever reads one reads the messages, so it should be encrypted at rest.
///
/// What is promised to sessions rests on three things that an implementation has to keep: a record is replaced whole or not at all;
/// a record is replaced by the generation that follows it and by no other; and what was stored with [`Durability::Power`] is never
/// followed by anything older.
pub trait KeyVault: Send + Sync {
    /// Puts `record` in the place of the one of this name.
    ///
    /// # Errors
    /// [`VaultError::Conflict`] unless the one that is there has the generation before this one; where there is none, unless this is the one behind
    /// [`latest`](Self::latest), or 1. Then, and after any other failure, what is there stays.
    fn store(
        &self,
        name: &str,
        generation: u64,
        record: &[u8],
        durability: Durability,
    ) -> Result<(), VaultError>;

    /// The record of this name, if there is one.
    ///
    /// # Errors
    /// It could not be found out.
    fn load(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, VaultError>;

    /// Removes the record of this name, if there is one.
    ///
    /// # Errors
    /// It is still there.
    fn delete(&self, name: &str) -> Result<(), VaultError>;

    /// The latest generation that was ever stored under this name with [`Durability::Power`], by a memory that is not restored together with the records: a counter
    /// of the hardware, a server, another disk. `None` where there is no such memory; then a record that was rolled back is not noticed.
    ///
    /// # Errors
    /// It could not be found out.
    fn latest(&self, name: &str) -> Result<Option<u64>, VaultError> {
        let _ = name;
        Ok(None)
    }
}

/// Why a record is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// Of a version that this program does not know.
    #[error("the record is of version {0}, which this program does not know")]
    Version(u8),
    /// Torn, changed, or something else.
    #[error("the record is damaged")]
    Damaged,
}

/// A record as it is stored.
///
/// ```text
///     "WrSt" ‖ version 1 (1) ‖ kind (1) ‖ generation (8) ‖ state ‖ BLAKE3 of all that (32)
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// What the state is of.
    pub kind: u8,
    /// How many times this name was stored.
    pub generation: u64,
    /// The state.
    pub state: Zeroizing<Vec<u8>>,
}

impl Record {
    /// As bytes.
    #[must_use]
    pub fn encode(kind: u8, generation: u64, state: &[u8]) -> Zeroizing<Vec<u8>> {
        let len = MAGIC.len() + 2 + 8 + state.len() + CHECK_BYTES;
        let mut out = Zeroizing::new(Vec::with_capacity(len));
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, kind]);
        out.extend_from_slice(&generation.to_le_bytes());
        out.extend_from_slice(state);
        let check = kdf::hash(&out);
        out.extend_from_slice(&check);
        out
    }

    /// The record of these bytes. For vaults that keep more than one copy, too: the whole one with the highest generation counts.
    ///
    /// # Errors
    /// Says whether it is of another version or damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let (body, check) = bytes.split_last_chunk::<CHECK_BYTES>().ok_or(RecordError::Damaged)?;
        let mut reader = Reader(body);
        if reader.array() != Some(MAGIC) || !equal(&kdf::hash(body), check) {
            return Err(RecordError::Damaged);
        }
        let version = reader.u8().ok_or(RecordError::Damaged)?;
        if version != VERSION {
            return Err(RecordError::Version(version));
        }
        let (Some(kind), Some(generation)) = (reader.u8(), reader.u64()) else {
            return Err(RecordError::Damaged);
        };
        Ok(Self { kind, generation, state: Zeroizing::new(reader.0.to_vec()) })
    }
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Record");
        debug
            .field("kind", &self.kind)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

/// Whether a record can have this name: 1 to 64 of a–z, A–Z, 0–9, `-` and `_`, so that it can be a file's name on every system.
#[must_use]
pub fn is_record_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=RECORD_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain)
}

/// A vault in memory: for sessions that end with the process, and for tests.
#[derive(Default)]
pub struct MemoryVault(Mutex<HashMap<String, Held>>);

/// A generation and its record.
type Held = (u64, Zeroizing<Vec<u8>>);

impl std::fmt::Debug for MemoryVault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryVault").finish_non_exhaustive()
    }
}

impl KeyVault for MemoryVault {
    fn store(
        &self,
        name: &str,
        generation: u64,
        record: &[u8],
        _: Durability,
    ) -> Result<(), VaultError> {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if generation != records.get(name).map_or(0, |(held, _)| *held) + 1 {
            return Err(VaultError::Conflict);
        }
        records.insert(name.to_owned(), (generation, Zeroizing::new(record.to_vec())));
        Ok(())
    }

    fn load(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, VaultError> {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(records.get(name).map(|(_, record)| record.clone()))
    }

    fn delete(&self, name: &str) -> Result<(), VaultError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        Ok(())
    }
}
