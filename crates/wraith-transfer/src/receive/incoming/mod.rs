//! One wanted file while it arrives: expected and received chunks, and the checks of its records.
//!
//! Chunks of a file may arrive on several streams, handled by several threads. A chunk is *claimed*
//! under the lock (so it is accepted once), then hashed without the lock, then written. A file is
//! complete when its end record has arrived and as many chunks are written as that record states.
//! The thread that resolves the last chunk then finishes the file.

mod finish;

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use wraith_files::{
    CHUNK_BYTES, Cv, Error, Existing, IntervalSet, PartFile, RelPath, chunk_count, chunk_len,
    slices_root,
};

use super::Receiving;
use super::outstanding::Outstanding;
use super::placement::Placed;
use crate::error::TransferError;
use crate::limits::{HOLE_RUN_CHUNKS, OPEN_FILES_MAX, STALL_BYTES};
use crate::lock::lock;
use crate::progress::FileProgress;
use crate::record::{Ending, RECORD_BODY_BYTES_MAX};
use crate::wanted::Wanted;

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
    open: Option<OpenPart>,
    end: Option<FileEnd>,
    resolved: bool,
}

#[derive(Debug)]
struct OpenPart {
    part: Arc<PartFile>,
    /// Chunks that may still arrive and are not claimed yet.
    due: IntervalSet,
    /// Number of claimed chunks, and of those the written ones.
    claimed: u64,
    written: u64,
}

