//! Whose turn it is to take work, and the large file whose chunks all workers claim.
//!
//! Whoever waits for the plan holds the turn. Who only helps with large files waits until one is shared.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::worker::Active;
use crate::session::lock;

/// The turn.
pub(crate) struct Turn {
    /// The file that is shared.
    active: Mutex<Option<Active>>,
    changed: Condvar,
    /// Whether large files are shared. On two cores and one connection they are not: the I/O thread keeps one core busy, so a
    /// second worker only displaces the caches of the first; and chunks that come on one stream are written by one thread, which
    /// does not wait for the file's lock.
    shares: AtomicBool,
}

impl Turn {
    /// As it suits this machine.
    pub(crate) fn here() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            active: Mutex::new(None),
            changed: Condvar::new(),
            shares: AtomicBool::new(cores > 2),
        }
    }

    /// From the next large file on, chunks are shared.
    pub(crate) fn share(&self) {
        self.shares.store(true, Relaxed);
    }

    /// Waits for the turn.
    pub(crate) fn take(&self) -> MutexGuard<'_, Option<Active>> {
        lock(&self.active)
    }

    /// Shares `big`, or makes it the caller's `own`.
    pub(crate) fn place(
        &self,
        mut turn: MutexGuard<'_, Option<Active>>,
        own: &mut Option<Active>,
        big: Active,
    ) {
        if self.shares.load(Relaxed) {
            *turn = Some(big);
            self.changed.notify_all();
        } else {
            *own = Some(big);
        }
    }

    /// Has everyone who waits look whether it is over. The plan is stopped before: whoever waits for it holds the turn.
    pub(crate) fn stop(&self) {
        drop(self.take());
        self.changed.notify_all();
    }

    /// For a helper: waits until `next` finds something in the shared file; None once it is `over`, which is told with
    /// [`Self::stop`].
    pub(crate) fn help<T>(
        &self,
        over: impl Fn() -> bool,
        next: impl Fn(&mut Option<Active>) -> Option<T>,
    ) -> Option<T> {
        let mut turn = self.take();
        while !over() {
            if let Some(found) = next(&mut turn) {
                return Some(found);
            }
            turn = self.changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}
