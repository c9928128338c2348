//! The state machine of a sender ([`Serving`]), shared by its threads. They wait here for room and
//! for work.

use std::sync::{Condvar, Mutex, PoisonError};

use super::plan::{Job, Planned};
use super::serving::{Answer, Serving, Terms};
use crate::error::TransferError;
use crate::lock::lock;
use crate::message::Message;

/// A shared [`Serving`]; see the module documentation.
pub(crate) struct SharedServing<T> {
    state: Mutex<State<T>>,
    /// Signalled when there is new work or room, or when stopped.
    changed: Condvar,
}

struct State<T> {
    serving: Serving<T>,
    stopped: bool,
}

impl<T: Planned> SharedServing<T> {
    pub(super) fn new(terms: Terms) -> Self {
        let state = State { serving: Serving::new(terms), stopped: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Calls `act` with the state machine. For calls that give no other thread room or work.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut Serving<T>) -> R) -> R {
        act(&mut lock(&self.state).serving)
    }

    /// Handles a message of the receiver.
    pub(super) fn handle(&self, message: Message) -> Result<Answer<T>, TransferError> {
        let answer = self.with(|serving| serving.handle(message))?;
        if let Answer::Decided(_) = answer {
            self.changed.notify_all();
        }
        Ok(answer)
    }

    /// Adds entries, before the manifest stream carries them. Waits while too many are kept.
    /// Returns false once stopped.
    pub(super) fn announce(&self, entries: Vec<T>) -> bool {
        self.when(Serving::has_room, |serving| serving.announce(entries)).is_some()
    }

    /// Takes jobs: the first one unconditionally, then more while `more` returns true. Waits for the
    /// first. Returns an empty list once stopped.
    pub(super) fn take(&self, more: impl FnMut(&Job<T>) -> bool) -> Vec<Job<T>> {
        let jobs = self.when(Serving::has_work, |serving| serving.take(more)).unwrap_or_default();
        self.changed.notify_all();
        jobs
    }

    /// Puts a job back in front of all others.
    pub(super) fn put_back(&self, job: Job<T>) {
        self.with(|serving| serving.put_back(job));
        self.changed.notify_all();
    }

    /// Stops, and wakes all waiting threads; nothing more is announced or taken.
    pub(super) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }

    /// Waits until `is_ready`, then calls `act`. Returns `None` once stopped.
    fn when<R>(
        &self,
        is_ready: impl Fn(&Serving<T>) -> bool,
        act: impl FnOnce(&mut Serving<T>) -> R,
    ) -> Option<R> {
        let is_waiting = |state: &mut State<T>| !state.stopped && !is_ready(&state.serving);
        let waited = self.changed.wait_while(lock(&self.state), is_waiting);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.stopped { None } else { Some(act(&mut state.serving)) }
    }
}

#[cfg(test)]
mod tests {
    use wraith_crypto::NodeId;
    use wraith_files::Tree;

    use super::*;
    use crate::limits::KEPT_ENTRIES_MAX;

    struct Item;

    impl Planned for Item {
        fn file_bytes(&self) -> Option<u64> {
            Some(1)
        }
        fn tree(&self) -> Tree {
            Tree::Blake3
        }
        fn path_bytes(&self) -> usize {
            10
        }
    }

    #[test]
    fn a_receiver_that_decides_nothing_holds_the_manifest_back() {
        let receiver = NodeId([1; 32]);
        let terms = Terms { transfer_id: [0; 16], receiver, sender: None, delta: true };
        let shared = SharedServing::new(terms);
        let many = std::iter::repeat_with(|| Item).take(KEPT_ENTRIES_MAX).collect();
        assert!(shared.announce(many));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| shared.announce(vec![Item]));
            shared.stop();
            assert!(!waiting.join().unwrap());
        });
        assert!(shared.take(|_| true).is_empty());
    }
}
