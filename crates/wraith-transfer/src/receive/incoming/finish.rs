//! The end of a file, once nothing more of it arrives. Either the file's root is proven and the
//! file gets its name, or the receiver records the reason why it lacks the file (an exception).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use wraith_files::{Committed, Error, Outcome, PartFile, RelPath, UncommittedFile};

use super::{Body, FileEnd, Incoming};
use crate::error::TransferError;
use crate::events::InPlace;
use crate::exception::{Exception, FileStatus};
use crate::lock::lock;
use crate::progress::count_bytes;
use crate::receive::Receiving;
use crate::receive::naming::Complete;
use crate::record::{Ending, RECORD_BODY_BYTES_MAX, decode_change};
use crate::wanted::Wanted;

impl Incoming {
    /// Finishes the file if nothing more will arrive. Returns true if it is resolved.
    pub(super) fn finish_if_complete(
        self: &Arc<Self>,
        receiving: &Receiving<'_>,
        body: &mut Body,
    ) -> Result<bool, TransferError> {
        let Some(end) = body.end else { return Ok(false) };
        let (claimed, written) = body.open.as_ref().map_or((0, 0), |o| (o.claimed, o.written));
        if claimed > end.chunks {
            return Err(self.violation(receiving, "more chunks than it says were sent"));
        }
        if written < end.chunks {
            return Ok(false);
        }
        body.resolved = true;
        self.progress.finish(receiving.progress, self.bytes());
        if self.local.old.is_some() {
            receiving.deltas.forget(self.entry);
        }
        let open = body.open.take();
        if open.is_some() {
            receiving.open_files.fetch_sub(1, Relaxed);
        }
        match end.ending {
            Ending::Complete => {
                let open = open.expect("a complete file was opened");
                if !open.due.is_empty() {
                    return Err(self.violation(receiving, "it ends with chunks missing"));
                }
                self.finish_part(receiving, open.part, end.root)?;
            }
            Ending::Identical => {
                let entry = &self.placed.entry;
                let path = self.local.copy.as_ref().unwrap_or(&entry.path);
                receiving.target.keep_existing(path);
                lock(&receiving.contents).add(self.entry, &end.root);
                self.verified(receiving, FileStatus::AlreadyHere, end.root, path);
            }
            Ending::Different => {
                receiving.excepted(self.entry, &self.placed, Exception::Skipped, None);
            }
            Ending::Changed | Ending::Unreadable => {
                self.break_off(receiving, end, open.map(|open| open.part))?;
            }
        }
        Ok(true)
    }

    /// Ends a file that the sender cannot complete. The part is kept for resumption only if the
    /// next reading may find the same file.
    fn break_off(
        &self,
        receiving: &Receiving<'_>,
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
                None => receiving.target.sweep(&self.placed.entry, &receiving.part_key),
            };
            removed.or_else(|error| receiving.record_unless_fatal(&self.placed.offered, error))?;
        }
        receiving.excepted_as(self.entry, &self.placed, (exception, change), None);
        Ok(())
    }

    /// Proves the root. After that, the file lacks only its name.
    fn finish_part(
        self: &Arc<Self>,
        receiving: &Receiving<'_>,
        part: Arc<PartFile>,
        root: [u8; 32],
    ) -> Result<(), TransferError> {
        // This is the sender's root; if the local file differs, that is reported too.
        lock(&receiving.contents).add(self.entry, &root);
        if !part.hash_holes(|| !receiving.session.is_over()) {
            return Err(receiving.session.stopped());
        }
        if part.have().count() < part.chunks() {
            let error = Error::Changed { path: self.placed.entry.path.display().to_string() };
            return self.blocked(receiving, error, root);
        }
        match part.seal(&root) {
            Ok(()) => self.complete(receiving, UncommittedFile::part(part), root),
            // If all chunks came on this connection and each matched its hash, the sender's root is
            // wrong. With chunks from an earlier connection, the sender's file may have changed in
            // between. The part is removed either way.
            Err(Error::Mismatch { .. }) if matches!(self.wanted, Wanted::Chunks(_)) => {
                receiving.lacks(self.entry, &self.placed, Exception::Stale, Some(root));
                Ok(())
            }
            Err(Error::Mismatch { .. }) => Err(self.mismatch(receiving)),
            Err(error) => self.blocked(receiving, error, root),
        }
    }

    /// Names a complete and verified file, at once or after its content is flushed to disk.
    pub(super) fn complete(
        self: &Arc<Self>,
        receiving: &Receiving<'_>,
        mut content: UncommittedFile,
        root: [u8; 32],
    ) -> Result<(), TransferError> {
        if receiving.sync {
            receiving.naming.push(Complete { file: Arc::clone(self), content, root });
            return Ok(());
        }
        self.name(receiving, &mut content, root)
    }

    /// Gives the file its name.
    pub(in crate::receive) fn name(
        &self,
        receiving: &Receiving<'_>,
        content: &mut UncommittedFile,
        root: [u8; 32],
    ) -> Result<(), TransferError> {
        let name = |on_conflict| receiving.target.name(content, on_conflict);
        match receiving.progress.at_disk(|| receiving.place(&self.placed, name)) {
            Ok(committed) => self.committed(receiving, &committed, root),
            Err(error) => self.blocked(receiving, error, root),
        }
    }

    /// Records a file that is in place.
    fn committed(
        &self,
        receiving: &Receiving<'_>,
        committed: &Committed,
        root: [u8; 32],
    ) -> Result<(), TransferError> {
        if committed.outcome == Outcome::AlreadyHere {
            receiving.target.keep_existing(&committed.path);
        }
        if let Some(stamp) = &committed.stamp {
            let entry = &self.placed.entry;
            let mark = receiving.completed.mark_of(entry, committed.path.as_bytes(), stamp);
            let costly = self.placed.entry.size() > RECORD_BODY_BYTES_MAX as u64;
            receiving
                .completed
                .add(&mark, &root, costly)
                .map_err(|error| receiving.session.disk(error))?;
        }
        if committed.outcome == Outcome::Renamed {
            receiving.renamed(&self.placed, &committed.path);
        }
        match committed.outcome {
            Outcome::Skipped => {
                receiving.lacks(self.entry, &self.placed, Exception::Skipped, Some(root));
            }
            _ => self.verified(receiving, FileStatus::Done, root, &committed.path),
        }
        Ok(())
    }

    /// Reports the file at `path` as verified with this root, which is already in the digest.
    fn verified(
        &self,
        receiving: &Receiving<'_>,
        status: FileStatus,
        root: [u8; 32],
        path: &RelPath,
    ) {
        let counts = &receiving.counts;
        let count = if status == FileStatus::Done { &counts.moved } else { &counts.identical };
        count.fetch_add(1, Relaxed);
        count_bytes(&counts.bytes_verified, self.placed.entry.size());
        let (bytes, entry) = (self.placed.entry.size(), self.entry);
        let root_of_tree = (self.placed.entry.tree(), root);
        receiving.in_place(path, InPlace::File { bytes, entry, root: root_of_tree });
        receiving.resolved(&self.placed, status, Some(root), None);
    }

    /// Handles a disk error for the file with this root. Returns an error if other files would be
    /// affected too.
    pub(super) fn blocked(
        &self,
        receiving: &Receiving<'_>,
        error: Error,
        root: [u8; 32],
    ) -> Result<(), TransferError> {
        receiving.record_unless_fatal(&self.placed.offered, error)?;
        receiving.lacks(self.entry, &self.placed, Exception::Blocked, Some(root));
        Ok(())
    }
}
