//! A worker of the sender: takes work from the plan, reads and hashes it, and writes it to its own data stream.
//!
//! Small files travel in batches, one buffer and one write for as many as fit into 256 KiB. Larger files are shared where
//! there are cores for it ([`Turn`](super::turn::Turn)): each worker claims the next chunk. What a record says is entered in the books
//! ([`Sending::contents`]) before the record is written, because the receipt may come right after it.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use wraith_files::{
    IntervalSet, Root, RootBuilder, Run, SourceFile, chunk_count, chunk_cv, chunk_len, small_root,
    zero_chunk_cv,
};
use wraith_transport::SendStream;

use super::Sending;
use super::big::{Claim, Claims};
use super::manifest::Announced;
use super::plan::{Job, Planned};
use crate::error::TransferError;
use crate::events::{Event, FileStatus};
use crate::limits::PULSE_CHUNKS;
use crate::pool::{BUFFER_BYTES, Buffer, HEAD_ROOM};
use crate::record::{Ending, HEADER_BYTES_MAX, Header, RECORD_BODY_BYTES_MAX, WHOLE_HEADER_BYTES};
use crate::session::lock;
use crate::wanted::Wanted;

/// Files in one batch: enough to make the hand-over cheap, few enough that both workers get some.
const BATCH_FILES_MAX: usize = 64;

/// A file of several chunks that is being sent.
pub(crate) struct Big {
    job: Mutex<Option<Job<Announced>>>,
    entry: u32,
    size: u64,
    unless: Option<[u8; 32]>,
    source: SourceFile,
    claims: Claims,
    /// Chunks sent, as data or as holes.
    sent: AtomicU64,
    root: Mutex<RootBuilder>,
    /// Why it cannot be completed, once known.
    broken: Mutex<Option<Ending>>,
}

/// A file whose chunks are being claimed.
pub(crate) type Active = Arc<Big>;

enum Task {
    Batch(Vec<Job<Announced>>),
    Chunks(Arc<Big>, Claim),
    /// A large file of which the receiver has an old copy, and the root of that where it may be the same.
    Delta(Job<Announced>, Option<Root>),
    /// A large file that cannot be opened, or is another one now.
    Lost(Job<Announced>, Ending),
}

/// Works until the plan stops.
pub(crate) fn work(sending: &Sending<'_>, stream: SendStream) -> Result<(), TransferError> {
    let mut worker = Worker { sending, stream };
    let mut own = None;
    while let Some(task) = next_task(sending, &mut own) {
        match task {
            Task::Batch(jobs) => worker.send_batch(jobs)?,
            Task::Chunks(big, claim) => worker.send_chunks(&big, claim)?,
            Task::Delta(job, unless) => worker.send_delta(job, unless)?,
            Task::Lost(job, ending) => worker.end(&job, ending, 0)?,
        }
    }
    Ok(())
}

/// Works on the chunks of large files only, until the transfer is over: for a stream on a lane.
pub(crate) fn help(sending: &Sending<'_>, stream: SendStream) -> Result<(), TransferError> {
    let mut worker = Worker { sending, stream };
    while let Some((big, claim)) = sending.turn.help(|| sending.session.is_over(), next_chunk) {
        worker.send_chunks(&big, claim)?;
    }
    Ok(())
}

/// The next thing to do. Workers take turns: whoever waits for the plan holds the turn. `own` is the large file that the
/// caller works on alone.
fn next_task(sending: &Sending<'_>, own: &mut Option<Active>) -> Option<Task> {
    if let Some((big, claim)) = next_chunk(own) {
        return Some(Task::Chunks(big, claim));
    }
    let mut turn = sending.turn.take();
    if let Some((big, claim)) = next_chunk(&mut turn) {
        return Some(Task::Chunks(big, claim));
    }
    let (mut files, mut room) = (0, BUFFER_BYTES - HEAD_ROOM + WHOLE_HEADER_BYTES);
    let mut jobs = sending.plan.take(|job| {
        let bytes = job.item.file_bytes().unwrap_or(0);
        let needed = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(HEADER_BYTES_MAX);
        let fits = needed <= room && files < BATCH_FILES_MAX;
        room = room.saturating_sub(needed);
        files += 1;
        fits
    });
    let first = jobs.first()?;
    if first.item.file_bytes().unwrap_or(0) <= RECORD_BODY_BYTES_MAX as u64 {
        return Some(Task::Batch(jobs));
    }
    let job = jobs.pop().expect("a large file is alone: nothing fits beside it");
    if job.delta {
        let unless = unless_of(&job.wanted);
        return Some(Task::Delta(job, unless));
    }
    match Big::open(job) {
        Ok(big) => {
            let big = Arc::new(big);
            let claim = big.claims.next().expect("a large file has chunks");
            sending.turn.place(turn, own, Arc::clone(&big));
            sending.options.progress.begin_file(big.entry, &big.name(), 0, big.size);
            Some(Task::Chunks(big, claim))
        }
        Err(lost) => Some(Task::Lost(lost.0, lost.1)),
    }
}

