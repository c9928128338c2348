//! Where saved states are kept: an interface that another language can implement, with what its system has for secrets.

use std::sync::Arc;

use thiserror::Error;
use wraith::FileVault;
use wraith::session::vault as inner;
use zeroize::Zeroizing;

use crate::error::WraithError;

/// What a record has to outlive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum Durability {
    /// The end of the process, however it ends.
    Process,
    /// A power cut.
    Power,
}

/// A vault did not do what it was asked for. Any other exception that an implementation throws becomes [`VaultError::Failed`].
#[derive(Clone, Debug, PartialEq, Eq, Error, uniffi::Error)]
pub enum VaultError {
    /// It holds a record of this or of a later generation.
    #[error("the vault holds a newer record of this name: is it in use elsewhere?")]
    Conflict,
    /// Anything else.
    #[error("the vault failed: {why}")]
    Failed {
        /// In the vault's words.
        why: String,
    },
}

/// An exception of the other language that is none of ours.
impl From<uniffi::UnexpectedUniFFICallbackError> for VaultError {
    fn from(error: uniffi::UnexpectedUniFFICallbackError) -> Self {
        Self::Failed { why: error.reason }
    }
}

/// Keeps records by name. They hold keys, so they should be encrypted at rest.
///
/// What is promised to sessions rests on three things that an implementation has to keep: a record is replaced whole or not at all;
/// of two stores with the same generation one fails with [`VaultError::Conflict`]; and what was stored with [`Durability::Power`] is never followed by
/// anything older. A call comes from the thread that uses the session, while the session is held: it must not use that session.
#[uniffi::export(with_foreign)]
pub trait KeyVault: Send + Sync {
    /// Puts `record` in the place of the one of this name, unless that has this generation or a later one.
    ///
    /// # Errors
    /// The one that was there stays.
    fn store(
        &self,
        name: String,
        generation: u64,
        record: Vec<u8>,
        durability: Durability,
    ) -> Result<(), VaultError>;

    /// The record of this name, if there is one.
    ///
    /// # Errors
    /// It could not be found out.
    fn load(&self, name: String) -> Result<Option<Vec<u8>>, VaultError>;

    /// Removes the record of this name, if there is one.
    ///
    /// # Errors
    /// It is still there.
    fn delete(&self, name: String) -> Result<(), VaultError>;

    /// The latest generation that was ever stored under this name, by a memory that is not restored together with the records; none where
    /// there is no such memory.
    ///
    /// # Errors
    /// It could not be found out.
    fn latest(&self, name: String) -> Result<Option<u64>, VaultError>;
}

/// A vault that lasts as long as it is held: for tests, and for states that need not outlive the process.
#[uniffi::export]
pub fn memory_vault() -> Arc<dyn KeyVault> {
    Arc::new(Ours(inner::MemoryVault::default()))
}

/// A vault in this folder, which one process has at a time. It is not encrypted beside what the disk is. With `anchor`, another folder, best on
/// another disk, it notices records that come back from a copy of the first one.
///
/// # Errors
/// [`WraithError::Vault`] if a folder cannot be made or locked, or another process has it.
#[uniffi::export(default(anchor = None))]
pub fn file_vault(
    folder: String,
    anchor: Option<String>,
) -> Result<Arc<dyn KeyVault>, WraithError> {
    let open = || -> Result<FileVault, inner::VaultError> {
        let vault = FileVault::open(folder)?;
        match anchor {
            Some(anchor) => vault.anchored(anchor),
            None => Ok(vault),
        }
    };
    let vault = open().map_err(|error| WraithError::Vault(error.to_string()))?;
    Ok(Arc::new(Ours(vault)))
}

/// A vault of Rust, seen from another language.
struct Ours<V>(V);

impl<V: inner::KeyVault> KeyVault for Ours<V> {
    fn store(
        &self,
        name: String,
        generation: u64,
        record: Vec<u8>,
        durability: Durability,
    ) -> Result<(), VaultError> {
        let durability = match durability {
            Durability::Process => inner::Durability::Process,
            Durability::Power => inner::Durability::Power,
        };
        let record = Zeroizing::new(record);
        Ok(self.0.store(&name, generation, &record, durability)?)
    }

    fn load(&self, name: String) -> Result<Option<Vec<u8>>, VaultError> {
        Ok(self.0.load(&name)?.map(|record| record.to_vec()))
    }

    fn delete(&self, name: String) -> Result<(), VaultError> {
        Ok(self.0.delete(&name)?)
    }

    fn latest(&self, name: String) -> Result<Option<u64>, VaultError> {
        Ok(self.0.latest(&name)?)
    }
}

/// A vault of any language, seen from Rust.
pub(crate) struct Theirs(pub Arc<dyn KeyVault>);

impl inner::KeyVault for Theirs {
    fn store(
        &self,
        name: &str,
        generation: u64,
        record: &[u8],
        durability: inner::Durability,
    ) -> Result<(), inner::VaultError> {
        let durability = match durability {
            inner::Durability::Process => Durability::Process,
            inner::Durability::Power => Durability::Power,
        };
        Ok(self.0.store(name.to_owned(), generation, record.to_vec(), durability)?)
    }

    fn load(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, inner::VaultError> {
        Ok(self.0.load(name.to_owned())?.map(Zeroizing::new))
    }

    fn delete(&self, name: &str) -> Result<(), inner::VaultError> {
        Ok(self.0.delete(name.to_owned())?)
    }

    fn latest(&self, name: &str) -> Result<Option<u64>, inner::VaultError> {
        Ok(self.0.latest(name.to_owned())?)
    }
}

impl From<inner::VaultError> for VaultError {
    fn from(error: inner::VaultError) -> Self {
        match error {
            inner::VaultError::Conflict => Self::Conflict,
            inner::VaultError::Failed(why) => Self::Failed { why },
        }
    }
}

impl From<VaultError> for inner::VaultError {
    fn from(error: VaultError) -> Self {
        match error {
            VaultError::Conflict => Self::Conflict,
            VaultError::Failed { why } => Self::Failed(why),
        }
    }
}
