//! The records of one file: their checks, and the way of their content to the disk.

use std::ops::Range;
use std::sync::Arc;

use wraith_files::{CHUNK_BYTES, Cv, Error, PartFile, Root, chunk_len, slices_root};

use super::ledger::{FileEnd, PeerId};
use super::{Body, Carrier, Incoming};
use crate::error::TransferError;
use crate::limits::HOLE_RUN_CHUNKS;
use crate::lock::lock;
use crate::receive::assembly::Assembly;
use crate::record::{Ending, RECORD_BODY_BYTES_MAX};
use crate::wanted::Wanted;

impl Incoming {
    /// Counts bytes of the file that are now on disk.
    pub(in crate::receive) fn add_bytes(&self, assembly: &Assembly<'_>, bytes: u64) {
        self.progress.add_bytes(assembly.books.progress, bytes);
    }

    /// Converts an error of a write to the part.
    fn not_written(
        &self,
        assembly: &Assembly<'_>,
        part: &PartFile,
        error: &Error,
    ) -> TransferError {
        match error {
            Error::TooManyPieces { .. } => {
                // A part that cannot be continued on this connection cannot be continued on the
                // next. If its removal fails too, the violation is the error to report.
                let _ = part.discard();
                self.violation("its chunks form too many separate ranges")
            }
            error => assembly.disk(error),
        }
    }

    pub(in crate::receive) fn mismatch(&self, assembly: &Assembly<'_>) -> TransferError {
        let (span, path) = (assembly.books.span, self.placed.entry.path.display());
        tracing::debug!(parent: span, %path, "verification failed");
        let what =
            format!("{} does not match the hash sent with it", self.placed.entry.path.display());
        TransferError::Verification { what }
    }

    /// Handles the whole file in one record. The file is resolved afterwards.
    pub(crate) fn receive_whole(
        self: &Arc<Self>,
        assembly: &Assembly<'_>,
        pieces: &[&[u8]],
        root: &[u8; 32],
    ) -> Result<(), TransferError> {
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        let asked = matches!(self.wanted, Wanted::Whole | Wanted::Unless(_))
            && self.placed.entry.size() == len as u64;
        if !asked || len > RECORD_BODY_BYTES_MAX {
            return Err(self.violation("a record of another size than announced"));
        }
        if slices_root(pieces) != *root {
            return Err(self.mismatch(assembly));
        }
        assembly.books.bytes_moved(len as u64);
        assembly.books.progress.add_bytes(len as u64);
        assembly.books.enter_root(self.entry, root);
        let target = assembly.target;
        match assembly.books.progress.at_disk(|| target.write_unnamed(&self.placed.entry, pieces)) {
            Ok(content) => self.complete(assembly, content, *root),
            Err(error) => self.blocked(assembly, error, *root),
        }
    }

    /// Handles one chunk. Returns true if the file is resolved.
    pub(crate) fn receive_chunk(
        self: &Arc<Self>,
        assembly: &Assembly<'_>,
        peer: PeerId,
        index: u64,
        pieces: &[&[u8]],
        cv: Cv,
    ) -> Result<bool, TransferError> {
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        if len == 0 || len != chunk_len(self.placed.entry.size(), index) {
            return Err(self.violation("a chunk it does not have"));
        }
        let part = self.claim(assembly, peer, index..index + 1, Carrier::Record)?;
        if self.placed.entry.tree().chunk_cv(index, pieces) != cv {
            return Err(self.refuse(assembly, peer, index));
        }
        let written = assembly.books.progress.at_disk(|| part.write_chunk(index, pieces, cv));
        written.map_err(|error| self.not_written(assembly, &part, &error))?;
        if assembly.uses().sync && part.is_write_back_due() {
            assembly.naming.write_back(&part);
        }
        drop(part);
        assembly.books.bytes_moved(len as u64);
        self.progress.add_bytes(assembly.books.progress, len as u64);
        self.written(assembly, peer, 1)
    }

    /// Handles chunks of zeros. Returns true if the file is resolved.
    pub(crate) fn receive_hole(
        self: &Arc<Self>,
        assembly: &Assembly<'_>,
        peer: PeerId,
        first: u64,
        count: u64,
    ) -> Result<bool, TransferError> {
        let end = first.checked_add(count).filter(|&end| count > 0 && end <= self.chunks());
        let (Some(end), true) = (end, self.placed.entry.is_sparse()) else {
            return Err(self.violation("a hole it does not have"));
        };
        let part = self.claim(assembly, peer, first..end, Carrier::Record)?;
        let at = |chunk: u64| self.placed.entry.size().min(chunk * CHUNK_BYTES as u64);
        let step = if self.placed.entry.tree().knows_zeros() { count } else { HOLE_RUN_CHUNKS };
        let mut run = first..first;
        while run.end < end {
            // A peer can put petabytes into one record; hashing or writing them must not outlive
            // the transfer.
            let go_on = || !assembly.is_stopped();
            run = run.end..end.min(run.end.saturating_add(step));
            let written = go_on()
                && part
                    .write_hole_while(run.clone(), go_on)
                    .map_err(|error| self.not_written(assembly, &part, &error))?;
            if !written {
                return Err(TransferError::stopped());
            }
            self.progress.add_found(assembly.books.progress, at(run.end) - at(run.start));
        }
        drop(part);
        self.written(assembly, peer, count)
    }

