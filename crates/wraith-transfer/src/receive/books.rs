//! What a transfer reports: its events and counters, and the entries of its receipt.
//!
//! Invariant: the result of each entry is entered once. The content digest has either its root or
//! the reason for which this side lacks it.

use std::fmt::Display;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tracing::Span;
use wraith_files::{Change, Kind, RelPath, Root};

use super::placement::Placed;
use crate::content_digest::ContentDigest;
use crate::events::{Event, Events, InPlace};
use crate::exception::{Exception, FileStatus};
use crate::lock::lock;
use crate::message::Excepted;
use crate::progress::{Progress, count_bytes};
use crate::receipt::Receipt;

/// The books of a receiver; see the module documentation.
pub(crate) struct Books<'a> {
    events: &'a dyn Events,
    pub(super) progress: &'a Progress,
    /// Parent of the log events.
    pub(super) span: &'a Span,
    contents: Mutex<ContentDigest>,
    /// Entries that the sender sent but this side lacks; not yet reported.
    exceptions: Mutex<Vec<Excepted>>,
    counts: Counts,
}

/// Counts of the results of files.
#[derive(Debug, Default)]
struct Counts {
    moved: AtomicU64,
    identical: AtomicU64,
    skipped: AtomicU64,
    failed: AtomicU64,
    bytes_moved: AtomicU64,
    bytes_verified: AtomicU64,
}

impl<'a> Books<'a> {
    pub(super) fn new(events: &'a dyn Events, progress: &'a Progress, span: &'a Span) -> Self {
        Self {
            events,
            progress,
            span,
            contents: Mutex::default(),
            exceptions: Mutex::default(),
            counts: Counts::default(),
        }
    }

    /// Reports a note about the entry offered as `offered`.
    pub(super) fn note(&self, offered: &RelPath, what: &dyn Display) {
        self.events.event(Event::Note { path: &offered.display(), what });
    }

    /// Counts content that came over a connection.
    pub(super) fn bytes_moved(&self, bytes: u64) {
        self.counts.bytes_moved.fetch_add(bytes, Relaxed);
    }

    /// Enters the root that the sender states for a file, whether or not the file can be kept.
    pub(super) fn enter_root(&self, number: u32, root: &Root) {
        lock(&self.contents).add(number, root);
    }

    /// Returns the number of moved files, the bytes moved, and the numbers of files that were already
    /// here, are skipped, and did not arrive.
    pub(super) fn totals(&self) -> [u64; 5] {
        let Counts { moved, identical, skipped, failed, bytes_moved, .. } = &self.counts;
        [moved, bytes_moved, identical, skipped, failed].map(|count| count.load(Relaxed))
    }

    /// Fills in the results of all entries.
    pub(super) fn receipt(&self, unsigned: Receipt) -> Receipt {
        let counts = &self.counts;
        Receipt {
            contents: lock(&self.contents).digest(),
            verified: counts.moved.load(Relaxed) + counts.identical.load(Relaxed),
            kept: counts.skipped.load(Relaxed),
            failed: counts.failed.load(Relaxed),
            bytes: counts.bytes_verified.load(Relaxed),
            ..unsigned
        }
    }

    /// Takes the exceptions to report, if there are more than `enough`.
    pub(super) fn take_exceptions(&self, enough: usize) -> Vec<Excepted> {
        let mut waiting = lock(&self.exceptions);
        if waiting.len() <= enough { Vec::new() } else { std::mem::take(&mut *waiting) }
    }

    /// Reports the file at `path` as verified with this root, which is already in the digest.
    pub(super) fn verified(
        &self,
        (number, placed): (u32, &Placed),
        status: FileStatus,
        root: Root,
        path: &RelPath,
    ) {
        let counts = &self.counts;
        let count = if status == FileStatus::Done { &counts.moved } else { &counts.identical };
        count.fetch_add(1, Relaxed);
        let bytes = placed.entry.size();
        count_bytes(&counts.bytes_verified, bytes);
        let root_of_tree = (placed.entry.tree(), root);
        self.in_place(path, InPlace::File { bytes, entry: number, root: root_of_tree });
        self.resolved(placed, status, Some(root), None);
    }

    /// Records an entry that this side lacks, with a reason known to the sender. `root` is the
    /// sender's root, if it has reported one.
    pub(super) fn excepted(
        &self,
        number: u32,
        placed: &Placed,
        exception: Exception,
        root: Option<Root>,
    ) {
        self.excepted_as(number, placed, (exception, None), root);
    }

    /// Like [`Self::excepted`], with the change at the sender, if it has reported one.
    pub(super) fn excepted_as(
        &self,
        number: u32,
        placed: &Placed,
        (exception, change): (Exception, Option<Change>),
        root: Option<Root>,
    ) {
        lock(&self.contents).except(number, exception);
        let counts = &self.counts;
        let count = if exception.is_failure() { &counts.failed } else { &counts.skipped };
        count.fetch_add(1, Relaxed);
        let bytes = placed.entry.size();
        let absent = InPlace::Absent { bytes, entry: number, exception, root };
        self.in_place(&placed.offered, absent);
        if matches!(placed.entry.kind, Kind::File { .. }) {
            self.resolved(placed, exception.status(), None, change);
        }
    }

    /// Like [`Self::excepted`], for an entry that the sender has sent or that is not a file. It is
    /// reported before the receipt.
    pub(super) fn lacks(
        &self,
        number: u32,
        placed: &Placed,
        exception: Exception,
        root: Option<Root>,
    ) {
        let (entry, reason) = (number.into(), exception.number().into());
        lock(&self.exceptions).push(Excepted { entry, reason });
        self.excepted(number, placed, exception, root);
    }

    /// Reports the final state of an entry in the target under `path`.
    pub(super) fn in_place(&self, path: &RelPath, what: InPlace<'_>) {
        self.events.event(Event::InPlace { path, what });
    }

    fn resolved(
        &self,
        placed: &Placed,
        status: FileStatus,
        root: Option<Root>,
        change: Option<Change>,
    ) {
        self.progress.add_files(1);
        let (path, bytes) = (placed.offered.display(), placed.entry.size());
        let root = root.map(|root| (placed.entry.tree(), root));
        self.events.event(Event::File { path: &path, status, bytes, root, change });
    }
}
