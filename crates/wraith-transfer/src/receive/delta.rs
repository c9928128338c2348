//! Assembles files from an old copy and the missing bytes from the sender (SPEC §10.11).
//!
//! One thread processes one file at a time:
//!
//! 1. It cuts the old copy into pieces while the sender cuts the new file, and compares them.
//! 2. It requests finer pieces of the unmatched ranges.
//! 3. It assembles the file chunk by chunk. A fully known chunk is verified and written. For any
//!    other chunk, the known bytes are written to the part file and the missing ones are requested.
//!    The data threads add the requested bytes on arrival.
//!
//! The old copy is the file under the name, which is only read, or the part of an interrupted
//! transfer, which becomes the new file in place. Neither is trusted: see
//! [`wraith_files::Assembler`].

use std::ops::Range;
use std::sync::Arc;

use wraith_crypto::from_variants;
use wraith_files::{
    Assembler, CHUNK_BYTES, Cutter, EarlierContent, Error, IntervalSet, MatchedPiece, NewPiece,
    OldContent, OldPieces, PartFile, PieceSize, Tree, chunk_len, unused,
};

use super::assembly::Assembly;
use super::incoming::{Incoming, OldCopy};
use super::peer::Peer;
use crate::delta::{chunk_start, finer_size, first_size};
use crate::error::TransferError;
use crate::limits::{DELTA_SPANS_MAX, PULSE_CHUNKS, STALL_BYTES};
use crate::message::{Lack, Message, Refine, Span};

/// Number of missing ranges that triggers a request, even while the comparison goes on. The sender
/// should not be idle.
const ASK_SPANS: usize = 256;

/// Number of missing bytes that triggers a request.
const ASK_BYTES: u64 = 4 * 1024 * 1024;

/// Number of chunks since the first missing range that triggers a request (64 MiB).
const ASK_CHUNKS: u64 = 256;

/// Processes files until all are resolved.
pub(super) fn work(peer: &Peer<'_>, assembly: &Assembly<'_>) -> Result<(), TransferError> {
    while let Some(file) = assembly.deltas.next() {
        let rebuild = DeltaRebuild { peer, assembly, file: &file };
        match rebuild.run() {
            Err(RebuildStop::Resolved) | Ok(()) => {}
            Err(RebuildStop::Transfer(error)) => return Err(error),
        }
    }
    Ok(())
}

/// Why the assembly of a file stopped early.
enum RebuildStop {
    /// The sender ended the file: it changed or cannot be read.
    Resolved,
    Transfer(TransferError),
}

from_variants!(RebuildStop { TransferError => Transfer });

/// Assembly of one file.
struct DeltaRebuild<'a> {
    peer: &'a Peer<'a>,
    assembly: &'a Assembly<'a>,
    file: &'a Arc<Incoming>,
}

