//! Locking without poisoning, and the wakers of the tasks that wait for a change of the locked
//! state.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

/// Locks `mutex` and ignores poisoning. Every critical section of this crate leaves its data valid
/// at each step, so a panic of another thread does not invalidate the data.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tasks that wait for one kind of change of an object. At most one entry per task.
#[derive(Debug, Default)]
pub(crate) struct Wakers(Vec<Waker>);

impl Wakers {
    /// Adds the task of `cx`.
    pub(crate) fn register(&mut self, cx: &Context<'_>) {
        if !self.0.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.0.push(cx.waker().clone());
        }
    }
}

/// Tasks to wake at the end of a round of the I/O thread. A task that waits for several events of
/// the round is woken once.
#[derive(Debug, Default)]
pub(crate) struct WakeBatch(Vec<Waker>);

/// Number of earlier entries with which a new one is compared: a task's events follow each other
/// closely, and a longer search would cost more than a second wake-up.
const COMPARED: usize = 8;

impl WakeBatch {
    /// Adds a task, if there is one.
    pub(crate) fn push(&mut self, waker: Option<Waker>) {
        let Some(waker) = waker else { return };
        if !self.0.iter().rev().take(COMPARED).any(|other| other.will_wake(&waker)) {
            self.0.push(waker);
        }
    }

    /// Moves all tasks of `wakers` into the batch.
    pub(crate) fn take_from(&mut self, wakers: &mut Wakers) {
        wakers.0.drain(..).for_each(|waker| self.push(Some(waker)));
    }

    /// Wakes all tasks. No lock may be held: a waker can run any code.
    pub(crate) fn wake(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }

    /// Returns whether there is no task.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of tasks.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes a task.
    pub(crate) fn pop(&mut self) -> Option<Waker> {
        self.0.pop()
    }

    /// Moves all tasks to the end of `wakers`.
    pub(crate) fn append_to(&mut self, wakers: &mut Vec<Waker>) {
        wakers.append(&mut self.0);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    /// A waker that counts its calls.
    #[derive(Debug, Default)]
    pub(crate) struct Count(pub(crate) AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_task_is_woken_once_per_batch_however_many_events_it_waits_for() {
        let tasks = [Arc::new(Count::default()), Arc::new(Count::default())];
        let mut batch = WakeBatch::default();
        for i in [0, 1, 0, 1, 0] {
            batch.push(Some(Waker::from(Arc::clone(&tasks[i]))));
        }
        let counts = || tasks.each_ref().map(|task| task.0.load(Ordering::Relaxed));
        assert_eq!(counts(), [0, 0]);
        batch.wake();
        assert_eq!(counts(), [1, 1]);
        batch.wake();
        assert_eq!(counts(), [1, 1]);
    }
}
