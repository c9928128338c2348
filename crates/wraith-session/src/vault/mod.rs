//! The vault: storage for states that survive their process. It is a trait, so that an application
//! can use its platform's secret store. `FileVault` (on Unix, with the feature `file-vault`, which
//! is on by default) stores them in a folder.
//!
//! A [`Session`](crate::Session), a [`Ratchet`](crate::ratchet::Ratchet) or
//! [`PreKeys`](crate::ratchet::PreKeys) is in memory until `keep` puts it into a vault; `load`
//! continues it from there.
//!
//! Invariant: before a call returns a message, an opened text or a bundle, the vault holds the
//! state after it. So a process that is killed at any moment and restarted from its vault uses no
//! number or key twice and opens nothing twice. If the vault fails, the state is unchanged and the
//! call can be repeated. A process that finds that another process wrote under its name stores
//! nothing any more.
//!
//! The price: if a process is killed after the store and before it uses an opened text, it loses
//! that text. The peer cannot tell this from a message lost on the way. So an application should
//! retransmit important messages until they are answered.

#[cfg(all(unix, feature = "file-vault"))]
mod file;
mod slot;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use thiserror::Error;
use wraith_crypto::{equal, kdf, redacted_debug};
use zeroize::Zeroizing;

use crate::codec::{InvalidEncoding, Reader, StateError, Writer};

#[cfg(all(unix, feature = "file-vault"))]
pub use file::FileVault;
pub(crate) use slot::{PREKEYS, RATCHET, RecordSlot, SESSION};

/// Maximum length of a record name.
pub const RECORD_NAME_BYTES_MAX: usize = 64;
const MAGIC: &[u8; 4] = b"WrSt";
const VERSION: u8 = 1;
const CHECK_BYTES: usize = 32;

/// The failure that a stored record must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, clean or not.
    Process,
    /// A power cut.
    Power,
}

/// A record to store.
#[derive(Clone, Copy)]
pub struct NewRecord<'a> {
    /// Number of stores under its name so far, this one included.
    pub generation: u64,
    /// The record itself.
    pub bytes: &'a [u8],
    /// The failure that it must survive.
    pub durability: Durability,
}

redacted_debug!(|it: NewRecord<'_>| generation: it.generation, durability: it.durability);

/// Why a vault operation failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VaultError {
    /// The vault holds a record of this or a later generation: another process uses the same name,
    /// or an older copy is in use.
    #[error("the vault holds a newer record of this name; another process may use it")]
    Conflict,
    /// Any other failure, as the vault describes it.
    #[error("the vault failed: {0}")]
    Failed(String),
}

/// Why a state was not kept in a vault or not loaded from it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// The record name is invalid.
    #[error("a name has 1 to 64 of a-z, A-Z, 0-9, - and _")]
    Name,
    /// A record of this name already exists.
    #[error("a record of this name already exists")]
    Exists,
    /// No record of this name exists.
    #[error("there is no record of this name")]
    Missing,
    /// The state is in a vault already.
    #[error("this is kept in a vault")]
    Kept,
    /// Of a conversation and its prekeys, one would be in a vault and the other not.
    #[error("keep a conversation and its prekeys both in a vault, or neither of them")]
    OneKept,
    /// The vault failed.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The vault returned bytes that are no valid record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The record holds another kind of state.
    #[error("the record holds another kind of state")]
    Kind,
    /// The state in the record is damaged or has another version.
    #[error(transparent)]
    State(#[from] StateError),
    /// The record is older than the newest that the vault has counted: it was restored from a copy.
    /// Continuing would reuse numbers and keys.
    #[error("the record was rolled back: generation {found}, but {latest} was stored already")]
    RolledBack {
        /// Generation of the record.
        found: u64,
        /// Latest stored generation.
        latest: u64,
    },
}

