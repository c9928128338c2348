//! Sends a file of which the receiver has an old copy: its pieces first, then only the requested
//! bytes (SPEC §10.11).
//!
//! One worker handles the whole file. It reads the file once from end to end, for pieces, chaining
//! values and root together. After that it reads only the requested ranges. Bytes are sent only
//! while the file is unchanged, so they match the chaining values.

use std::ops::Range;

use bytes::Bytes;
use wraith_crypto::from_variants;
use wraith_files::{
    CHUNK_BYTES, Cutter, Error, PieceSize, Root, RootBuilder, SourceFile, Tree, chunk_len,
};

use super::announced::Announced;
use super::delta_requests::DeltaRequest;
use super::large_file::ending_of;
use super::plan::Job;
use super::worker::Worker;
use crate::buffer_pool::HEAD_ROOM;
use crate::delta::{PIECE_BYTES, PROOF_BYTES, chunk_start, encode_piece, first_size};
use crate::error::TransferError;
use crate::limits::{DELTA_SPANS_MAX, PULSE_CHUNKS};
use crate::message::{Lack, Refine, Span};
use crate::progress::FileProgress;
use crate::record::{Ending, Header, RECORD_BODY_BYTES_MAX};

/// Maximum numbers of pieces and chaining values in one record.
const PIECES_PER_RECORD: usize = 4096;
const PROOFS_PER_RECORD: usize = 1024;

/// Pieces that were cut and not written yet, contiguous from `at` on.
#[derive(Debug)]
struct SketchBuffer {
    at: u64,
    body: Vec<u8>,
}

impl SketchBuffer {
    fn from(at: u64) -> Self {
        Self { at, body: Vec::new() }
    }

    fn push(&mut self, piece: &wraith_files::Piece) {
        encode_piece(piece, &mut self.body);
    }

    fn is_full(&self) -> bool {
        self.body.len() >= PIECES_PER_RECORD * PIECE_BYTES
    }
}

/// Why sending stopped early: the file ended otherwise, or the transfer did.
enum DeltaStop {
    File(Ending),
    Transfer(TransferError),
}

from_variants!(DeltaStop { TransferError => Transfer });

impl From<Error> for DeltaStop {
    fn from(error: Error) -> Self {
        Self::File(ending_of(&error))
    }
}

/// State of one file.
struct Sketched<'a> {
    job: &'a Job<Announced>,
    entry: u32,
    source: &'a SourceFile,
    size: u64,
    /// Number of chunks sent.
    sent: u64,
    /// Number of chunks decided by the receiver.
    upto: u64,
    progress: FileProgress,
    /// The root of the content that was sketched; zeros before that.
    root: Root,
    buffer: Vec<u8>,
}

