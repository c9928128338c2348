//! The end of a file, once nothing more of it arrives. Either the file's root is proven and the
//! file gets its name, or the receiver records the reason why it lacks the file (an exception).

use std::sync::Arc;

use wraith_files::{Committed, Error, Outcome, PartFile, UncommittedFile};

use super::ledger::{FileEnd, PeerId, Settled};
use super::{Body, Incoming};
use crate::error::TransferError;
use crate::exception::{Exception, FileStatus};
use crate::receive::assembly::{Assembly, disk_failed};
use crate::receive::naming::Complete;
use crate::record::{Ending, decode_change};
use crate::roots::{FileId, Roots};
use crate::wanted::Wanted;

impl Incoming {
    /// Finishes the file if nothing more will arrive. Returns true once `peer` has nothing more to
    /// send of it.
    pub(super) fn finish_if_complete(
        self: &Arc<Self>,
        assembly: &Assembly<'_>,
        peer: PeerId,
        body: &mut Body,
    ) -> Result<bool, TransferError> {
        let ledger = body.ledger();
        let end = match ledger.settled(peer) {
            Settled::Pending => return Ok(false),
            Settled::Excess => {
                return Err(self.violation("more chunks than it says were sent"));
            }
            Settled::Ended(end) => end,
        };
        if end.ending == Ending::Complete && ledger.owes(peer) {
            return Err(self.violation("it ends with chunks missing"));
        }
        // Other peers may be asked for what it owes.
        ledger.leave(peer);
        let is_left_to_others = match end.ending {
            Ending::Complete => !ledger.is_complete(),
            _ => ledger.is_awaited(),
        };
        if is_left_to_others {
            return Ok(true);
        }
        let is_blamed = ledger.only_peer().is_some() && !matches!(self.wanted, Wanted::Chunks(_));
        body.resolved = true;
        self.progress.finish(assembly.books.progress, self.bytes());
        if self.local.old.is_some() {
            assembly.deltas.forget(self.entry);
        }
        let part = body.part.take();
        if part.is_some() {
            assembly.end_part();
        }
        match end.ending {
            Ending::Complete => {
                let part = part.expect("a complete file was opened");
                self.finish_part(assembly, part, end.root, is_blamed)?;
            }
            Ending::Identical => {
                let entry = &self.placed.entry;
                let path = self.local.copy.as_ref().unwrap_or(&entry.path);
                assembly.target.keep_existing(path);
                assembly.books.enter_root(self.entry, &end.root);
                let file = (self.entry, &self.placed);
                assembly.books.verified(file, FileStatus::AlreadyHere, end.root, path);
            }
            Ending::Different => {
                assembly.books.excepted(self.entry, &self.placed, Exception::Skipped, None);
            }
            Ending::Changed | Ending::Unreadable => self.break_off(assembly, end, part)?,
        }
        Ok(true)
    }

    /// Ends a file that the sender cannot complete. The part is kept for resumption only if the
    /// next reading may find the same file.
    fn break_off(
        &self,
        assembly: &Assembly<'_>,
        end: FileEnd,
        part: Option<Arc<PartFile>>,
    ) -> Result<(), TransferError> {
        let change = decode_change(&end.root);
        let exception = match end.ending {
            Ending::Unreadable => Exception::Unreadable,
            _ => Exception::Changed,
        };
        if exception == Exception::Changed || change.is_some() {
            let removed = match part {
                Some(part) => part.discard(),
                // An earlier connection may have left a part.
                None => assembly.target.sweep(&self.placed.entry, &assembly.part_key),
            };
            removed.or_else(|error| assembly.record_unless_fatal(&self.placed.offered, error))?;
        }
        assembly.books.excepted_as(self.entry, &self.placed, (exception, change), None);
        Ok(())
    }

    /// Proves the root. After that, the file lacks only its name. With `is_blamed`, all content is
    /// from one peer, whose root it must have.
    fn finish_part(
        self: &Arc<Self>,
        assembly: &Assembly<'_>,
        part: Arc<PartFile>,
        root: [u8; 32],
        is_blamed: bool,
    ) -> Result<(), TransferError> {
        // This is the sender's root; if the local file differs, that is reported too.
        assembly.books.enter_root(self.entry, &root);
        if !part.hash_holes(|| !assembly.is_stopped()) {
            return Err(TransferError::stopped());
        }
        if part.have().count() < part.chunks() {
            let error = Error::Changed { path: self.placed.entry.path.display().to_string() };
            return self.blocked(assembly, error, root);
        }
        match part.seal(&root) {
            Ok(()) => self.complete(assembly, UncommittedFile::part(part), root),
            // If all chunks came from one peer on this connection and each matched its hash, its
            // root is wrong. With chunks from an earlier connection, the sender's file may have
            // changed in between; with chunks from several peers, any of them may be wrong. The
            // part is removed either way.
            Err(Error::Mismatch { .. }) if is_blamed => Err(self.mismatch(assembly)),
            Err(Error::Mismatch { .. }) => {
                assembly.books.lacks(self.entry, &self.placed, Exception::Stale, Some(root));
                Ok(())
            }
            Err(error) => self.blocked(assembly, error, root),
        }
    }

    /// Names a complete and verified file, at once or after its content is flushed to disk.
    pub(super) fn complete(
        self: &Arc<Self>,
        assembly: &Assembly<'_>,
        mut content: UncommittedFile,
        root: [u8; 32],
    ) -> Result<(), TransferError> {
        if assembly.uses().sync {
            assembly.naming.push(Complete { file: Arc::clone(self), content, root });
            return Ok(());
        }
        self.name(assembly, &mut content, root)
    }

    /// Gives the file its name.
    pub(in crate::receive) fn name(
        &self,
        assembly: &Assembly<'_>,
        content: &mut UncommittedFile,
        root: [u8; 32],
    ) -> Result<(), TransferError> {
        let name = |on_conflict| assembly.target.name(content, on_conflict);
        match assembly.books.progress.at_disk(|| assembly.place(&self.placed, name)) {
            Ok(committed) => self.committed(assembly, &committed, root),
            Err(error) => self.blocked(assembly, error, root),
        }
    }

    /// Records a file that is in place.
    fn committed(
        &self,
        assembly: &Assembly<'_>,
        committed: &Committed,
        root: [u8; 32],
    ) -> Result<(), TransferError> {
        if committed.outcome == Outcome::AlreadyHere {
            assembly.target.keep_existing(&committed.path);
        }
        if let Some(stamp) = &committed.stamp {
            let (entry, path) = (&self.placed.entry, committed.path.as_bytes());
            let (entry, tree) = (entry.path.as_bytes(), entry.tree());
            let file = FileId { entry, path, tree, stamp };
            assembly.completed.note(&file, &root).map_err(disk_failed)?;
        }
        if committed.outcome == Outcome::Renamed {
            assembly.note_rename(&self.placed, &committed.path);
        }
        let (books, file) = (assembly.books, (self.entry, &self.placed));
        match committed.outcome {
            Outcome::Skipped => books.lacks(file.0, file.1, Exception::Skipped, Some(root)),
            _ => books.verified(file, FileStatus::Done, root, &committed.path),
        }
        Ok(())
    }

    /// Handles a disk error for the file with this root. Returns an error if other files would be
    /// affected too.
    pub(super) fn blocked(
        &self,
        assembly: &Assembly<'_>,
        error: Error,
        root: [u8; 32],
    ) -> Result<(), TransferError> {
        assembly.record_unless_fatal(&self.placed.offered, error)?;
        assembly.books.lacks(self.entry, &self.placed, Exception::Blocked, Some(root));
        Ok(())
    }
}