impl DeltaRebuild<'_> {
    fn run(&self) -> Result<(), RebuildStop> {
        let (assembly, file) = (self.assembly, self.file);
        let part = file.begin_delta(assembly)?.ok_or(RebuildStop::Resolved)?;
        // If the old copy is gone or has changed, it contributes nothing, and the whole file is
        // requested.
        let old = self.open(&part);
        let old = old.as_deref();
        let first = first_size(file.bytes());
        let ranges = old.map_or_else(Vec::new, OldContent::ranges);
        let old_pieces = self.cut_old(old, &ranges, first)?;
        let mut known = Vec::new();
        let mut unknown = old_pieces.compare(&self.pieces()?, first, &mut known);
        drop(old_pieces);
        let have = part.have();
        unknown.retain(|span| chunks_of(span).any(|chunk| !have.contains(chunk)));
        self.compare_finer(old, first, unknown, &mut known)?;
        self.rebuild(&part, old, Assembler::new(old, known))
    }

    fn open<'p>(&self, part: &'p PartFile) -> Option<Box<dyn OldContent + 'p>> {
        match self.file.old()? {
            OldCopy::Existing(existing) => {
                let opened = self.assembly.target.open_existing(self.file.path(), existing);
                opened.ok().map(|file| Box::new(file) as _)
            }
            OldCopy::Part => Some(Box::new(EarlierContent::of(part))),
        }
    }

    /// Waits for all requested pieces.
    fn pieces(&self) -> Result<Vec<NewPiece>, RebuildStop> {
        self.assembly.deltas.pieces(self.file.entry()).ok_or(RebuildStop::Resolved)
    }

    /// Reports activity to stall detection, and fails when the transfer is over.
    fn check_running(&self, chunks: u64) -> Result<(), TransferError> {
        let session = self.peer.session;
        if session.is_over() {
            return Err(session.stopped());
        }
        if chunks.is_multiple_of(PULSE_CHUNKS) {
            // The sender waits for this side, which is not a stall.
            session.moved(STALL_BYTES);
        }
        Ok(())
    }

    /// Cuts ranges of the old copy into pieces. Unreadable ranges yield no pieces.
    fn cut_old(
        &self,
        old: Option<&dyn OldContent>,
        spans: &[Range<u64>],
        size: PieceSize,
    ) -> Result<OldPieces, TransferError> {
        let mut pieces = OldPieces::default();
        let (mut buffer, mut read) = (vec![0; CHUNK_BYTES], 0);
        let Some(old) = old else { return Ok(pieces) };
        'all: for span in spans {
            let (mut cutter, mut from, mut at) = (Cutter::new(size), span.start, span.start);
            let mut has_room = true;
            while at < span.end {
                read += 1;
                self.check_running(read)?;
                let bytes = &mut buffer[..(span.end - at).min(CHUNK_BYTES as u64) as usize];
                if old.read_at(at, bytes).is_err() {
                    break 'all;
                }
                at += bytes.len() as u64;
                cutter.feed(bytes, |piece| {
                    has_room = pieces.push(from, piece);
                    from += u64::from(piece.len);
                });
                if !has_room {
                    break 'all;
                }
            }
            if let Some(piece) = cutter.finish() {
                pieces.push(from, piece);
            }
        }
        pieces.seal();
        Ok(pieces)
    }

    /// Compares finer pieces of the unmatched ranges with those of the unused ranges of the old
    /// copy.
    fn compare_finer(
        &self,
        old: Option<&dyn OldContent>,
        first: PieceSize,
        mut unknown: Vec<Range<u64>>,
        known: &mut Vec<MatchedPiece>,
    ) -> Result<(), RebuildStop> {
        let Some(source) = old else { return Ok(()) };
        unknown.truncate(DELTA_SPANS_MAX);
        let gaps = clip(&unused(known, source.size()), source.ranges());
        let bytes = |spans: &[Range<u64>]| spans.iter().map(|s| s.end - s.start).sum::<u64>();
        let Some(finer) = finer_size(first, bytes(&unknown), bytes(&gaps)) else { return Ok(()) };
        if unknown.is_empty() {
            return Ok(());
        }
        let entry = self.file.entry();
        self.assembly.deltas.expect(entry, finer, &unknown);
        let spans = unknown.iter().cloned().map(Span::of).collect();
        let refine = Refine { entry: entry.into(), average: finer.average(), spans };
        self.peer.send(&Message::Refine(refine))?;
        let old_pieces = self.cut_old(old, &gaps, finer)?;
        old_pieces.compare(&self.pieces()?, finer, known);
        Ok(())
    }

    /// Writes the fully known chunks, and requests the missing bytes of the others.
    fn rebuild(
        &self,
        part: &PartFile,
        old: Option<&dyn OldContent>,
        mut known: Assembler<'_>,
    ) -> Result<(), RebuildStop> {
        let (assembly, file) = (self.assembly, self.file);
        let (entry, bytes, have) = (file.entry(), file.bytes(), part.have());
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut unasked = MissingBytes::default();
        for index in 0..part.chunks() {
            self.check_running(index)?;
            if !have.contains(index) {
                let chunk = &mut buffer[..chunk_len(bytes, index)];
                let start = chunk_start(index);
                let mut missing = assembly.at_disk(|| known.fill(start, chunk));
                if let Some(old) = old {
                    old.before_write(index);
                }
                if missing.is_empty() {
                    let cv = assembly.deltas.cv(entry, index).ok_or(RebuildStop::Resolved)?;
                    if Tree::Blake3.chunk_cv(index, &[chunk]) == cv {
                        let write = || part.write_chunk(index, &[chunk], cv);
                        let written = assembly.at_disk(write);
                        written.map_err(|error| self.not_written(&error))?;
                        file.add_bytes(assembly, chunk.len() as u64);
                        continue;
                    }
                    // The old copy has changed since the comparison.
                    missing = whole(chunk.len());
                }
                if missing != whole(chunk.len()) {
                    let laid = part.write_unverified(index, chunk);
                    laid.map_err(|error| self.not_written(&error))?;
                }
                unasked.push(index, missing);
            }
            if unasked.is_due(index) {
                self.request_missing(index + 1, &mut unasked)?;
            }
        }
        self.request_missing(part.chunks(), &mut unasked)
    }

    /// Requests the missing bytes of all chunks below `upto`.
    fn request_missing(&self, upto: u64, unasked: &mut MissingBytes) -> Result<(), RebuildStop> {
        let entry = self.file.entry();
        let unasked = std::mem::take(unasked);
        let spans = unasked.spans();
        // Before `upto` grows: once a file is decided, all its chunks must be expected.
        if !self.file.expect_patches(self.peer.id, unasked.chunks.iter().map(|(index, _)| *index)) {
            return Err(RebuildStop::Resolved);
        }
        self.assembly.deltas.add_requests(entry, upto, unasked.chunks);
        self.peer.send(&Message::Lack(Lack { entry: entry.into(), upto, spans }))?;
        Ok(())
    }

    /// Converts a write error. If the sender's end record has removed the part, it is not a
    /// failure.
    fn not_written(&self, error: &Error) -> RebuildStop {
        if self.file.is_resolved() {
            return RebuildStop::Resolved;
        }
        self.assembly.disk(error).into()
    }
}

