//! The offered content: which of it the receiver wants, and the large file that is being read.
//! Results go into the [`Books`]. It sees no connection.

use std::fmt::Display;
use std::sync::atomic::Ordering::Relaxed;

use wraith_files::{Change, Entry, Root, SourceFile, Tree, WalkEntry, small_root};

use super::announced::Announced;
use super::books::Books;
use super::large_file::{ending_of, matching_root};
use super::plan::{Job, Planned};
use super::serving::Terms;
use super::shared_file::SharedFile;
use super::shared_serving::SharedServing;
use crate::exception::{Exception, FileStatus};
use crate::progress::Progress;
use crate::record::Ending;
use crate::roots::Roots;

/// The content of an offer; see the module documentation.
pub(crate) struct Offered<'a> {
    books: &'a Books<'a>,
    pub(super) serving: SharedServing<Announced>,
    pub(super) shared_file: SharedFile,
}

impl<'a> Offered<'a> {
    pub(super) fn new(books: &'a Books<'a>, terms: Terms) -> Self {
        Self { books, serving: SharedServing::new(terms), shared_file: SharedFile::new() }
    }

    /// Wakes the threads that wait for work. The shared file is last: a thread that waits for work
    /// holds its lock.
    pub(super) fn stop(&self) {
        self.serving.stop();
        self.shared_file.stop();
    }

    pub(super) fn progress(&self) -> &'a Progress {
        self.books.progress
    }

    /// Reports an entry of the manifest.
    pub(super) fn listed(&self, number: u32, entry: &Entry) {
        self.books.listed(number, entry);
    }

    /// Counts and reports an object that is not part of the transfer.
    pub(super) fn leave_out(&self, path: &dyn Display, what: &dyn Display, special: bool) {
        self.books.leave_out(path, what, special);
    }

    /// Returns the number of objects that were left out so far.
    pub(super) fn left_out(&self) -> u64 {
        self.books.left_out.load(Relaxed)
    }

    /// Counts content that is sent over a connection.
    pub(super) fn bytes_moved(&self, bytes: u64) {
        self.books.bytes_moved(bytes);
    }

    /// Returns the root of the receiver's file, if this file is known to have it too.
    pub(super) fn known_root(&self, job: &Job<Announced>) -> Option<Root> {
        let claimed = matching_root(&job.wanted)?;
        self.books.roots.root_of(&job.item.file_id(), Some(&claimed))
    }

    /// Records and reports the result of a file, with its root or its change. Call it before the
    /// last record of the file is written.
    pub(super) fn resolve(
        &self,
        entry: u32,
        item: &Announced,
        ending: Ending,
        (root, change): (Option<Root>, Option<Change>),
    ) {
        let bytes = item.file_bytes().unwrap_or(0);
        let status = match ending {
            Ending::Complete => FileStatus::Done,
            Ending::Identical => FileStatus::AlreadyHere,
            Ending::Different => FileStatus::Skipped,
            Ending::Changed => FileStatus::Changed,
            Ending::Unreadable => FileStatus::Unreadable,
        };
        if let Some(root) = root.filter(|_| ending != Ending::Different) {
            self.serving.with(|serving| serving.resolved(entry, &root, bytes));
            return self.books.sent(entry, item, status, root);
        }
        let exception = match ending {
            Ending::Unreadable => Exception::Unreadable,
            Ending::Different => Exception::Skipped,
            _ => Exception::Changed,
        };
        self.serving.with(|serving| serving.left_out(entry, exception));
        self.books.not_sent((entry, item), (status, exception), root, change);
    }

    /// Fills `out` with the content of a file of one chunk, and returns its root.
    pub(super) fn read_small(&self, found: &WalkEntry, out: &mut [u8]) -> Result<Root, Ending> {
        let read = self.progress().at_disk(|| {
            let source = found.open()?;
            source.read_chunk(0, out)?;
            Ok(source)
        });
        let source = read.map_err(|error| ending_of(&error))?;
        let root = small_root(out);
        if has_lost_name(&source, found) {
            return Err(Ending::Changed);
        }
        match source.still_has((Tree::Blake3, &root), || true) {
            Ok(Some(true)) => Ok(root),
            Ok(_) => Err(Ending::Changed),
            Err(error) => Err(ending_of(&error)),
        }
    }
}

/// Returns true if the listed file was deleted or replaced since it was opened.
pub(super) fn has_lost_name(source: &SourceFile, found: &WalkEntry) -> bool {
    !source.unchanged() && found.change().is_some()
}
