//! The content at the receiver: where it goes, under which names, and how it is completed from the
//! chunks of peers, old copies and earlier connections.
//!
//! An assembly takes chunks from any peer that a file was asked of
//! ([`ChunkLedger`](super::incoming)). It knows peers by number only: it sees no connection, and
//! returns errors to the thread of the peer that caused them. Results are entered in the [`Books`].

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use wraith_files::{Committed, Error, OnConflict, RelPath, TargetDir};

use super::books::Books;
use super::completed_files::CompletedFiles;
use super::delta_files::DeltaFiles;
use super::name_rules::NameRules;
use super::naming::Naming;
use super::placement::Placed;
use super::renamed_folders::RenamedFolders;
use crate::error::TransferError;
use crate::limits::OPEN_FILES_MAX;
use crate::message::Excepted;
use crate::receipt::Durability;
use crate::role::Role;

/// Number of repeated checks for a deletion of the target after a file has disappeared. They take a
/// third of a second in all.
const DELETION_LOOKS: u32 = 10;
const DELETION_PAUSE: Duration = Duration::from_millis(30);

/// The content that is being received; see the module documentation.
pub(crate) struct Assembly<'a> {
    pub(super) books: &'a Books<'a>,
    pub(super) target: &'a TargetDir,
    /// Key of this transfer's part files. Parts of other transfers and senders must not be
    /// continued.
    pub(super) part_key: [u8; 32],
    pub(super) names: NameRules,
    pub(super) completed: CompletedFiles,
    pub(super) renamed: RenamedFolders,
    pub(super) naming: Naming,
    pub(super) deltas: DeltaFiles,
    uses: Uses,
    /// Number of open part files.
    open_files: AtomicUsize,
    /// True once the transfer is over.
    stopped: AtomicBool,
}

/// What both sides agreed on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Uses {
    /// Old copies may save content.
    pub(super) old_copies: bool,
    /// Both sides wait for the disk.
    pub(super) sync: bool,
}

impl<'a> Assembly<'a> {
    /// Creates the state of transfer `id` into `target`.
    pub(super) fn new(
        books: &'a Books<'a>,
        target: &'a TargetDir,
        (id, part_key): (&[u8; 16], [u8; 32]),
        names: NameRules,
        completed: CompletedFiles,
        uses: Uses,
    ) -> Self {
        Self {
            books,
            target,
            part_key,
            names,
            completed,
            renamed: RenamedFolders::look(target, id, &part_key),
            naming: Naming::new(),
            deltas: DeltaFiles::default(),
            uses,
            open_files: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    pub(super) fn uses(&self) -> Uses {
        self.uses
    }

    /// Counts a part file that is opened. Returns false if too many are open.
    pub(super) fn begin_part(&self) -> bool {
        self.open_files.fetch_add(1, Relaxed) < OPEN_FILES_MAX
    }

    /// Counts a part file that is complete or given up.
    pub(super) fn end_part(&self) {
        self.open_files.fetch_sub(1, Relaxed);
    }

    /// Wakes the threads that wait for content, and ends long steps.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Relaxed);
        self.deltas.stop();
        self.naming.stop();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Takes the exceptions to report, if there are more than `enough`.
    pub(super) fn take_exceptions(&self, enough: usize) -> Vec<Excepted> {
        self.books.take_exceptions(enough)
    }

    /// Runs a call that reads or writes files, and counts its time.
    pub(super) fn at_disk<T>(&self, call: impl FnOnce() -> T) -> T {
        self.books.progress.at_disk(call)
    }

    /// Flushes names and metadata to disk, if requested. Returns the durability reached.
    pub(super) fn reached(&self) -> Result<Durability, TransferError> {
        if !self.uses.sync {
            return Ok(Durability::NotAwaited);
        }
        let synced = self.at_disk(|| self.target.sync());
        match synced.map_err(|error| self.disk(&error))? {
            true => Ok(Durability::OnDisk),
            false => Ok(Durability::CannotSync),
        }
    }

    /// Names an entry by its conflict policy.
    pub(super) fn place(
        &self,
        placed: &Placed,
        name: impl FnOnce(OnConflict) -> Result<Committed, Error>,
    ) -> Result<Committed, Error> {
        self.names.place(self.target, placed, name)
    }

    /// Reports that an entry got `name` instead of its own name.
    pub(super) fn note_rename(&self, placed: &Placed, name: &RelPath) {
        let why = self.names.reason_of_rename(placed);
        let what = format!("{why}; the new one is called {}", name.display());
        self.books.note(&placed.offered, &what);
    }

    /// Fails if the target folder was deleted. Writes would still succeed, but the files would be
    /// lost in the end.
    pub(super) fn check_target(&self) -> Result<(), TransferError> {
        if self.target.is_deleted() { Err(target_is_deleted()) } else { Ok(()) }
    }

    fn is_being_deleted(&self) -> bool {
        (0..DELETION_LOOKS).any(|_| {
            thread::sleep(DELETION_PAUSE);
            self.target.is_deleted()
        })
    }

    /// Converts a disk error to the error of the transfer.
    pub(super) fn disk(&self, error: &Error) -> TransferError {
        match error {
            Error::UnsafeName(name) => name.into(),
            _ if self.target.is_deleted() => target_is_deleted(),
            // A user who deletes a folder deletes its contents first.
            error if error.is_not_found() && self.is_being_deleted() => target_is_deleted(),
            other => disk_failed(other),
        }
    }

    /// Reports an error that concerns only the entry offered as `path`. Returns an error that would
    /// affect every other file too.
    pub(super) fn record_unless_fatal(
        &self,
        path: &RelPath,
        error: Error,
    ) -> Result<(), TransferError> {
        let local = matches!(
            error,
            Error::Permission { .. }
                | Error::InTheWay { .. }
                | Error::Exists { .. }
                | Error::InUse { .. }
                | Error::Changed { .. }
        ) || error.is_entry_refused();
        if !local || self.target.is_deleted() {
            return Err(self.disk(&error));
        }
        let mut what = error.about(&path.display().to_string());
        if error.is_entry_refused() {
            what.push_str(
                ". The target's file system does not allow this name, size or type: change it at \
                 the sender, or receive into another folder (-o)",
            );
        }
        self.books.note(path, &what);
        Ok(())
    }
}

fn target_is_deleted() -> TransferError {
    disk_failed("the target folder was deleted")
}

/// Returns the error of a failed disk operation.
pub(super) fn disk_failed(what: impl std::fmt::Display) -> TransferError {
    TransferError::Disk { role: Role::Receiver, what: what.to_string() }
}
