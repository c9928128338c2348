//! Locking: a thread that panicked elsewhere left nothing half-done behind the locks of this crate.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, whoever panicked before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
