//! Locking without poisoning, and the wakers of the tasks that wait for a change of the locked
//! state.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

/// Locks `mutex` and ignores poisoning. Every critical section of this crate leaves its data valid
/// at each step, so a panic of another thread does not invalidate the data.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tasks that wait for any change of one object. At most one entry per task.
#[derive(Debug, Default)]
pub(crate) struct Wakers(Vec<Waker>);

impl Wakers {
    /// Adds the task of `cx`.
    pub(crate) fn register(&mut self, cx: &Context<'_>) {
        if !self.0.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.0.push(cx.waker().clone());
        }
    }

    /// Takes all tasks out, so that they can be woken after the lock is released.
    #[must_use]
    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Wakes all tasks.
    pub(crate) fn wake(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}
