//! The large file whose chunks all workers claim, and the lock under which a worker takes work.
//!
//! A worker that waits for the plan holds the lock. One that works on the chunks of large files only waits until one is shared.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::large_file::Active;
use crate::lock::lock;

/// See the module.
pub(crate) struct SharedFile {
    /// The file that is shared.
    active: Mutex<Option<Active>>,
    changed: Condvar,
    /// Whether large files are shared. On two cores and one connection they are not: the I/O thread keeps one core busy, so a
    /// second worker only displaces the caches of the first; and chunks that come on one stream are written by one thread, which
    /// does not wait for the file's lock.
    shares: AtomicBool,
}

impl SharedFile {
    /// As it suits this machine.
    pub(crate) fn new() -> Self {
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

    /// Waits for the lock.
    pub(crate) fn take(&self) -> MutexGuard<'_, Option<Active>> {
        lock(&self.active)
    }

    /// Shares `large`, or makes it the caller's `own`.
    pub(crate) fn put(
        &self,
        mut shared: MutexGuard<'_, Option<Active>>,
        own: &mut Option<Active>,
        large: Active,
    ) {
        if self.shares.load(Relaxed) {
            *shared = Some(large);
            self.changed.notify_all();
        } else {
            *own = Some(large);
        }
    }

    /// Has everyone who waits look whether it is over. The plan is stopped before: whoever waits for it holds the lock.
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
        let mut shared = self.take();
        while !over() {
            if let Some(found) = next(&mut shared) {
                return Some(found);
            }
            shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}
