//! A wrapper that wipes a value on drop, for types that hold secrets and do not wipe themselves.
#![allow(unsafe_code)]

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use zeroize::{Zeroize, ZeroizeOnDrop};

/// A box that wipes its memory after its value has been dropped. The value never moves inside the
/// box, so it leaves no copies elsewhere.
///
/// Invariant: the box holds a valid value until [`Drop`] drops it.
pub struct Wiped<T>(Box<MaybeUninit<T>>);

impl<T> Wiped<T> {
    /// Moves `value` into a new box. It should not contain secrets yet.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(Box::new(MaybeUninit::new(value)))
    }
}

impl<T> Deref for Wiped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: by the invariant, the box holds a valid value.
        unsafe { self.0.assume_init_ref() }
    }
}

impl<T> DerefMut for Wiped<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { self.0.assume_init_mut() }
    }
}

impl<T> Drop for Wiped<T> {
    fn drop(&mut self) {
        // SAFETY: by the invariant, the box holds a valid value; nothing can access it from here
        // on.
        unsafe { self.0.assume_init_drop() }
        (*self.0).zeroize();
    }
}

impl<T> ZeroizeOnDrop for Wiped<T> {}

impl<T> fmt::Debug for Wiped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wiped").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn the_value_can_be_used_and_is_dropped_once() {
        let witness = Rc::new(());
        let mut wiped = Wiped::new((Rc::clone(&witness), 1));
        wiped.1 += 1;
        assert_eq!(wiped.1, 2);
        assert_eq!(Rc::strong_count(&witness), 2);
        assert_eq!(format!("{wiped:?}"), "Wiped { .. }");
        drop(wiped);
        assert_eq!(Rc::strong_count(&witness), 1);
    }
}
