//! Storage for saved states: an interface that other languages can implement with their platform's
//! secret store.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use thiserror::Error;
pub use wraith::session::vault::Durability;
use wraith::session::vault::{self as inner, FileVault, NewRecord};
use zeroize::Zeroizing;

use crate::error::WraithError;

/// The failure that a stored record must survive.
#[uniffi::remote(Enum)]
pub enum Durability {
    /// The end of the process, clean or not.
    Process,
    /// A power cut.
    Power,
}

/// The error of a vault operation. Any other exception of an implementation becomes
/// [`VaultError::Failed`].
#[derive(Clone, Debug, PartialEq, Eq, Error, uniffi::Error)]
pub enum VaultError {
    /// The vault holds a record of this or a later generation.
    #[error("the vault holds a newer record of this name; another process may use it")]
    Conflict,
    /// Any other failure.
    #[error("the vault failed: {why}")]
    Failed {
        /// Description by the vault.
        why: String,
    },
}

/// Converts a foreign exception of an unknown type.
impl From<uniffi::UnexpectedUniFFICallbackError> for VaultError {
    fn from(error: uniffi::UnexpectedUniFFICallbackError) -> Self {
        Self::Failed { why: error.reason }
    }
}

/// A key-value store for records, which your application can implement. Records hold keys, so
/// encrypt them at rest.
///
/// The guarantees of stored sessions rest on three duties of an implementation:
/// - A record is replaced atomically.
/// - Of two stores with the same generation one fails with [`VaultError::Conflict`].
/// - A record stored with [`Durability::Power`] is never followed by an older one.
///
/// The library calls the vault on the thread that uses the session, and holds the session during
/// the call. If the vault uses a held session, conversation or prekeys on that thread, the call
/// throws [`WraithError::WrongState`].
///
/// A call that ends without a result counts as failed. Some exceptions do not cross the language
/// border, and end a call like that: `KeyboardInterrupt` and `SystemExit` in Python, an `Error` on
/// the JVM. So [`KeyVault::store`] and [`KeyVault::delete`] return a value that confirms their
/// completion.
#[uniffi::export(with_foreign)]
pub trait KeyVault: Send + Sync {
    /// Replaces the record of this name with `record`, unless the existing one has this generation
    /// or a later one. Returns `generation` once the record is stored. Any other number, such as 0,
    /// means that it may not be stored.
    ///
    /// # Errors
    /// The existing record stays.
    fn store(
        &self,
        name: String,
        generation: u64,
        record: Vec<u8>,
        durability: Durability,
    ) -> Result<u64, VaultError>;

    /// Returns the record of this name, or null if there is none.
    ///
    /// # Errors
    /// The vault cannot be read.
    fn load(&self, name: String) -> Result<Option<Vec<u8>>, VaultError>;

    /// Deletes the record of this name, if there is one. Returns true once there is none.
    ///
    /// # Errors
    /// The record still exists.
    fn delete(&self, name: String) -> Result<bool, VaultError>;

    /// Returns the latest generation that was ever stored under this name with
    /// [`Durability::Power`]. The number must come from a memory that is not restored together with
    /// the records. Returns null if there is no such memory. With such a memory, a session stores
    /// opened messages with [`Durability::Power`].
    ///
    /// # Errors
    /// The counter cannot be read.
    fn latest(&self, name: String) -> Result<Option<u64>, VaultError>;
}

/// Returns a vault in memory: for tests, and for states that need not survive the process.
#[uniffi::export]
pub fn memory_vault() -> Arc<dyn KeyVault> {
    Arc::new(ExportedVault(inner::MemoryVault::default()))
}

/// Opens a vault in this folder, for one process at a time. It has no encryption beyond that of the
/// disk. `anchor` is another folder, preferably on another disk; with it the vault detects records
/// restored from a copy of the first folder. Each batch of opened messages then waits for the disk.
///
/// # Errors
/// [`WraithError::Vault`] if a folder cannot be created or locked, or if another process has it
/// open.
#[uniffi::export(default(anchor = None))]
pub fn file_vault(
    folder: String,
    anchor: Option<String>,
) -> Result<Arc<dyn KeyVault>, WraithError> {
    let vault = FileVault::open(folder)?;
    Ok(Arc::new(ExportedVault(match anchor {
        Some(anchor) => vault.anchored(anchor)?,
        None => vault,
    })))
}

