//! The vault: storage for saved states. It is a trait, so that an application can use its
//! platform's secret store. `FileVault` (on Unix, with the feature `file-vault`, which is on by
//! default) stores them in a folder.

#[cfg(all(unix, feature = "file-vault"))]
mod file;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use thiserror::Error;
use wraith_crypto::{equal, kdf};
use zeroize::Zeroizing;

use crate::bytes::Reader;

#[cfg(all(unix, feature = "file-vault"))]
pub use file::FileVault;

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
    /// is no record, `generation` must be the successor of [`latest`](Self::latest), or 1. After
    /// this or any other error the existing record stays.
    fn store(
        &self,
        name: &str,
        generation: u64,
        record: &[u8],
        durability: Durability,
    ) -> Result<(), VaultError>;

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
        let mut out = Zeroizing::new(Vec::with_capacity(len));
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, kind]);
        out.extend_from_slice(&generation.to_le_bytes());
        out.extend_from_slice(state);
        let check = kdf::hash(&out);
        out.extend_from_slice(&check);
        out
    }

    /// Decodes a record. A vault that keeps several copies calls this function, too, and uses the
    /// valid copy with the highest generation.
    ///
    /// # Errors
    /// [`RecordError`] if the bytes have another version or are damaged.
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