#[derive(Clone, Copy, Debug)]
struct FileEnd {
    ending: Ending,
    chunks: u64,
    root: [u8; 32],
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
        Self { entry, placed, wanted, local, progress, body: Mutex::default() }
    }

    pub(crate) fn entry(&self) -> u32 {
        self.entry
    }

    /// Returns true if the whole file is wanted, unconditionally.
    pub(super) fn is_wanted_whole(&self) -> bool {
        self.wanted == Wanted::Whole && self.local.old.is_none()
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

    /// Returns true if the sender has ended the file.
    pub(super) fn has_ended(&self) -> bool {
        lock(&self.body).end.is_some()
    }

    fn chunks(&self) -> u64 {
        chunk_count(self.placed.entry.size())
    }

    /// Returns a protocol error that names the file.
    pub(super) fn violation(&self, receiving: &Receiving<'_>, what: &str) -> TransferError {
        receiving.session.protocol(format!("{}: {what}", self.placed.entry.path.display()))
    }

    /// Converts an error of a write to the part.
    fn not_written(
        &self,
        receiving: &Receiving<'_>,
        part: &PartFile,
        error: &Error,
    ) -> TransferError {
        match error {
            Error::TooManyPieces { .. } => {
                // A part that cannot be continued on this connection cannot be continued on the
                // next. If its removal fails too, the violation is the error to report.
                let _ = part.discard();
                self.violation(receiving, "its chunks form too many separate ranges")
            }
            error => receiving.disk(error),
        }
    }

    pub(super) fn mismatch(&self, receiving: &Receiving<'_>) -> TransferError {
        let (span, path) = (&receiving.session.span, self.placed.entry.path.display());
        tracing::debug!(parent: span, %path, "verification failed");
        let what =
            format!("{} does not match the hash sent with it", self.placed.entry.path.display());
        TransferError::Verification { what }
    }

    /// Handles the whole file in one record. The file is resolved afterwards.
    pub(crate) fn receive_whole(
        self: &Arc<Self>,
        receiving: &Receiving<'_>,
        pieces: &[&[u8]],
        root: &[u8; 32],
    ) -> Result<(), TransferError> {
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        let asked = matches!(self.wanted, Wanted::Whole | Wanted::Unless(_))
            && self.placed.entry.size() == len as u64;
        if !asked || len > RECORD_BODY_BYTES_MAX {
            return Err(self.violation(receiving, "a record of another size than announced"));
        }
        if slices_root(pieces) != *root {
            return Err(self.mismatch(receiving));
        }
        receiving.counts.bytes_moved.fetch_add(len as u64, Relaxed);
        receiving.progress.add_bytes(len as u64);
        lock(&receiving.contents).add(self.entry, root);
        let target = receiving.target;
        match receiving.progress.at_disk(|| target.write_unnamed(&self.placed.entry, pieces)) {
            Ok(content) => self.complete(receiving, content, *root),
            Err(error) => self.blocked(receiving, error, *root),
        }
    }

    /// Handles one chunk. Returns true if the file is resolved.
    pub(crate) fn receive_chunk(
        self: &Arc<Self>,
        receiving: &Receiving<'_>,
        index: u64,
        pieces: &[&[u8]],
        cv: Cv,
    ) -> Result<bool, TransferError> {
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        if len == 0 || len != chunk_len(self.placed.entry.size(), index) {
            return Err(self.violation(receiving, "a chunk it does not have"));
        }
        let part = self.claim(receiving, index..index + 1, Carrier::Record)?;
        if self.placed.entry.tree().chunk_cv(index, pieces) != cv {
            return Err(self.mismatch(receiving));
        }
        let written = receiving.progress.at_disk(|| part.write_chunk(index, pieces, cv));
        written.map_err(|error| self.not_written(receiving, &part, &error))?;
        if receiving.sync && part.is_write_back_due() {
            receiving.naming.write_back(&part);
        }
        drop(part);
        receiving.counts.bytes_moved.fetch_add(len as u64, Relaxed);
        self.progress.add_bytes(receiving.progress, len as u64);
        self.written(receiving, 1)
    }

    /// Handles chunks of zeros. Returns true if the file is resolved.
    pub(crate) fn receive_hole(
        self: &Arc<Self>,
        receiving: &Receiving<'_>,
        first: u64,
        count: u64,
    ) -> Result<bool, TransferError> {
        let end = first.checked_add(count).filter(|&end| count > 0 && end <= self.chunks());
        let (Some(end), true) = (end, self.placed.entry.is_sparse()) else {
            return Err(self.violation(receiving, "a hole it does not have"));
        };
        let part = self.claim(receiving, first..end, Carrier::Record)?;
        let at = |chunk: u64| self.placed.entry.size().min(chunk * CHUNK_BYTES as u64);
        let step = if self.placed.entry.tree().knows_zeros() { count } else { HOLE_RUN_CHUNKS };
        let mut run = first..first;
        while run.end < end {
            // A peer can put petabytes into one record; hashing or writing them must not outlive
            // the transfer.
            let go_on = || !receiving.session.is_over();
            run = run.end..end.min(run.end.saturating_add(step));
            let written = go_on()
                && part
                    .write_hole_while(run.clone(), go_on)
                    .map_err(|error| self.not_written(receiving, &part, &error))?;
            if !written {
                return Err(receiving.session.stopped());
            }
            self.progress.add_found(receiving.progress, at(run.end) - at(run.start));
            // A record of 21 bytes represents a hole of a GiB or more. If only the record's bytes
            // counted as progress, a long hole would look like a stall.
            receiving.session.moved(STALL_BYTES);
        }
        drop(part);
        self.written(receiving, count)
    }

    /// Opens the part file to be filled from an old copy. Returns `None` if the file is resolved.
    pub(crate) fn begin_delta(
        &self,
        receiving: &Receiving<'_>,
    ) -> Result<Option<Arc<PartFile>>, TransferError> {
        let mut body = lock(&self.body);
        if body.resolved {
            return Ok(None);
        }
        self.open(receiving, &mut body)?;
        Ok(body.open.as_ref().map(|open| Arc::clone(&open.part)))
    }

    /// Handles the end record. Returns true if the file is resolved.
    pub(crate) fn receive_end(
        self: &Arc<Self>,
        receiving: &Receiving<'_>,
        ending: Ending,
        chunks: u64,
        root: [u8; 32],
    ) -> Result<bool, TransferError> {
        let mut body = lock(&self.body);
        if body.end.is_some() {
            return Err(self.violation(receiving, "it ends twice"));
        }
        match (ending, &self.wanted) {
            (Ending::Identical, Wanted::Unless(ours) | Wanted::Kept(ours))
                if *ours == root && chunks == 0 => {}
            (Ending::Identical, _) => return Err(self.violation(receiving, "it is not identical")),
            (Ending::Different, Wanted::Kept(ours)) if *ours != root && chunks == 0 => {}
            (Ending::Different, _) => return Err(self.violation(receiving, "it is not different")),
            (Ending::Complete, Wanted::Kept(_)) => {
                return Err(self.violation(receiving, "an end of a file that keeps its name"));
            }
            (Ending::Complete, _) if self.chunks() < 2 => {
                return Err(self.violation(receiving, "an end without its content"));
            }
            (Ending::Complete, _) if self.local.old.is_some() => {
                if !receiving.deltas.is_decided(self.entry) {
                    return Err(
                        self.violation(receiving, "it ends before all bytes were requested")
                    );
                }
            }
            (Ending::Complete, _) => self.open(receiving, &mut body)?,
            (Ending::Changed | Ending::Unreadable, _) => {}
        }
        body.end = Some(FileEnd { ending, chunks, root });
        self.finish_if_complete(receiving, &mut body)
    }

    /// Handles a sign of life from a sender that reads without sending.
    pub(crate) fn receive_pulse(
        &self,
        receiving: &Receiving<'_>,
        chunks: u64,
    ) -> Result<(), TransferError> {
        if chunks > self.chunks() {
            return Err(self.violation(receiving, "an invalid progress record"));
        }
        Ok(())
    }

    /// Claims chunks, once each, from any record type and connection, and opens the part file for
    /// them.
    pub(super) fn claim(
        &self,
        receiving: &Receiving<'_>,
        chunks: Range<u64>,
        carrier: Carrier,
    ) -> Result<Arc<PartFile>, TransferError> {
        if let Wanted::Kept(_) = self.wanted {
            return Err(self.violation(receiving, "a chunk that was not asked for"));
        }
        let mut body = lock(&self.body);
        self.open(receiving, &mut body)?;
        let ended = body.end;
        let open = body.open.as_mut().expect("it was just opened");
        let count = chunks.end - chunks.start;
        let expected = ended.is_none_or(|end| open.claimed + count <= end.chunks);
        // A file with an old copy arrives as patches, every other file as chunks.
        let carried = (carrier == Carrier::Patch) == self.local.old.is_some();
        if !open.due.contains_range(&chunks) || !expected || !carried {
            return Err(self.violation(receiving, "a chunk that was not asked for, or twice"));
        }
        open.due.remove(chunks);
        open.claimed += count;
        Ok(Arc::clone(&open.part))
    }

    /// Expects patches of these chunks from now on. Returns false if the file is resolved.
    pub(super) fn expect_patches(&self, chunks: impl Iterator<Item = u64>) -> bool {
        let mut body = lock(&self.body);
        let Some(open) = body.open.as_mut() else { return false };
        chunks.for_each(|chunk| open.due.insert(chunk..chunk + 1));
        true
    }

    /// Counts claimed chunks that are now on disk. Returns true if the file is resolved.
    pub(super) fn written(
        self: &Arc<Self>,
        receiving: &Receiving<'_>,
        count: u64,
    ) -> Result<bool, TransferError> {
        let mut body = lock(&self.body);
        body.open.as_mut().expect("it stays open while chunks are claimed").written += count;
        self.finish_if_complete(receiving, &mut body)
    }

    fn open(&self, receiving: &Receiving<'_>, body: &mut Body) -> Result<(), TransferError> {
        if body.resolved {
            return Err(self.violation(receiving, "more of it after it was settled"));
        }
        if body.open.is_some() {
            return Ok(());
        }
        if self.chunks() < 2 {
            return Err(self.violation(receiving, "chunks of a file that has only one"));
        }
        if receiving.open_files.fetch_add(1, Relaxed) >= OPEN_FILES_MAX as u64 {
            return Err(self.violation(receiving, "too many files at once"));
        }
        let part = receiving.target.open_or_resume(&self.placed.entry, &receiving.part_key);
        let mut part = part.map_err(|error| receiving.disk(&error))?;
        // Another program has written to the part since it was inspected. The damaged chunks are
        // missing in the end, and the next connection fetches them.
        part.recheck(|_| !receiving.session.is_over()).map_err(|error| receiving.disk(&error))?;
        let part = Arc::new(part);
        let mut due = match &self.wanted {
            Wanted::Chunks(chunks) => chunks.clone(),
            Wanted::Whole | Wanted::Unless(_) => std::iter::once(0..self.chunks()).collect(),
            Wanted::Kept(_) => IntervalSet::new(),
        };
        let size = self.placed.entry.size();
        let local = size.saturating_sub(due.count().saturating_mul(CHUNK_BYTES as u64));
        if self.local.old.is_some() {
            // Patches become due once the missing bytes are determined.
            due = IntervalSet::new();
        }
        receiving.progress.begin_file(self.entry, &self.placed.offered.display(), local, size);
        body.open = Some(OpenPart { part, due, claimed: 0, written: 0 });
        Ok(())
    }
}