/// Chunks with missing bytes that have not been requested yet.
#[derive(Debug, Default)]
struct MissingBytes {
    chunks: Vec<(u64, Vec<Range<usize>>)>,
    spans: usize,
    bytes: u64,
}

impl MissingBytes {
    fn push(&mut self, index: u64, missing: Vec<Range<usize>>) {
        self.spans += missing.len();
        self.bytes += missing.iter().map(|range| range.len() as u64).sum::<u64>();
        self.chunks.push((index, missing));
    }

    /// Returns true if a request is due at chunk `index`.
    fn is_due(&self, index: u64) -> bool {
        let waits = self.chunks.first().is_some_and(|(first, _)| index - first >= ASK_CHUNKS);
        waits || self.spans >= ASK_SPANS || self.bytes >= ASK_BYTES
    }

    /// Returns the spans for the message; adjacent ones are merged.
    fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::with_capacity(self.spans);
        for (index, missing) in &self.chunks {
            for range in missing {
                let first = chunk_start(*index) + range.start as u64;
                let count = range.len() as u64;
                match spans.last_mut() {
                    Some(last) if last.first + last.count == first => last.count += count,
                    _ => spans.push(Span { first, count }),
                }
            }
        }
        spans
    }
}

fn whole(len: usize) -> Vec<Range<usize>> {
    std::iter::once(0..len).collect()
}

/// Returns the parts of `spans` that lie in `ranges`. Both ascend.
fn clip(spans: &[Range<u64>], ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let within: IntervalSet = ranges.into_iter().collect();
    let mut clipped: IntervalSet = spans.iter().cloned().collect();
    for gap in within.missing(u64::MAX) {
        clipped.remove(gap);
    }
    clipped.iter().collect()
}

fn chunks_of(span: &Range<u64>) -> Range<u64> {
    span.start / CHUNK_BYTES as u64..span.end.div_ceil(CHUNK_BYTES as u64)
}
