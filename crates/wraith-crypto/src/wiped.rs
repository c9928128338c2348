//! Memory of a value that has secrets and does not wipe them itself.
#![allow(unsafe_code)]

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

use zeroize::{Zeroize, ZeroizeOnDrop};

/// A value in a place of its own, which is wiped after the value was dropped. The value does not move while it is in
/// there, so it leaves no copies behind.
///
/// Invariant: there is a value until [`Drop`] has taken it away.
pub struct Wiped<T>(Box<MaybeUninit<T>>);

impl<T> Wiped<T> {
    /// Moves `value`, which should have no secrets yet, to its place.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(Box::new(MaybeUninit::new(value)))
    }
}

impl<T> Deref for Wiped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: there is a value, by the invariant.
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
        // SAFETY: there is a value, and from here on nobody can reach it any more.
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
