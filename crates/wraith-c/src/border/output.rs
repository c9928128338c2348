//! Output: a buffer of the caller with its length, or the place of one value.

use std::marker::PhantomData;

use super::{Call, Plain};
use crate::status::wraith_status_t::{WRAITH_BUFFER_TOO_SMALL, WRAITH_NOT_FOUND};
use crate::status::{Failure, Outcome};

/// A buffer of the caller, and the place for the used length. It is never read.
pub struct Output<'c> {
    out: *mut u8,
    cap: usize,
    len: OutPtr<'c, usize>,
}

impl<'c> Output<'c> {
    pub(super) fn new(_call: &'c Call, out: *mut u8, cap: usize, len: OutPtr<'c, usize>) -> Self {
        Self { out, cap, len }
    }

    /// Returns the size of the buffer.
    pub fn cap(&self) -> usize {
        self.cap
    }

    /// Checks for room for `needed` bytes. If there is too little, writes `needed` to `*out_len`
    /// and fails. Must be called before any state changes.
    pub fn room(&self, needed: usize) -> Outcome {
        if needed <= self.cap {
            return Ok(());
        }
        self.len.write(needed);
        let words = format!("the buffer has {} bytes, and {needed} are needed", self.cap);
        Err(Failure::new(WRAITH_BUFFER_TOO_SMALL, words))
    }

    /// Writes `bytes`, the complete result.
    pub fn write(self, bytes: &[u8]) -> Outcome {
        self.room(bytes.len())?;
        if !bytes.is_empty() {
            // SAFETY: there is room, and the memory is writable by the caller's promise.
            // `copy_from` allows overlap.
            unsafe { self.out.copy_from(bytes.as_ptr(), bytes.len()) };
        }
        self.len.write(bytes.len());
        Ok(())
    }

    /// Writes bytes that may not exist. If they do not, fails with this message.
    pub fn write_found(self, bytes: Option<impl AsRef<[u8]>>, missing: &'static str) -> Outcome {
        let bytes = bytes.ok_or_else(|| Failure::new(WRAITH_NOT_FOUND, missing))?;
        self.write(bytes.as_ref())
    }
}

/// Writes a value that the caller may not want.
pub fn write_wanted<T: Plain>(place: Option<&OutPtr<'_, T>>, value: T) {
    if let Some(place) = place {
        place.write(value);
    }
}

/// The place of one value. It is never read.
pub struct OutPtr<'c, T>(*mut T, PhantomData<&'c Call>);

impl<'c, T: Plain> OutPtr<'c, T> {
    pub(super) fn new(_call: &'c Call, place: *mut T) -> Self {
        Self(place, PhantomData)
    }

    /// Writes the value that `make` returns.
    pub fn write_result(&self, make: impl FnOnce() -> Outcome<T>) -> Outcome {
        self.write(make()?);
        Ok(())
    }

    /// Writes the value.
    pub fn write(&self, value: T) {
        // SAFETY: not NULL and aligned, as `Call::out` checked, and writable by the caller's
        // promise. A T has nothing to drop.
        unsafe { self.0.write(value) }
    }
}
