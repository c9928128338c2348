//! Where saved states are kept: an interface that another language can implement, with what its system has for secrets.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

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
/// anything older. A call comes from the thread that uses the session, while the session is held: what uses a session, conversation or prekeys in it
/// that are held, from this thread, is refused with [`WraithError::WrongState`].
///
/// No call that ends without an answer counts as done. What some languages do not hand on (`KeyboardInterrupt` and `SystemExit` in Python, an
/// `Error` on the JVM) ends one like that, so [`KeyVault::store`] and [`KeyVault::delete`] return what says that they got to their end.
#[uniffi::export(with_foreign)]
pub trait KeyVault: Send + Sync {
    /// Puts `record` in the place of the one of this name, unless that has this generation or a later one. Returns `generation` once it is stored:
    /// any other number, 0 above all, says that it is not known to be.
    ///
    /// # Errors
    /// The one that was there stays.
    fn store(
        &self,
        name: String,
        generation: u64,
        record: Vec<u8>,
        durability: Durability,
    ) -> Result<u64, VaultError>;

    /// The record of this name, if there is one.
    ///
    /// # Errors
    /// It could not be found out.
    fn load(&self, name: String) -> Result<Option<Vec<u8>>, VaultError>;

    /// Removes the record of this name, if there is one. Returns true once there is none.
    ///
    /// # Errors
    /// It is still there.
    fn delete(&self, name: String) -> Result<bool, VaultError>;

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
    ) -> Result<u64, VaultError> {
        let durability = match durability {
            Durability::Process => inner::Durability::Process,
            Durability::Power => inner::Durability::Power,
        };
        let record = Zeroizing::new(record);
        self.0.store(&name, generation, &record, durability)?;
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
    /// Calls of vaults that this thread is in.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// This thread is in a call of a vault, as long as this lives.
struct InVault(());

impl InVault {
    fn enter() -> Self {
        CALLS.set(CALLS.get() + 1);
        Self(())
    }
}

impl Drop for InVault {
    fn drop(&mut self) {
        CALLS.set(CALLS.get() - 1);
    }
}

/// Waits for what is kept in a vault, but never in a call of a vault: whoever has it may be waiting for the end of that call.
///
/// # Errors
/// [`WraithError::WrongState`] if it is held, and this thread is in a call of a vault.
pub(crate) fn hold<T>(kept: &Mutex<T>) -> Result<MutexGuard<'_, T>, WraithError> {
    if CALLS.get() == 0 {
        // A panic elsewhere leaves a state that is in its vault as it is here, or knows that it is not.
        return Ok(kept.lock().unwrap_or_else(PoisonError::into_inner));
    }
    match kept.try_lock() {
        Ok(held) => Ok(held),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(WraithError::WrongState(
            "this is held by a call that waits for a vault, and was used in a call of a vault"
                .into(),
        )),
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
        let _in_vault = InVault::enter();
        let stored = self.0.store(name.to_owned(), generation, record.to_vec(), durability)?;
        done(stored == generation, "store")
    }

    fn load(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, inner::VaultError> {
        let _in_vault = InVault::enter();
        Ok(self.0.load(name.to_owned())?.map(Zeroizing::new))
    }

    fn delete(&self, name: &str) -> Result<(), inner::VaultError> {
        let _in_vault = InVault::enter();
        let is_gone = self.0.delete(name.to_owned())?;
        done(is_gone, "delete")
    }

    fn latest(&self, name: &str) -> Result<Option<u64>, inner::VaultError> {
        let _in_vault = InVault::enter();
        Ok(self.0.latest(name.to_owned())?)
    }
}

/// Whether a call has said that it got to its end. One that was cut off says 0 or false, which is what the place of an answer holds before.
fn done(says_so: bool, call: &str) -> Result<(), inner::VaultError> {
    match says_so {
        true => Ok(()),
        false => Err(inner::VaultError::Failed(format!("{call} did not say that it is done"))),
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

#[cfg(test)]
mod tests {
    use wraith::session::vault::KeyVault as _;

    use super::*;

    /// A vault whose calls end without having done anything: its answer to each is `says`.
    struct CutOff {
        says: u64,
    }

    impl KeyVault for CutOff {
        fn store(&self, _: String, _: u64, _: Vec<u8>, _: Durability) -> Result<u64, VaultError> {
            Ok(self.says)
        }

        fn load(&self, _: String) -> Result<Option<Vec<u8>>, VaultError> {
            Ok(None)
        }

        fn delete(&self, _: String) -> Result<bool, VaultError> {
            Ok(false)
        }

        fn latest(&self, _: String) -> Result<Option<u64>, VaultError> {
            Ok(None)
        }
    }

    #[test]
    fn a_call_that_ends_without_saying_so_has_not_stored_or_deleted_anything() {
        for (says, is_stored) in [(0, false), (6, false), (7, true)] {
            let vault = Theirs(Arc::new(CutOff { says }));
            let stored = vault.store("anna", 7, b"record", inner::Durability::Power);
            assert_eq!(stored.is_ok(), is_stored, "{says}");
            assert!(matches!(vault.delete("anna"), Err(inner::VaultError::Failed(_))));
        }
    }
}