impl Worker<'_> {
    /// Sends the bytes of a file that the receiver lacks. `unless` is the root of a copy that needs
    /// nothing.
    pub(super) fn send_delta(
        &mut self,
        job: Job<Announced>,
        unless: Option<Root>,
    ) -> Result<(), TransferError> {
        let source = match job.item.found.open() {
            Ok(source) => source,
            Err(error) => return self.end_unopened(&job, ending_of(&error)),
        };
        let mut file = Sketched {
            job: &job,
            entry: job.entry,
            source: &source,
            size: source.size(),
            sent: 0,
            upto: 0,
            progress: FileProgress::new(job.entry),
            root: [0; 32],
            buffer: vec![0; CHUNK_BYTES],
        };
        let progress = self.offered.progress();
        progress.begin_file(job.entry, &job.item.name(), 0, file.size);
        self.peer.requests.open(job.entry);
        let done = self.sketch_and_answer(&mut file, unless);
        self.peer.requests.close(job.entry);
        if !matches!(done, Err(DeltaStop::Transfer(_))) {
            file.progress.finish(progress, file.size);
        }
        match done {
            Ok((ending, root)) => {
                self.offered.resolve(job.entry, &job.item, ending, (Some(root), None));
                let (entry, chunks) = (job.entry, file.sent);
                self.write_header(Header::End { entry, ending, chunks, root })
            }
            Err(DeltaStop::File(ending)) => self.end(&job, ending, file.sent),
            Err(DeltaStop::Transfer(error)) => Err(error),
        }
    }

    fn sketch_and_answer(
        &mut self,
        file: &mut Sketched<'_>,
        unless: Option<Root>,
    ) -> Result<(Ending, Root), DeltaStop> {
        let root = self.sketch(file, unless)?;
        if unless == Some(root) {
            return Ok((Ending::Identical, root));
        }
        let chunks = file.source.chunks();
        let mut is_refined = false;
        while file.upto < chunks {
            let session = self.peer.session;
            match self.peer.requests.next(file.entry) {
                None => return Err(session.stopped().into()),
                Some(DeltaRequest::Refine(refine)) if !is_refined && file.upto == 0 => {
                    is_refined = true;
                    self.refine(file, &refine)?;
                }
                Some(DeltaRequest::Refine(_)) => {
                    return Err(session.protocol("it refines the same file twice").into());
                }
                Some(DeltaRequest::Lack(lack)) => self.patch(file, &lack)?,
            }
        }
        self.check_unchanged(file)?;
        Ok((Ending::Complete, root))
    }

    /// Reads the file and sends its pieces and chaining values. With `unless`, sends nothing before
    /// the root is known to differ.
    fn sketch(&mut self, file: &mut Sketched<'_>, unless: Option<Root>) -> Result<Root, DeltaStop> {
        let mut cutter = Cutter::new(first_size(file.size));
        let (mut sketch_buffer, mut proofs, mut first) = (SketchBuffer::from(0), Vec::new(), 0);
        let mut root = RootBuilder::new();
        let chunks = file.source.chunks();
        for index in 0..chunks {
            self.check_running(file, index)?;
            let bytes = &mut file.buffer[..chunk_len(file.size, index)];
            self.offered.progress().at_disk(|| file.source.read_chunk(index, bytes))?;
            let cv = Tree::Blake3.chunk_cv(index, &[bytes]);
            root.set(index, cv);
            proofs.extend_from_slice(&cv);
            cutter.feed(bytes, |piece| sketch_buffer.push(&piece));
            if unless.is_none() && proofs.len() >= PROOFS_PER_RECORD / 8 * PROOF_BYTES {
                self.write_sketch(file.entry, &mut sketch_buffer)?;
                self.write_proofs(file.entry, first, &mut proofs)?;
                first = index + 1;
            }
        }
        cutter.finish().iter().for_each(|piece| sketch_buffer.push(piece));
        let root = root.finish(file.size).expect("every chunk was hashed");
        file.root = root;
        self.check_unchanged(file)?;
        if unless != Some(root) {
            self.write_sketch(file.entry, &mut sketch_buffer)?;
            self.write_proofs(file.entry, first, &mut proofs)?;
        }
        Ok(root)
    }

    /// Sends the finer pieces of some ranges.
    fn refine(&mut self, file: &mut Sketched<'_>, refine: &Refine) -> Result<(), DeltaStop> {
        let session = self.peer.session;
        let spans = ascending(&refine.spans, 0..file.size);
        let (Some(size), Some(spans)) = (PieceSize::new(refine.average), spans) else {
            return Err(session.protocol("it refines invalid ranges").into());
        };
        let mut read = 0;
        for span in spans {
            let (mut cutter, mut sketch_buffer) =
                (Cutter::new(size), SketchBuffer::from(span.start));
            let mut at = span.start;
            while at < span.end {
                let len = (span.end - at).min(CHUNK_BYTES as u64) as usize;
                file.source.read_at(at, &mut file.buffer[..len])?;
                cutter.feed(&file.buffer[..len], |piece| sketch_buffer.push(&piece));
                (at, read) = (at + len as u64, read + 1);
                self.check_running(file, read)?;
                if sketch_buffer.is_full() {
                    self.write_sketch(file.entry, &mut sketch_buffer)?;
                }
            }
            cutter.finish().iter().for_each(|piece| sketch_buffer.push(piece));
            self.write_sketch(file.entry, &mut sketch_buffer)?;
        }
        self.check_unchanged(file)
    }

    /// Sends the requested bytes, one record per affected chunk.
    fn patch(&mut self, file: &mut Sketched<'_>, lack: &Lack) -> Result<(), DeltaStop> {
        let (session, before) = (self.peer.session, chunk_start(file.upto));
        let decided = before..chunk_start(lack.upto).min(file.size);
        let is_forward = lack.upto > file.upto && lack.upto <= file.source.chunks();
        let Some(spans) = ascending(&lack.spans, decided.clone()).filter(|_| is_forward) else {
            return Err(session.protocol("it requests invalid ranges").into());
        };
        let mut spans = spans.into_iter().peekable();
        while let Some(first) = spans.peek() {
            let index = first.start / CHUNK_BYTES as u64;
            let end = chunk_start(index + 1);
            let mut buffer = self.take_buffer()?;
            let mut filled = HEAD_ROOM;
            while let Some(span) = spans.peek_mut().filter(|span| span.start < end) {
                let (from, to) = (span.start, span.end.min(end));
                let place = filled..filled + (to - from) as usize;
                filled = place.end;
                file.source.read_at(from, &mut buffer.bytes()[place])?;
                span.start = to;
                if span.is_empty() {
                    spans.next();
                }
            }
            // The bytes read belong to the file that was hashed.
            self.check_unchanged(file)?;
            let mut header = Vec::with_capacity(HEAD_ROOM);
            let len = (filled - HEAD_ROOM) as u32;
            Header::Patch { entry: file.entry, index, len }.encode(&mut header);
            let start = HEAD_ROOM - header.len();
            buffer.bytes()[start..HEAD_ROOM].copy_from_slice(&header);
            file.sent += 1;
            self.offered.bytes_moved(u64::from(len));
            self.write(buffer.freeze(start..filled))?;
        }
        file.upto = lack.upto;
        file.progress.add_bytes(self.offered.progress(), decided.end - decided.start);
        Ok(())
    }

    /// Fails if the file no longer has the content that was sketched.
    fn check_unchanged(&mut self, file: &Sketched<'_>) -> Result<(), DeltaStop> {
        let root = (Tree::Blake3, &file.root);
        self.check_still_has(file.source, file.job, root)?.map_err(DeltaStop::File)
    }

    /// Reports progress now and then, and fails when the transfer is over.
    fn check_running(&mut self, file: &Sketched<'_>, read: u64) -> Result<(), TransferError> {
        if self.peer.session.is_over() {
            return Err(self.peer.session.stopped());
        }
        if read == 0 || !read.is_multiple_of(PULSE_CHUNKS) {
            return Ok(());
        }
        let (entry, chunks) = (file.entry, read.min(file.source.chunks()));
        self.write_header(Header::Pulse { entry, chunks })
    }

    fn write_sketch(
        &mut self,
        entry: u32,
        sketch_buffer: &mut SketchBuffer,
    ) -> Result<(), TransferError> {
        for body in sketch_buffer.body.chunks(PIECES_PER_RECORD * PIECE_BYTES) {
            let at = sketch_buffer.at;
            let len = body.len() as u32;
            self.write_record(Header::Sketch { entry, at, len }, body)?;
            let lens = crate::delta::pieces_in(body).expect("whole pieces were put there");
            sketch_buffer.at += lens.map(|piece| u64::from(piece.len)).sum::<u64>();
        }
        sketch_buffer.body.clear();
        Ok(())
    }

    fn write_proofs(
        &mut self,
        entry: u32,
        mut first: u64,
        proofs: &mut Vec<u8>,
    ) -> Result<(), TransferError> {
        for body in proofs.chunks(PROOFS_PER_RECORD * PROOF_BYTES) {
            let len = body.len() as u32;
            self.write_record(Header::Proofs { entry, first, len }, body)?;
            first += (body.len() / PROOF_BYTES) as u64;
        }
        proofs.clear();
        Ok(())
    }

    fn write_record(&mut self, header: Header, body: &[u8]) -> Result<(), TransferError> {
        debug_assert!(body.len() <= RECORD_BODY_BYTES_MAX);
        let mut bytes = Vec::with_capacity(HEAD_ROOM + body.len());
        header.encode(&mut bytes);
        bytes.extend_from_slice(body);
        self.write(Bytes::from(bytes))
    }
}

/// Converts spans to ranges. Returns `None` unless they ascend without overlaps within `bounds` and
/// are few enough.
fn ascending(spans: &[Span], bounds: Range<u64>) -> Option<Vec<Range<u64>>> {
    let mut at = bounds.start;
    let range = |span: &Span| {
        let range = span.range()?;
        let fits = range.start >= at && range.end <= bounds.end;
        at = range.end;
        fits.then_some(range)
    };
    let ranges: Option<Vec<_>> = spans.iter().map(range).collect();
    ranges.filter(|ranges| ranges.len() <= DELTA_SPANS_MAX)
}
