//! What a sender reports: its events and counters, and the roots of the files that it has read.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use wraith_files::{Change, Entry, Root};

use super::announced::Announced;
use super::plan::{Passed, Planned};
use super::sent_roots::SentRoots;
use crate::events::{Event, Events};
use crate::exception::{Exception, FileStatus};
use crate::progress::Progress;
use crate::record::RECORD_BODY_BYTES_MAX;
use crate::roots::Roots;

/// The books of a sender; see the module documentation.
pub(crate) struct Books<'a> {
    events: &'a dyn Events,
    pub(super) progress: &'a Progress,
    pub(super) roots: &'a SentRoots,
    pub(super) bytes_moved: AtomicU64,
    pub(super) left_out: AtomicU64,
    pub(super) special: AtomicU64,
}

impl<'a> Books<'a> {
    pub(super) fn new(
        events: &'a dyn Events,
        progress: &'a Progress,
        roots: &'a SentRoots,
    ) -> Self {
        let [bytes_moved, left_out, special] = [0; 3].map(AtomicU64::new);
        Self { events, progress, roots, bytes_moved, left_out, special }
    }

    pub(super) fn accepted(&self) {
        self.events.event(Event::Accepted);
    }

    /// Reports an entry of the manifest.
    pub(super) fn listed(&self, number: u32, entry: &Entry) {
        self.events.event(Event::Entry { number, entry });
    }

    /// Counts and reports an object that is not part of the transfer.
    pub(super) fn leave_out(&self, path: &dyn Display, what: &dyn Display, special: bool) {
        let count = if special { &self.special } else { &self.left_out };
        count.fetch_add(1, Relaxed);
        self.events.event(Event::LeftOut { path, what, special });
    }

    /// Counts content that is sent over a connection.
    pub(super) fn bytes_moved(&self, bytes: u64) {
        self.bytes_moved.fetch_add(bytes, Relaxed);
    }

    /// Reports a file that is decided and not wanted.
    pub(super) fn passed(&self, Passed { entry, item, exception }: Passed<Announced>) {
        let Some(exception) = exception else { return };
        self.progress.add_found(item.file_bytes().unwrap_or(0));
        self.excepted(entry, exception);
        self.file(&item, exception.status(), None, None);
    }

    /// Reports a file whose content was pushed before it was requested.
    pub(super) fn pushed(&self, (entry, item, root): &(u32, Announced, Root)) {
        self.bytes_moved(item.file_bytes().unwrap_or(0));
        self.sent(*entry, item, FileStatus::Done, *root);
    }

    /// Reports a file whose content is sent, or is the same at the receiver.
    pub(super) fn sent(&self, entry: u32, item: &Announced, status: FileStatus, root: Root) {
        // A full disk only costs reading the file again.
        let _ = self.roots.note(&item.file_id(), &root);
        self.events.event(Event::Root { number: entry, root });
        self.count_small(item);
        self.file(item, status, Some(root), None);
    }

    /// Reports a wanted file that is not sent.
    pub(super) fn not_sent(
        &self,
        (entry, item): (u32, &Announced),
        (status, exception): (FileStatus, Exception),
        root: Option<Root>,
        change: Option<Change>,
    ) {
        self.excepted(entry, exception);
        self.count_small(item);
        self.file(item, status, root, change);
    }

    /// Reports an entry that the receiver lacks.
    pub(super) fn excepted(&self, number: u32, exception: Exception) {
        self.events.event(Event::Excepted { number, exception });
    }

    /// Counts the bytes of a file that is sent in one record. Larger ones are counted by chunk.
    fn count_small(&self, item: &Announced) {
        let bytes = item.file_bytes().unwrap_or(0);
        if bytes <= RECORD_BODY_BYTES_MAX as u64 {
            self.progress.add_bytes(bytes);
        }
    }

    /// Reports the final result of a file.
    fn file(
        &self,
        item: &Announced,
        status: FileStatus,
        root: Option<Root>,
        change: Option<Change>,
    ) {
        self.progress.add_files(1);
        let (path, bytes) = (item.shown(), item.file_bytes().unwrap_or(0));
        let root = root.map(|root| (item.tree(), root));
        self.events.event(Event::File { path: &path, status, bytes, root, change });
    }
}
