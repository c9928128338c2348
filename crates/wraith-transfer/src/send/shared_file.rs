//! The large file shared by all workers, and the lock under which a worker takes work.
//!
//! A worker that waits for the plan holds the lock. A helper is a worker that handles only chunks
//! of large files; it waits until a large file is shared.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::large_file::Active;
use crate::lock::lock;

/// The shared file; see the module documentation.
pub(crate) struct SharedFile {
    /// The file that is currently shared.
    active: Mutex<Option<Active>>,
    changed: Condvar,
    /// True if large files are shared. On two cores with one connection they are not. There the I/O
    /// thread keeps one core busy, so a second worker would only displace the caches of the first.
    /// Also, chunks on one stream are written by one thread, which does not wait for the file's
    /// lock.
    shares: AtomicBool,
}

impl SharedFile {
    /// Creates the state with the default for this machine.
    pub(crate) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            active: Mutex::new(None),
            changed: Condvar::new(),
            shares: AtomicBool::new(cores > 2),
        }
    }

    /// Shares chunks from the next large file on.
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

    /// Wakes all waiting threads to check for the end. Stop the plan first: a thread that waits for
    /// it holds the lock.
    pub(crate) fn stop(&self) {
        drop(self.take());
        self.changed.notify_all();
    }

    /// Waits, for a helper, until `next` finds work in the shared file. Returns `None` once `over`
    /// returns true, after [`Self::stop`].
    pub(crate) fn help_with_large_file<T>(
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
