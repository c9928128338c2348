//! Wakes many tasks of one runtime at the price of one.
//!
//! A wake-up from another thread costs a system call on most runtimes, and one from a thread of the
//! runtime itself does not. So the I/O thread wakes only the first task of a large batch. The first
//! call into this crate from any task wakes the others, on its own thread.
//!
//! That call may never come: the first task may have ended, or be busy elsewhere. So the I/O thread
//! wakes the others itself after [`RELAY_TIME`]. It sleeps no longer than that while any are left.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Duration;

use crate::lock::{WakeBatch, lock};

/// Maximum time for which tasks wait for the first one: longer than a thread usually takes to wake
/// up on a busy machine.
pub(crate) const RELAY_TIME: Duration = Duration::from_micros(500);
/// Maximum number of tasks that the I/O thread wakes itself.
const DIRECT_MAX: usize = 4;

/// Tasks that another task will wake.
#[derive(Debug, Default)]
pub(crate) struct WakeRelay {
    /// Whether `wakers` is not empty.
    pending: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

impl WakeRelay {
    /// I/O thread: wakes the tasks of `batch`, or leaves them to the first one. No lock may be held:
    /// a waker can run any code. Returns true if it has left some, and none was left before.
    pub(crate) fn start(&self, batch: &mut WakeBatch) -> bool {
        if batch.len() <= DIRECT_MAX {
            batch.wake();
            return false;
        }
        let mut wakers = lock(&self.wakers);
        // The first task of an earlier batch will wake those of this one, too.
        let first = if wakers.is_empty() { batch.pop() } else { None };
        batch.append_to(&mut wakers);
        self.pending.store(true, Ordering::Release);
        drop(wakers);
        let started = first.is_some();
        first.into_iter().for_each(Waker::wake);
        started
    }

    /// Wakes the tasks that are left. No lock may be held.
    #[inline]
    pub(crate) fn pass_on(&self) {
        if self.is_pending() {
            self.wake_all();
        }
    }

    /// Returns whether tasks are left.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    #[cold]
    fn wake_all(&self) {
        let mut left = {
            let mut wakers = lock(&self.wakers);
            self.pending.store(false, Ordering::Release);
            std::mem::take(&mut *wakers)
        };
        left.drain(..).for_each(Waker::wake);
        // The memory serves the next batch.
        let mut wakers = lock(&self.wakers);
        if wakers.capacity() == 0 {
            *wakers = left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::tests::Count;
    use std::sync::Arc;

    /// Returns `n` tasks, and a batch of them.
    fn batch(n: usize) -> (Vec<Arc<Count>>, WakeBatch) {
        let tasks: Vec<_> = (0..n).map(|_| Arc::<Count>::default()).collect();
        let mut batch = WakeBatch::default();
        tasks.iter().for_each(|task| batch.push(Some(Waker::from(Arc::clone(task)))));
        (tasks, batch)
    }

    fn woken(tasks: &[Arc<Count>]) -> usize {
        tasks.iter().map(|task| task.0.load(Ordering::Relaxed)).sum()
    }

    #[test]
    fn one_task_of_a_large_batch_is_woken_and_a_call_wakes_the_others() {
        let relay = WakeRelay::default();
        let (first, mut many) = batch(20);
        assert!(relay.start(&mut many));
        assert_eq!(woken(&first), 1);
        let (second, mut more) = batch(30);
        assert!(!relay.start(&mut more), "the same task wakes them");
        assert_eq!(woken(&second), 0);
        relay.pass_on();
        assert_eq!((woken(&first), woken(&second)), (20, 30));
        relay.pass_on();
        assert_eq!((woken(&first), woken(&second)), (20, 30));
        assert!(!relay.is_pending());
    }

    #[test]
    fn a_small_batch_is_woken_at_once() {
        let relay = WakeRelay::default();
        let (tasks, mut few) = batch(DIRECT_MAX);
        assert!(!relay.start(&mut few));
        assert_eq!(woken(&tasks), DIRECT_MAX);
        assert!(!relay.is_pending());
    }
}