/// The next chunks of the file in `slot`; forgets it when there are none.
fn next_chunk(slot: &mut Option<Active>) -> Option<(Arc<Big>, Claim)> {
    let big = slot.as_ref()?;
    let claim = big.claims.next();
    match claim {
        Some(claim) => Some((Arc::clone(big), claim)),
        None => {
            *slot = None;
            None
        }
    }
}

impl Big {
    fn open(job: Job<Announced>) -> Result<Self, Box<(Job<Announced>, Ending)>> {
        let size = job.item.file_bytes().unwrap_or(0);
        let source = match job.item.found.open() {
            Ok(source) => source,
            Err(error) => return Err(Box::new((job, ending_of(&error)))),
        };
        let holes = if job.item.is_sparse() { holes(&source) } else { IntervalSet::new() };
        let unless = unless_of(&job.wanted);
        let claims = Claims::new(chunk_count(size), job.wanted.clone(), holes);
        Ok(Self {
            entry: job.entry,
            size,
            unless,
            source,
            claims,
            sent: AtomicU64::new(0),
            root: Mutex::new(RootBuilder::new()),
            broken: Mutex::new(None),
            job: Mutex::new(Some(job)),
        })
    }

    fn name(&self) -> String {
        lock(&self.job).as_ref().map(|job| job.item.name()).unwrap_or_default()
    }

    fn break_off(&self, ending: Ending) {
        lock(&self.broken).get_or_insert(ending);
    }

    fn is_broken(&self) -> bool {
        lock(&self.broken).is_some()
    }
}

/// Chunks of `source` that lie in holes from end to end.
fn holes(source: &SourceFile) -> IntervalSet {
    let mut chunks = IntervalSet::new();
    for run in source.runs() {
        if let Run::Hole(hole) = run {
            chunks.insert(hole);
        }
    }
    chunks
}

pub(super) struct Worker<'a> {
    pub(super) sending: &'a Sending<'a>,
    stream: SendStream,
}