/// Presents a Rust vault to other languages.
struct ExportedVault<V>(V);

impl<V: inner::KeyVault> KeyVault for ExportedVault<V> {
    fn store(
        &self,
        name: String,
        generation: u64,
        record: Vec<u8>,
        durability: Durability,
    ) -> Result<u64, VaultError> {
        let record = Zeroizing::new(record);
        self.0.store(&name, NewRecord { generation, bytes: &record, durability })?;
        Ok(generation)
    }

    fn load(&self, name: String) -> Result<Option<Vec<u8>>, VaultError> {
        Ok(self.0.load(&name)?.map(|record| record.to_vec()))
    }

    fn delete(&self, name: String) -> Result<bool, VaultError> {
        self.0.delete(&name)?;
        Ok(true)
    }

    fn latest(&self, name: String) -> Result<Option<u64>, VaultError> {
        Ok(self.0.latest(&name)?)
    }
}

thread_local! {
    /// Number of active vault calls of this thread.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Marks this thread as inside a vault call until it is dropped.
struct VaultCallGuard(());

impl VaultCallGuard {
    fn enter() -> Self {
        CALLS.set(CALLS.get() + 1);
        Self(())
    }
}

impl Drop for VaultCallGuard {
    fn drop(&mut self) {
        CALLS.set(CALLS.get() - 1);
    }
}

/// Locks a stored object. Within a vault call it never waits: the holder of the lock may be waiting
/// for the end of that call.
///
/// # Errors
/// [`WraithError::WrongState`] if the object is locked and this thread is inside a vault call.
pub(crate) fn lock<T>(kept: &Mutex<T>) -> Result<MutexGuard<'_, T>, WraithError> {
    if CALLS.get() == 0 {
        // Ignores poisoning: after a panic the state matches its vault, or is marked as uncertain.
        return Ok(kept.lock().unwrap_or_else(PoisonError::into_inner));
    }
    match kept.try_lock() {
        Ok(held) => Ok(held),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(WraithError::WrongState(
            "this object is locked by a call that waits for the vault; a vault must not use it"
                .into(),
        )),
    }
}

/// Presents a vault of another language to Rust.
pub(crate) struct ForeignVault(Arc<dyn KeyVault>);

impl ForeignVault {
    pub(crate) fn of(vault: Arc<dyn KeyVault>) -> Arc<dyn inner::KeyVault> {
        Arc::new(Self(vault))
    }
}

impl inner::KeyVault for ForeignVault {
    fn store(&self, name: &str, record: NewRecord<'_>) -> Result<(), inner::VaultError> {
        let NewRecord { generation, bytes, durability } = record;
        let _in_vault = VaultCallGuard::enter();
        let stored = self.0.store(name.to_owned(), generation, bytes.to_vec(), durability)?;
        check_confirmed(stored == generation, "store")
    }

    fn load(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, inner::VaultError> {
        let _in_vault = VaultCallGuard::enter();
        Ok(self.0.load(name.to_owned())?.map(Zeroizing::new))
    }

    fn delete(&self, name: &str) -> Result<(), inner::VaultError> {
        let _in_vault = VaultCallGuard::enter();
        let is_gone = self.0.delete(name.to_owned())?;
        check_confirmed(is_gone, "delete")
    }

    fn latest(&self, name: &str) -> Result<Option<u64>, inner::VaultError> {
        let _in_vault = VaultCallGuard::enter();
        Ok(self.0.latest(name.to_owned())?)
    }
}

/// Checks that a call confirmed its completion. An interrupted call leaves the default return
/// value, 0 or false.
fn check_confirmed(is_confirmed: bool, call: &str) -> Result<(), inner::VaultError> {
    match is_confirmed {
        true => Ok(()),
        false => Err(inner::VaultError::Failed(format!("{call} did not confirm its completion"))),
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
