//! A value that can be taken out of an object once, for Rust methods that consume `self`.
//!
//! Other languages keep their handle after such a call. A second call returns an error and never
//! panics.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::WraithError;

/// A value until it is taken.
#[derive(Debug)]
pub(crate) struct UsedOnce<T> {
    value: Mutex<Option<T>>,
    /// Error text for a taken value, such as "this offer was answered".
    taken: &'static str,
}

impl<T> UsedOnce<T> {
    pub fn new(value: T, taken: &'static str) -> Self {
        Self { value: Mutex::new(Some(value)), taken }
    }

    /// # Errors
    /// [`WraithError::WrongState`] if it was taken before.
    pub fn take(&self) -> Result<T, WraithError> {
        self.lock().take().ok_or_else(|| WraithError::used_up(self.taken))
    }

    /// Ignores poisoning: a panic leaves a complete value or none.
    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