impl Worker<'_> {
    /// Reads small files behind each other into one buffer and sends it.
    fn send_batch(&mut self, jobs: Vec<Job<Announced>>) -> Result<(), TransferError> {
        if let Some(job) = jobs.first() {
            self.sending.options.progress.set_current(&job.item.name());
        }
        let mut buffer = self.take_buffer()?;
        let start = HEAD_ROOM - WHOLE_HEADER_BYTES;
        let mut end = start;
        let mut header = Vec::with_capacity(HEAD_ROOM);
        for job in &jobs {
            header.clear();
            let len = job.item.file_bytes().unwrap_or(0) as usize;
            let body = end + WHOLE_HEADER_BYTES..end + WHOLE_HEADER_BYTES + len;
            let into = &mut buffer.bytes()[body.clone()];
            match self.sending.options.progress.at_disk(|| read_small(job, into)) {
                Ok(()) => {
                    let root = small_root(&buffer.bytes()[body.clone()]);
                    if job.wanted == Wanted::Unless(root) {
                        self.settle(job.entry, &job.item, Ending::Identical, Some(root));
                        Header::End {
                            entry: job.entry,
                            ending: Ending::Identical,
                            chunks: 0,
                            root,
                        }
                        .encode(&mut header);
                        buffer.bytes()[end..end + header.len()].copy_from_slice(&header);
                        end += header.len();
                        continue;
                    }
                    self.settle(job.entry, &job.item, Ending::Complete, Some(root));
                    self.sending.bytes_moved.fetch_add(len as u64, Relaxed);
                    Header::Whole { entry: job.entry, len: len as u32, root }.encode(&mut header);
                    buffer.bytes()[end..end + header.len()].copy_from_slice(&header);
                    end = body.end;
                }
                Err(ending) => {
                    self.settle(job.entry, &job.item, ending, None);
                    Header::End { entry: job.entry, ending, chunks: 0, root: [0; 32] }
                        .encode(&mut header);
                    buffer.bytes()[end..end + header.len()].copy_from_slice(&header);
                    end += header.len();
                }
            }
        }
        self.write(buffer.freeze(start..end))
    }

    /// Does what was claimed of a large file; ends the file if it was the last of it.
    fn send_chunks(&mut self, big: &Big, claim: Claim) -> Result<(), TransferError> {
        let worked = match claim {
            // The rest of a broken file is claimed and settled in silence.
            _ if big.is_broken() => Ok(()),
            Claim::Send(chunk) => self.send_chunk(big, chunk, true),
            Claim::Hash(chunk) => self.send_chunk(big, chunk, false),
            Claim::Hole { first, count, send } => self.send_hole(big, first..first + count, send),
        };
        worked?;
        if big.claims.settle(claim) { self.end_big(big) } else { Ok(()) }
    }

    fn send_chunk(&mut self, big: &Big, chunk: u64, send: bool) -> Result<(), TransferError> {
        let len = chunk_len(big.size, chunk);
        let mut buffer = self.take_buffer()?;
        let bytes = &mut buffer.bytes()[HEAD_ROOM..HEAD_ROOM + len];
        let progress = &self.sending.options.progress;
        if let Err(error) = progress.at_disk(|| big.source.read_chunk(chunk, bytes)) {
            big.break_off(ending_of(&error));
            return Ok(());
        }
        let cv = chunk_cv(chunk, &[bytes]);
        lock(&big.root).set(chunk, cv);
        if !send {
            progress.add_found_of(big.entry, len as u64);
            return if (chunk + 1).is_multiple_of(PULSE_CHUNKS) {
                self.pulse(big, chunk + 1)
            } else {
                Ok(())
            };
        }
        progress.add_bytes_of(big.entry, len as u64);
        big.sent.fetch_add(1, Relaxed);
        self.sending.bytes_moved.fetch_add(len as u64, Relaxed);
        let mut header = Vec::with_capacity(HEAD_ROOM);
        Header::Chunk { entry: big.entry, index: chunk, len: len as u32, cv }.encode(&mut header);
        let start = HEAD_ROOM - header.len();
        buffer.bytes()[start..HEAD_ROOM].copy_from_slice(&header);
        self.write(buffer.freeze(start..HEAD_ROOM + len))
    }

    /// A buffer, once the receiver has acknowledged enough.
    pub(super) fn take_buffer(&self) -> Result<Buffer, TransferError> {
        let session = self.sending.session;
        session
            .wait_in(|| self.sending.pool.take(|| session.paths()))
            .ok_or_else(|| session.stopped())
    }

    fn send_hole(
        &mut self,
        big: &Big,
        chunks: Range<u64>,
        send: bool,
    ) -> Result<(), TransferError> {
        for chunk in chunks.clone() {
            if self.sending.session.is_over() {
                return Err(self.sending.session.stopped());
            }
            let len = chunk_len(big.size, chunk);
            let cv = zero_chunk_cv(chunk, len);
            lock(&big.root).set(chunk, cv);
            let progress = &self.sending.options.progress;
            if send {
                progress.add_bytes_of(big.entry, len as u64);
            } else {
                progress.add_found_of(big.entry, len as u64);
            }
        }
        if !send {
            return self.pulse(big, chunks.end);
        }
        let (first, count) = (chunks.start, chunks.end - chunks.start);
        big.sent.fetch_add(count, Relaxed);
        self.write_header(Header::Hole { entry: big.entry, first, count })
    }

    fn pulse(&mut self, big: &Big, chunks: u64) -> Result<(), TransferError> {
        self.write_header(Header::Pulse { entry: big.entry, chunks })
    }

    /// All chunks are settled: says how the file ended.
    fn end_big(&mut self, big: &Big) -> Result<(), TransferError> {
        let Some(job) = lock(&big.job).take() else { return Ok(()) };
        self.sending.options.progress.end_file(big.entry);
        let broken = *lock(&big.broken);
        if let Some(ending) = broken {
            return self.end(&job, ending, big.sent.load(Relaxed));
        }
        if !big.source.unchanged() {
            return self.end(&job, Ending::Changed, big.sent.load(Relaxed));
        }
        let root = lock(&big.root).finish(big.size).expect("every chunk was settled");
        let ending = match big.unless {
            Some(theirs) if theirs == root => Ending::Identical,
            Some(_) => {
                // Only hashed so far; now it is wanted.
                self.sending.plan.put_back(Job { wanted: Wanted::Whole, ..job });
                return Ok(());
            }
            None => Ending::Complete,
        };
        self.settle(job.entry, &job.item, ending, Some(root));
        let chunks = big.sent.load(Relaxed);
        self.write_header(Header::End { entry: job.entry, ending, chunks, root })
    }

    /// Ends a file that cannot be completed, of which `chunks` chunks were sent.
    pub(super) fn end(
        &mut self,
        job: &Job<Announced>,
        ending: Ending,
        chunks: u64,
    ) -> Result<(), TransferError> {
        self.settle(job.entry, &job.item, ending, None);
        self.write_header(Header::End { entry: job.entry, ending, chunks, root: [0; 32] })
    }

    /// Enters a file in the books. Must come before the record that says so.
    pub(super) fn settle(
        &self,
        entry: u32,
        item: &Announced,
        ending: Ending,
        root: Option<[u8; 32]>,
    ) {
        let sending = self.sending;
        let bytes = item.file_bytes().unwrap_or(0);
        if let Some(root) = &root {
            lock(&sending.contents).add(entry, root);
            sending.files.fetch_add(1, Relaxed);
            sending.bytes.fetch_add(bytes, Relaxed);
        } else {
            sending.failed.fetch_add(1, Relaxed);
        }
        let progress = &sending.options.progress;
        if bytes <= RECORD_BODY_BYTES_MAX as u64 {
            progress.add_bytes(bytes);
        }
        progress.add_files(1);
        let status = match ending {
            Ending::Complete => FileStatus::Done,
            Ending::Identical => FileStatus::AlreadyHere,
            Ending::Changed => FileStatus::Changed,
            Ending::Unreadable => FileStatus::Unreadable,
        };
        let path = item.shown();
        sending.options.events.event(Event::File { path: &path, status, bytes, root });
    }

    pub(super) fn write_header(&mut self, header: Header) -> Result<(), TransferError> {
        let mut bytes = Vec::with_capacity(HEAD_ROOM);
        header.encode(&mut bytes);
        self.write(Bytes::from(bytes))
    }

    pub(super) fn write(&mut self, bytes: Bytes) -> Result<(), TransferError> {
        let session = self.sending.session;
        let len = bytes.len() as u64;
        let written = session.wait(self.stream.write_chunks([bytes]));
        written.map_err(|error| session.write_failed(error))?;
        session.moved(len);
        self.sending.demand.measure(self.sending);
        Ok(())
    }
}

/// The root that the receiver's file has, where it may be the same.
fn unless_of(wanted: &Wanted) -> Option<Root> {
    match wanted {
        Wanted::Unless(root) => Some(*root),
        Wanted::Whole | Wanted::Chunks(_) => None,
    }
}

/// Fills `out` with the file, which must still be as it was when it was announced.
fn read_small(job: &Job<Announced>, out: &mut [u8]) -> Result<(), Ending> {
    let source = job.item.found.open().map_err(|error| ending_of(&error))?;
    source.read_chunk(0, out).map_err(|error| ending_of(&error))?;
    if source.unchanged() { Ok(()) } else { Err(Ending::Changed) }
}

pub(super) fn ending_of(error: &wraith_files::Error) -> Ending {
    match error {
        wraith_files::Error::Changed { .. } => Ending::Changed,
        _ => Ending::Unreadable,
    }
}
