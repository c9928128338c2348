//! Memory of objects that are over, for new ones.
//!
//! Each object owns its list, and the list owns the memory of objects. So the I/O thread closes the
//! list at its end.

use std::sync::Mutex;

use crate::lock::lock;

/// Maximum number of spare objects.
const SPARE_MAX: usize = 256;

/// Spare objects.
#[derive(Debug)]
pub(crate) struct Spare<T>(Mutex<Option<Vec<T>>>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl<T> Spare<T> {
    pub(crate) fn pop(&self) -> Option<T> {
        lock(&self.0).as_mut()?.pop()
    }

    pub(crate) fn push(&self, object: T) {
        if let Some(objects) = &mut *lock(&self.0)
            && objects.len() < SPARE_MAX
        {
            objects.push(object);
        }
    }

    /// Frees the list. No object is added from now on.
    pub(crate) fn close(&self) {
        let objects = lock(&self.0).take();
        drop(objects);
    }
}
