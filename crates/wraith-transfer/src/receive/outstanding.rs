//! Table of the wanted but unsettled files. Data threads look files up by entry number. While the
//! table is full, the manifest is not read.
//!
//! A file is in the table from just before its Want is sent until it is resolved. A record for an
//! entry outside the table was never requested, or is a duplicate.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::limits::{OUTSTANDING_ENTRIES_MAX, OUTSTANDING_PATH_BYTES_MAX};
use crate::lock::lock;

/// Properties of a file that the table needs.
pub(crate) trait Outstanding {
    /// Returns the length of its paths in bytes.
    fn path_bytes(&self) -> usize;
}

/// Table of outstanding files; see the module documentation.
#[derive(Debug)]
pub(crate) struct OutstandingFiles<F> {
    state: Mutex<OutstandingState<F>>,
    changed: Condvar,
}

#[derive(Debug)]
struct OutstandingState<F> {
    files: HashMap<u32, Arc<F>>,
    path_bytes: usize,
    /// Number of files in `files`, or taken and not resolved yet.
    outstanding: usize,
    manifest_ended: bool,
    stopped: bool,
}

impl<F: Outstanding> OutstandingFiles<F> {
    pub(crate) fn new() -> Self {
        let state = OutstandingState {
            files: HashMap::new(),
            path_bytes: 0,
            outstanding: 0,
            manifest_ended: false,
            stopped: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds files.
    pub(crate) fn insert(&self, files: impl IntoIterator<Item = (u32, Arc<F>)>) {
        let mut state = lock(&self.state);
        for (entry, file) in files {
            state.path_bytes += file.path_bytes();
            state.outstanding += 1;
            state.files.insert(entry, file);
        }
    }

    /// Waits until there is room for more. Returns false once stopped.
    pub(crate) fn wait_for_room(&self) -> bool {
        let mut state = lock(&self.state);
        while !state.stopped
            && (state.outstanding >= OUTSTANDING_ENTRIES_MAX
                || state.path_bytes >= OUTSTANDING_PATH_BYTES_MAX)
        {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.stopped
    }

    /// Returns the file with this number.
    pub(crate) fn get(&self, entry: u32) -> Option<Arc<F>> {
        lock(&self.state).files.get(&entry).cloned()
    }

    /// Takes a file out: no further record may name it. It stays outstanding until
    /// [`Self::resolve`].
    pub(crate) fn take(&self, entry: u32) -> Option<Arc<F>> {
        let mut state = lock(&self.state);
        let file = state.files.remove(&entry)?;
        state.path_bytes -= file.path_bytes();
        Some(file)
    }

    /// Settles a file that was taken.
    pub(crate) fn resolve(&self) {
        let mut state = lock(&self.state);
        state.outstanding -= 1;
        let quiet = state.outstanding > 0
            && state.outstanding < OUTSTANDING_ENTRIES_MAX / 2
            && state.path_bytes < OUTSTANDING_PATH_BYTES_MAX / 2;
        drop(state);
        // No thread waits in between: the manifest waits for room at the top, the end for zero.
        if !quiet {
            self.changed.notify_all();
        }
    }

    /// Marks the end of the manifest: no more files follow.
    pub(crate) fn manifest_ended(&self) {
        lock(&self.state).manifest_ended = true;
        self.changed.notify_all();
    }

    /// Waits until the manifest has ended and all files are resolved. Returns false once stopped.
    pub(crate) fn wait_until_resolved(&self) -> bool {
        let mut state = lock(&self.state);
        while !(state.stopped || state.manifest_ended && state.outstanding == 0) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.stopped
    }

    /// Returns true if the sender owes data.
    pub(crate) fn is_due(&self) -> bool {
        lock(&self.state).outstanding > 0
    }

    /// Stops, and wakes all waiting threads.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Outstanding for usize {
        fn path_bytes(&self) -> usize {
            *self
        }
    }

    #[test]
    fn a_file_can_be_taken_once_and_the_end_waits_until_it_is_settled() {
        let table = OutstandingFiles::new();
        table.insert([(7, Arc::new(3))]);
        assert!(table.get(7).is_some() && table.get(8).is_none());
        assert!(table.take(7).is_some());
        assert!(table.take(7).is_none() && table.get(7).is_none());
        assert!(table.is_due());
        std::thread::scope(|scope| {
            let end = scope.spawn(|| table.wait_until_resolved());
            table.manifest_ended();
            table.resolve();
            assert!(end.join().unwrap());
        });
    }

    #[test]
    fn long_names_fill_the_table_too() {
        let table = OutstandingFiles::new();
        table.insert([(0, Arc::new(OUTSTANDING_PATH_BYTES_MAX))]);
        std::thread::scope(|scope| {
            let room = scope.spawn(|| table.wait_for_room());
            table.take(0);
            table.resolve();
            assert!(room.join().unwrap());
        });
    }
}
