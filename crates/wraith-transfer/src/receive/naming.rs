//! Complete files wait here for their names until their contents are flushed to disk, many files
//! together.
//!
//! The data threads hand over verified files and continue. One thread takes all waiting files,
//! flushes them (SPEC §10.7), and gives them their names. Hence no name reaches the disk before its
//! content, and a batch of any size costs one or two journal commits. Packets wait for the disk
//! only if the disk is a whole batch behind. The same thread writes back the received content of
//! large files.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wraith_files::{PartFile, Root, UncommittedFile, descriptor_share};

use super::incoming::Incoming;
use crate::limits::{UNNAMED_BYTES_MAX, UNNAMED_DESCRIPTORS_DIVISOR, UNNAMED_DESCRIPTORS_MAX};
use crate::lock::lock;

/// Maximum time that the first file of a batch waits for further files. Batches avoid a journal
/// commit per file.
const GATHER_TIME: Duration = Duration::from_millis(250);

/// A complete file.
#[derive(Debug)]
pub(super) struct Complete {
    pub(super) file: Arc<Incoming>,
    pub(super) content: UncommittedFile,
    pub(super) root: Root,
}

/// Queue of complete files; see the module documentation.
#[derive(Debug)]
pub(crate) struct Naming {
    state: Mutex<NamingState>,
    changed: Condvar,
    descriptors_max: usize,
}

#[derive(Debug, Default)]
struct NamingState {
    batch: Batch,
    /// Arrival time of the first file of `batch`.
    since: Option<Instant>,
    ended: bool,
    stopped: bool,
}

/// Files that are flushed together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) files: Vec<Complete>,
    bytes: u64,
    descriptors: usize,
    pub(super) write_back: Vec<Arc<PartFile>>,
}

impl Naming {
    pub(crate) fn new() -> Self {
        let descriptors_max =
            descriptor_share(UNNAMED_DESCRIPTORS_DIVISOR, UNNAMED_DESCRIPTORS_MAX);
        Self { state: Mutex::default(), changed: Condvar::new(), descriptors_max }
    }

    fn is_full(&self, batch: &Batch) -> bool {
        batch.descriptors >= self.descriptors_max || batch.bytes >= UNNAMED_BYTES_MAX
    }

    /// Queues a complete file; waits while there is no room. After a failure the file is dropped
    /// without a name.
    pub(super) fn push(&self, complete: Complete) {
        let mut state = lock(&self.state);
        while self.is_full(&state.batch) && !state.stopped {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.stopped {
            return;
        }
        state.batch.bytes = state.batch.bytes.saturating_add(complete.file.bytes());
        state.batch.descriptors += complete.content.descriptors();
        state.batch.files.push(complete);
        if state.since.is_none() {
            state.since = Some(Instant::now());
            self.changed.notify_all();
        } else if self.is_full(&state.batch) {
            self.changed.notify_all();
        }
    }

    /// Requests write-back of the content received so far for `part`.
    pub(super) fn write_back(&self, part: &Arc<PartFile>) {
        let mut state = lock(&self.state);
        if !state.stopped && !state.batch.write_back.iter().any(|other| Arc::ptr_eq(other, part)) {
            state.batch.write_back.push(Arc::clone(part));
            self.changed.notify_all();
        }
    }

    /// Marks the end of the queue.
    pub(crate) fn end(&self) {
        lock(&self.state).ended = true;
        self.changed.notify_all();
    }

    /// Wakes all waiting threads. Files that are complete by now still get their names.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }

    /// Waits for the next batch. Returns `None` at the end.
    pub(super) fn next(&self) -> Option<Batch> {
        let mut state = lock(&self.state);
        loop {
            let waited = state.since.map(|since| since.elapsed());
            let is_ripe = waited.is_some_and(|waited| waited >= GATHER_TIME);
            let is_over = state.ended || state.stopped;
            if is_over
                || self.is_full(&state.batch)
                || is_ripe
                || !state.batch.write_back.is_empty()
            {
                let batch = std::mem::take(&mut state.batch);
                state.since = None;
                self.changed.notify_all();
                let is_empty = batch.files.is_empty() && batch.write_back.is_empty();
                return (!is_empty).then_some(batch);
            }
            state = match waited {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(waited) => {
                    let rest = GATHER_TIME.saturating_sub(waited);
                    let woken = self.changed.wait_timeout(state, rest);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

/// Wakes waiting threads however this thread ends, including by a panic in an application callback.
pub(super) struct FreeAll<'a>(pub(super) &'a Naming);

impl Drop for FreeAll<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
