//! Locking without poisoning.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`. Poisoning is ignored, because no panic leaves the data inconsistent.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
