//! One wanted file while it arrives: expected and received chunks, and the checks of its records.
//!
//! Chunks of a file may arrive on several streams and from several peers, handled by several
//! threads. A chunk is *claimed* under the lock (so it is accepted once), then hashed without the
//! lock, then written. The [`ledger`] counts the chunks. A file is complete when its end record has
//! arrived from every peer that was asked, and as many chunks are written as those records state.
//! The thread that resolves the last chunk then finishes the file.

mod finish;
mod ledger;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use wraith_files::{
    CHUNK_BYTES, Cv, Error, Existing, IntervalSet, PartFile, RelPath, Root, chunk_count, chunk_len,
    slices_root,
};

use super::assembly::Assembly;
use super::outstanding::Outstanding;
use super::placement::Placed;
use crate::error::TransferError;
use crate::limits::{HOLE_RUN_CHUNKS, OPEN_FILES_MAX};
use crate::lock::lock;
use crate::progress::FileProgress;
use crate::record::{Ending, RECORD_BODY_BYTES_MAX};
use crate::role::Role;
use crate::wanted::Wanted;
pub(crate) use ledger::PeerId;
use ledger::{ChunkLedger, FileEnd};

/// The record type that carries a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    /// A chunk or hole record of the file itself.
    Record,
    /// A patch with the bytes that an old copy lacks.
    Patch,
}

/// An old copy, from which a file is assembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OldCopy {
    /// The file that has the name now.
    Existing(Existing),
    /// The part of an interrupted transfer, with content of an earlier version.
    Part,
}

/// Local files that may help.
#[derive(Clone, Debug, Default)]
pub(crate) struct LocalCopies {
    /// The old copy announced to the sender.
    pub(super) old: Option<OldCopy>,
    /// Path of the local file that the sender's file is compared with, if it is not at its own
    /// path.
    pub(super) copy: Option<RelPath>,
}

/// One wanted file; see the module documentation.
#[derive(Debug)]
pub(crate) struct Incoming {
    entry: u32,
    placed: Placed,
    wanted: Wanted,
    local: LocalCopies,
    pub(super) progress: FileProgress,
    body: Mutex<Body>,
}

/// Received content.
#[derive(Debug, Default)]
struct Body {
    /// Set from the first chunk on (or an end without any).
    part: Option<Arc<PartFile>>,
    /// Set once a peer is asked for chunks, or ends the file.
    ledger: Option<Box<ChunkLedger>>,
    resolved: bool,
}

impl Body {
    fn ledger(&mut self) -> &mut ChunkLedger {
        self.ledger.get_or_insert_default()
    }
}

impl Outstanding for Incoming {
    fn path_bytes(&self) -> usize {
        self.placed.entry.path.as_bytes().len() + self.placed.offered.as_bytes().len()
    }
}

impl Incoming {
    /// Creates the state of a wanted file. With an old copy, the file arrives as patches of the
    /// missing bytes (SPEC §10.11), and only requested chunks are accepted.
    pub(crate) fn new(entry: u32, placed: Placed, wanted: Wanted, local: LocalCopies) -> Self {
        let progress = FileProgress::new(entry);
        let file = Self { entry, placed, wanted, local, progress, body: Mutex::default() };
        // A smaller file arrives in one record. Patches are wanted once the missing bytes are
        // determined.
        if file.chunks() >= 2 && file.local.old.is_none() {
            match &file.wanted {
                Wanted::Chunks(chunks) => lock(&file.body).ledger().want(chunks.iter()),
                Wanted::Whole | Wanted::Unless(_) => {
                    lock(&file.body).ledger().want([0..file.chunks()]);
                }
                Wanted::Kept(_) => {}
            }
        }
        file
    }

    /// Asks `peer` for the wanted chunks of `within`, and returns them: all that no other peer owes.
    pub(crate) fn ask(&self, peer: PeerId, within: Range<u64>) -> IntervalSet {
        match &mut lock(&self.body).ledger {
            Some(ledger) => ledger.ask(peer, within),
            None => IntervalSet::new(),
        }
    }

    pub(crate) fn entry(&self) -> u32 {
        self.entry
    }

    /// Returns true if the whole file is wanted, unconditionally.
    pub(super) fn is_wanted_whole(&self) -> bool {
        self.wanted == Wanted::Whole && self.local.old.is_none()
    }

    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    pub(crate) fn path(&self) -> &RelPath {
        &self.placed.entry.path
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.placed.entry.size()
    }

    pub(crate) fn old(&self) -> Option<&OldCopy> {
        self.local.old.as_ref()
    }

    pub(crate) fn is_resolved(&self) -> bool {
        lock(&self.body).resolved
    }

    /// Returns true if `peer` has ended the file.
    pub(super) fn has_ended(&self, peer: PeerId) -> bool {
        lock(&self.body).ledger.as_ref().is_some_and(|ledger| ledger.has_ended(peer))
    }

    fn chunks(&self) -> u64 {
        chunk_count(self.placed.entry.size())
    }

    /// Counts bytes of the file that are now on disk.
    pub(super) fn add_bytes(&self, assembly: &Assembly<'_>, bytes: u64) {
        self.progress.add_bytes(assembly.books.progress, bytes);
    }

    /// Returns a protocol error that names the file.
    pub(super) fn violation(&self, what: &str) -> TransferError {
        let what = format!("{}: {what}", self.placed.entry.path.display());
        TransferError::Protocol { peer: Role::Sender, what }
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

    pub(super) fn mismatch(&self, assembly: &Assembly<'_>) -> TransferError {
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
        if assembly.sync && part.is_write_back_due() {
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

    /// Handles a sign of life from a sender that reads without sending.
    pub(crate) fn receive_pulse(&self, chunks: u64) -> Result<(), TransferError> {
        if chunks > self.chunks() {
            return Err(self.violation("an invalid progress record"));
        }
        Ok(())
    }

    /// Claims chunks that `peer` owes, once each, from any record type and connection, and opens the
    /// part file for them.
    pub(super) fn claim(
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
        // A file with an old copy arrives as patches, every other file as chunks.
        let carried = (carrier == Carrier::Patch) == self.local.old.is_some();
        if !carried || !body.ledger().claim(peer, chunks) {
            return Err(self.violation("a chunk that was not asked for, or twice"));
        }
        Ok(part)
    }

    /// Takes a claimed chunk back that does not match its hash, and leaves `peer` out of the file.
    pub(super) fn refuse(
        &self,
        assembly: &Assembly<'_>,
        peer: PeerId,
        index: u64,
    ) -> TransferError {
        lock(&self.body).ledger().refuse(peer, index..index + 1);
        self.mismatch(assembly)
    }

    /// Expects patches of these chunks from `peer` from now on. Returns false if the file is
    /// resolved, or if the peer has ended it.
    pub(super) fn expect_patches(&self, peer: PeerId, chunks: impl Iterator<Item = u64>) -> bool {
        let mut body = lock(&self.body);
        if body.part.is_none() || body.ledger().has_ended(peer) {
            return false;
        }
        let ledger = body.ledger();
        ledger.want(chunks.map(|chunk| chunk..chunk + 1));
        ledger.ask(peer, 0..u64::MAX);
        true
    }

    /// Counts chunks claimed by `peer` that are now on disk. Returns true if the file is resolved.
    pub(super) fn written(
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
        if assembly.open_files.fetch_add(1, Relaxed) >= OPEN_FILES_MAX as u64 {
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