/// A key-value store for records. They hold keys: a reader of a record can read the messages, so
/// encrypt records at rest.
///
/// The guarantees of stored sessions rest on three duties of an implementation:
/// - A record is replaced atomically.
/// - A record is replaced only by the generation that follows it.
/// - A record stored with [`Durability::Power`] is never followed by an older one.
pub trait KeyVault: Send + Sync {
    /// Replaces the record of this name with `record`.
    ///
    /// # Errors
    /// [`VaultError::Conflict`] unless the existing record has the preceding generation. If there
    /// is no record, the generation must be the successor of [`latest`](Self::latest), or 1. After
    /// this or any other error the existing record stays.
    fn store(&self, name: &str, record: NewRecord<'_>) -> Result<(), VaultError>;

    /// Returns the record of this name, if there is one.
    ///
    /// # Errors
    /// The vault cannot be read.
    fn load(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, VaultError>;

    /// Deletes the record of this name, if there is one.
    ///
    /// # Errors
    /// The record still exists.
    fn delete(&self, name: &str) -> Result<(), VaultError>;

    /// Returns the latest generation that was ever stored under this name with
    /// [`Durability::Power`]. It must come from a memory that is not restored together with the
    /// records: a hardware counter, a server, another disk. With such a memory, stored sessions
    /// store opened messages with [`Durability::Power`]. Returns `None` without it; then a
    /// rolled-back record is not detected.
    ///
    /// # Errors
    /// The counter cannot be read.
    fn latest(&self, name: &str) -> Result<Option<u64>, VaultError> {
        let _ = name;
        Ok(None)
    }
}

/// Why bytes are no valid record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// This program does not support the version of the record.
    #[error("the record has version {0}, which this program does not support; update the program")]
    Version(u8),
    /// The bytes are truncated, changed, or no record.
    #[error("the record is damaged")]
    Damaged,
}

impl From<InvalidEncoding> for RecordError {
    fn from(_: InvalidEncoding) -> Self {
        Self::Damaged
    }
}

/// A record as it is stored.
///
/// ```text
///     "WrSt" ‖ version 1 (1) ‖ kind (1) ‖ generation (8) ‖ state ‖ BLAKE3 of all that (32)
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// Kind of the state.
    pub kind: u8,
    /// Number of stores under this name so far.
    pub generation: u64,
    /// The encoded state.
    pub state: Zeroizing<Vec<u8>>,
}

impl Record {
    /// Encodes a record.
    #[must_use]
    pub fn encode(kind: u8, generation: u64, state: &[u8]) -> Zeroizing<Vec<u8>> {
        let len = MAGIC.len() + 2 + 8 + state.len() + CHECK_BYTES;
        let mut writer = Writer::with_capacity(len);
        writer.bytes(MAGIC).u8(VERSION).u8(kind).u64(generation).bytes(state);
        let mut record = writer.finish();
        let check = kdf::hash(&record);
        record.extend_from_slice(&check);
        record
    }

    /// Decodes a record. A vault that keeps several copies calls this function, too, and uses the
    /// valid copy with the highest generation.
    ///
    /// # Errors
    /// [`RecordError`] if the bytes have another version or are damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let (body, check) = bytes.split_last_chunk::<CHECK_BYTES>().ok_or(RecordError::Damaged)?;
        let mut reader = Reader::new(body);
        if reader.array() != Ok(*MAGIC) || !equal(&kdf::hash(body), check) {
            return Err(RecordError::Damaged);
        }
        match reader.u8()? {
            VERSION => {}
            other => return Err(RecordError::Version(other)),
        }
        let (kind, generation) = (reader.u8()?, reader.u64()?);
        Ok(Self { kind, generation, state: Zeroizing::new(reader.rest().to_vec()) })
    }
}

redacted_debug!(Record, kind, generation);

/// Returns whether `name` is a valid record name: 1 to 64 of a–z, A–Z, 0–9, `-` and `_`. Such a
/// name is a valid file name on every system.
#[must_use]
pub fn is_record_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=RECORD_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain)
}

/// A vault in memory, for tests and for sessions that end with the process.
#[derive(Default)]
pub struct MemoryVault(Mutex<HashMap<String, StoredRecord>>);

/// A generation and its record.
type StoredRecord = (u64, Zeroizing<Vec<u8>>);

redacted_debug!(MemoryVault);

impl KeyVault for MemoryVault {
    fn store(&self, name: &str, record: NewRecord<'_>) -> Result<(), VaultError> {
        let NewRecord { generation, bytes, .. } = record;
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if generation != records.get(name).map_or(0, |(held, _)| *held) + 1 {
            return Err(VaultError::Conflict);
        }
        records.insert(name.to_owned(), (generation, Zeroizing::new(bytes.to_vec())));
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
