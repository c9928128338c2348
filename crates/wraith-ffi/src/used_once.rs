//! What can be taken out of an object once: a value that a Rust method would consume.
//!
//! Other languages keep their handle after such a call. The second call is an error, never a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::WraithError;

/// A value until somebody takes it.
#[derive(Debug)]
pub(crate) struct UsedOnce<T> {
    value: Mutex<Option<T>>,
    /// What the error says of the one that has been taken: "this offer was answered".
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

    /// Puts back what [`UsedOnce::take`] gave, or what came of it.
    pub fn put_back(&self, value: T) {
        *self.lock() = Some(value);
    }

    /// Works on it where it is, one thread after the other.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if it was taken before.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Result<R, WraithError> {
        match &mut *self.lock() {
            Some(value) => Ok(work(value)),
            None => Err(WraithError::used_up(self.taken)),
        }
    }

    /// A panic while it was held leaves a whole value or none.
    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_an_error_to_whoever_comes_second() {
        let once = UsedOnce::new(1, "this offer was answered");
        assert_eq!(once.with(|value| *value + 1), Ok(2));
        assert_eq!(once.take(), Ok(1));
        let gone = WraithError::WrongState("this offer was answered already".into());
        assert_eq!(once.take(), Err(gone.clone()));
        assert_eq!(once.with(|value| *value), Err(gone));
        once.put_back(3);
        assert_eq!(once.take(), Ok(3));
    }
}
