//! Cancellation of a transfer from another thread, without polling: waiting threads subscribe to be
//! woken.
//!
//! Invariant: each subscriber is called at most once, after [`Cancel::is_cancelled`] returns true.
//! A subscriber that registers after the cancellation is called at once. No lock is held during the
//! call.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::lock::lock;

/// Cancels a transfer from another thread. The transfer ends at once with
/// [`crate::TransferError::Cancelled`] and keeps the files and chunks that have arrived. Clones
/// share the same cancellation.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Shared>);

#[derive(Default)]
struct Shared {
    cancelled: AtomicBool,
    subscribers: Mutex<Subscribers>,
}

#[derive(Default)]
struct Subscribers {
    next_id: u64,
    waiting: Vec<(u64, Box<dyn FnOnce() + Send>)>,
}

impl Cancel {
    /// Cancels everything that uses this handle. Calls the subscribers on this thread; does not
    /// wait for their work to stop.
    pub fn cancel(&self) {
        let waiting = {
            let mut subscribers = lock(&self.0.subscribers);
            self.0.cancelled.store(true, Ordering::Release);
            std::mem::take(&mut subscribers.waiting)
        };
        waiting.into_iter().for_each(|(_, act)| act());
    }

    /// Returns true once cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// Calls `act` on cancellation, on the cancelling thread, or at once if already cancelled.
    /// `act` must only signal and not block. Dropping the subscription withdraws it.
    #[must_use = "a subscription that is dropped is withdrawn"]
    pub fn on_cancel(&self, act: impl FnOnce() + Send + 'static) -> CancelSubscription {
        let mut subscribers = lock(&self.0.subscribers);
        let id = subscribers.next_id;
        subscribers.next_id += 1;
        if self.is_cancelled() {
            drop(subscribers);
            act();
        } else {
            subscribers.waiting.push((id, Box::new(act)));
        }
        CancelSubscription { cancel: self.clone(), id }
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

/// A subscription to a [`Cancel`] that ends when dropped.
#[derive(Debug)]
pub struct CancelSubscription {
    cancel: Cancel,
    id: u64,
}

impl Drop for CancelSubscription {
    fn drop(&mut self) {
        let withdrawn = {
            let waiting = &mut lock(&self.cancel.0.subscribers).waiting;
            let at = waiting.iter().position(|(id, _)| *id == self.id);
            at.map(|at| waiting.swap_remove(at))
        };
        // Dropped without the lock: its captured values may subscribe or withdraw too.
        drop(withdrawn);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    fn counted(cancel: &Cancel, calls: &Arc<AtomicUsize>) -> CancelSubscription {
        let calls = Arc::clone(calls);
        cancel.on_cancel(move || _ = calls.fetch_add(1, Relaxed))
    }

    #[test]
    fn every_subscriber_is_called_once_also_one_that_comes_late() {
        let (cancel, calls) = (Cancel::default(), Arc::default());
        let _early = [counted(&cancel, &calls), counted(&cancel, &calls)];
        assert_eq!(calls.load(Relaxed), 0);
        cancel.clone().cancel();
        assert_eq!(calls.load(Relaxed), 2);
        cancel.cancel();
        assert_eq!(calls.load(Relaxed), 2);
        let _late = counted(&cancel, &calls);
        assert_eq!(calls.load(Relaxed), 3);
    }

    #[test]
    fn a_withdrawn_subscriber_is_not_called_and_is_not_kept() {
        let (cancel, calls) = (Cancel::default(), Arc::default());
        drop(counted(&cancel, &calls));
        assert_eq!(Arc::strong_count(&calls), 1);
        cancel.cancel();
        assert_eq!(calls.load(Relaxed), 0);
    }
}