    /// Opens the part file to be filled from an old copy. Returns `None` if the file is resolved.
    pub(crate) fn begin_delta(
        &self,
        assembly: &Assembly<'_>,
    ) -> Result<Option<Arc<PartFile>>, TransferError> {
        let mut body = lock(&self.body);
        if body.resolved {
            return Ok(None);
        }
        self.open(assembly, &mut body).map(Some)
    }

    /// Handles the end record. Returns true if the file is resolved.
    pub(crate) fn receive_end(
        self: &Arc<Self>,
        assembly: &Assembly<'_>,
        peer: PeerId,
        (ending, chunks, root): (Ending, u64, Root),
    ) -> Result<bool, TransferError> {
        let mut body = lock(&self.body);
        if body.ledger().has_ended(peer) {
            return Err(self.violation("it ends twice"));
        }
        match (ending, &self.wanted) {
            (Ending::Identical, Wanted::Unless(ours) | Wanted::Kept(ours))
                if *ours == root && chunks == 0 => {}
            (Ending::Identical, _) => return Err(self.violation("it is not identical")),
            (Ending::Different, Wanted::Kept(ours)) if *ours != root && chunks == 0 => {}
            (Ending::Different, _) => return Err(self.violation("it is not different")),
            (Ending::Complete, Wanted::Kept(_)) => {
                return Err(self.violation("an end of a file that keeps its name"));
            }
            (Ending::Complete, _) if self.chunks() < 2 => {
                return Err(self.violation("an end without its content"));
            }
            (Ending::Complete, _) if self.local.old.is_some() => {
                if !assembly.deltas.is_decided(self.entry) {
                    return Err(self.violation("it ends before all bytes were requested"));
                }
            }
            (Ending::Complete, _) => drop(self.open(assembly, &mut body)?),
            (Ending::Changed | Ending::Unreadable, _) => {}
        }
        body.ledger().end(peer, FileEnd { ending, chunks, root });
        self.finish_if_complete(assembly, peer, &mut body)
    }

    /// Claims chunks that `peer` owes, once each, from any record type and connection, and opens the
    /// part file for them.
    pub(in crate::receive) fn claim(
        &self,
        assembly: &Assembly<'_>,
        peer: PeerId,
        chunks: Range<u64>,
        carrier: Carrier,
    ) -> Result<Arc<PartFile>, TransferError> {
        if let Wanted::Kept(_) = self.wanted {
            return Err(self.violation("a chunk that was not asked for"));
        }
        let mut body = lock(&self.body);
        let part = self.open(assembly, &mut body)?;
        if body.ledger().has_lied(peer) {
            // Another thread is about to report the mismatch. This one must not report a violation
            // first.
            return Err(self.mismatch(assembly));
        }
        // A file with an old copy arrives as patches, every other file as chunks.
        let carried = (carrier == Carrier::Patch) == self.local.old.is_some();
        if !carried || !body.ledger().claim(peer, chunks) {
            return Err(self.violation("a chunk that was not asked for, or twice"));
        }
        Ok(part)
    }

    /// Takes a claimed chunk back that does not match its hash, and leaves `peer` out of the file.
    pub(in crate::receive) fn refuse(
        &self,
        assembly: &Assembly<'_>,
        peer: PeerId,
        index: u64,
    ) -> TransferError {
        lock(&self.body).ledger().refuse(peer, index..index + 1);
        self.mismatch(assembly)
    }

    /// Counts chunks claimed by `peer` that are now on disk. Returns true if the file is resolved.
    pub(in crate::receive) fn written(
        self: &Arc<Self>,
        assembly: &Assembly<'_>,
        peer: PeerId,
        count: u64,
    ) -> Result<bool, TransferError> {
        let mut body = lock(&self.body);
        body.ledger().written(peer, count);
        self.finish_if_complete(assembly, peer, &mut body)
    }

    /// Returns the part file; opens it first if it is not open.
    fn open(
        &self,
        assembly: &Assembly<'_>,
        body: &mut Body,
    ) -> Result<Arc<PartFile>, TransferError> {
        if body.resolved {
            return Err(self.violation("more of it after it was settled"));
        }
        if let Some(part) = &body.part {
            return Ok(Arc::clone(part));
        }
        if self.chunks() < 2 {
            return Err(self.violation("chunks of a file that has only one"));
        }
        if !assembly.begin_part() {
            return Err(self.violation("too many files at once"));
        }
        let part = assembly.target.open_or_resume(&self.placed.entry, &assembly.part_key);
        let mut part = part.map_err(|error| assembly.disk(&error))?;
        // Another program has written to the part since it was inspected. The damaged chunks are
        // missing in the end, and the next connection fetches them.
        part.recheck(|_| !assembly.is_stopped()).map_err(|error| assembly.disk(&error))?;
        let part = Arc::new(part);
        let fetched = match &self.wanted {
            Wanted::Chunks(chunks) => chunks.count(),
            Wanted::Whole | Wanted::Unless(_) => self.chunks(),
            Wanted::Kept(_) => 0,
        };
        let size = self.placed.entry.size();
        let local = size.saturating_sub(fetched.saturating_mul(CHUNK_BYTES as u64));
        let name = self.placed.offered.display();
        assembly.books.progress.begin_file(self.entry, &name, local, size);
        body.part = Some(Arc::clone(&part));
        Ok(part)
    }
}
