//! A worker of the sender: takes work from the plan, reads and hashes it, and writes it to its own
//! data stream.
//!
//! Small files are sent in batches: as many as fit into 256 KiB share one buffer and one write.
//! Larger files are shared if there are enough cores
//! ([`SharedFile`](super::shared_file::SharedFile)): each worker claims the next chunk. Results are
//! recorded ([`Offered::resolve`]) before their record is written, because the receipt may arrive
//! right after the record.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;

use bytes::Bytes;
use wraith_files::{CHUNK_BYTES, Change, Root, SourceFile, Tree, chunk_len};
use wraith_transport::SendStream;

use super::announced::Announced;
use super::large_file::{Active, Claim, LargeFile, ending_of, matching_root};
use super::offered::{Offered, has_lost_name};
use super::peer::Peer;
use super::plan::{Job, Planned};
use super::pushes::ToPush;
use crate::buffer_pool::{BUFFER_BYTES, Buffer, HEAD_ROOM};
use crate::error::TransferError;
use crate::limits::PULSE_CHUNKS;
use crate::lock::lock;
use crate::record::{
    Ending, HEADER_BYTES_MAX, Header, RECORD_BODY_BYTES_MAX, WHOLE_HEADER_BYTES, encode_change,
};
use crate::wanted::Wanted;

/// Maximum number of files in one batch: enough to make the hand-over cheap, few enough that both
/// workers get some.
const BATCH_FILES_MAX: usize = 64;
/// Number of chunks after which a file is checked for changes (4 MiB).
const LOOK_CHUNKS: u64 = 16;

enum Task {
    Batch(Vec<Job<Announced>>),
    Chunks(Arc<LargeFile>, Claim),
    /// A large file that the receiver already has, according to an earlier connection.
    Identical(Job<Announced>, Root),
    /// A large file of which the receiver has an old copy, with the copy's root if it may be
    /// identical.
    Delta(Job<Announced>, Option<Root>),
    /// A large file that cannot be opened or was replaced.
    Lost(Job<Announced>, Ending),
}

/// Works until the plan stops. Starts with the files in `to_push`, if any.
pub(super) fn work(
    peer: &Peer<'_>,
    offered: &Offered<'_>,
    stream: SendStream,
    to_push: Option<Receiver<ToPush>>,
) -> Result<(), TransferError> {
    let mut worker = Worker { peer, offered, stream };
    let mut own = None;
    if let Some(Ok(files)) = to_push.map(|to_push| to_push.recv()) {
        worker.push(files)?;
    }
    while let Some(task) = next_task(offered, &mut own) {
        match task {
            Task::Batch(jobs) => worker.send_batch(jobs)?,
            Task::Chunks(large, claim) => worker.send_chunks(&large, claim)?,
            Task::Identical(job, root) => worker.end_identical(&job, root)?,
            Task::Delta(job, unless) => worker.send_delta(job, unless)?,
            Task::Lost(job, ending) => worker.end_unopened(&job, ending)?,
        }
    }
    Ok(())
}

/// Works only on chunks of large files, until the transfer is over: for a stream on a parallel
/// connection.
pub(super) fn help_with_large_file(
    peer: &Peer<'_>,
    offered: &Offered<'_>,
    stream: SendStream,
) -> Result<(), TransferError> {
    let mut worker = Worker { peer, offered, stream };
    while let Some((large, claim)) =
        offered.shared_file.help_with_large_file(|| peer.session.is_over(), next_chunk)
    {
        worker.send_chunks(&large, claim)?;
    }
    Ok(())
}

/// Returns the next task. A worker that waits for the plan holds the lock of the shared file. `own`
/// is the large file that only the caller works on.
fn next_task(offered: &Offered<'_>, own: &mut Option<Active>) -> Option<Task> {
    if let Some((large, claim)) = next_chunk(own) {
        return Some(Task::Chunks(large, claim));
    }
    let mut shared = offered.shared_file.take();
    if let Some((large, claim)) = next_chunk(&mut shared) {
        return Some(Task::Chunks(large, claim));
    }
    let (mut files, mut room) = (0, BUFFER_BYTES - HEAD_ROOM + WHOLE_HEADER_BYTES);
    let mut jobs = offered.serving.take(|job| {
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
    if let Some(root) = offered.known_root(&job) {
        return Some(Task::Identical(job, root));
    }
    if job.delta {
        let unless = matching_root(&job.wanted);
        return Some(Task::Delta(job, unless));
    }
    match LargeFile::open(job) {
        Ok(large) => {
            let large = Arc::new(large);
            let claim = large.next_claim().expect("a large file has chunks");
            offered.shared_file.put(shared, own, Arc::clone(&large));
            offered.progress().begin_file(large.entry, &large.name(), 0, large.size);
            Some(Task::Chunks(large, claim))
        }
        Err(lost) => Some(Task::Lost(lost.0, lost.1)),
    }
}

/// Claims the next chunks of the file in `slot`; clears the slot when no chunks are left.
fn next_chunk(slot: &mut Option<Active>) -> Option<(Arc<LargeFile>, Claim)> {
    let large = slot.as_ref()?;
    let claim = large.next_claim();
    match claim {
        Some(claim) => Some((Arc::clone(large), claim)),
        None => {
            *slot = None;
            None
        }
    }
}

pub(super) struct Worker<'a> {
    pub(super) peer: &'a Peer<'a>,
    pub(super) offered: &'a Offered<'a>,
    stream: SendStream,
}

impl Worker<'_> {
    /// Reads small files one after the other into one buffer and sends it.
    fn send_batch(&mut self, jobs: Vec<Job<Announced>>) -> Result<(), TransferError> {
        if let Some(job) = jobs.first() {
            self.offered.progress().set_current(&job.item.name());
        }
        let mut buffer = self.take_buffer()?;
        let start = HEAD_ROOM - WHOLE_HEADER_BYTES;
        let mut end = start;
        let mut header = Vec::with_capacity(HEAD_ROOM);
        for job in &jobs {
            header.clear();
            if let Some(root) = self.offered.known_root(job) {
                let ending = Ending::Identical;
                end += self.put_compared(job, (ending, root), &mut buffer.bytes()[end..]);
                continue;
            }
            let len = job.item.file_bytes().unwrap_or(0) as usize;
            let body = end + WHOLE_HEADER_BYTES..end + WHOLE_HEADER_BYTES + len;
            let into = &mut buffer.bytes()[body.clone()];
            match self.offered.read_small(&job.item.found, into) {
                Ok(root) => {
                    let compared = match job.wanted {
                        Wanted::Unless(theirs) | Wanted::Kept(theirs) if theirs == root => {
                            Some(Ending::Identical)
                        }
                        Wanted::Kept(_) => Some(Ending::Different),
                        Wanted::Whole | Wanted::Unless(_) | Wanted::Chunks(_) => None,
                    };
                    if let Some(ending) = compared {
                        end += self.put_compared(job, (ending, root), &mut buffer.bytes()[end..]);
                        continue;
                    }
                    self.offered.resolve(
                        job.entry,
                        &job.item,
                        Ending::Complete,
                        (Some(root), None),
                    );
                    self.offered.bytes_moved(len as u64);
                    Header::Whole { entry: job.entry, len: len as u32, root }.encode(&mut header);
                    buffer.bytes()[end..end + header.len()].copy_from_slice(&header);
                    end = body.end;
                }
                Err(ending) => {
                    self.resolve_broken(job, ending, 0).encode(&mut header);
                    buffer.bytes()[end..end + header.len()].copy_from_slice(&header);
                    end += header.len();
                }
            }
        }
        self.write(buffer.freeze(start..end))
    }

    /// Sends small files before they are requested. Unreadable files are reported when they are
    /// requested.
    fn push(&mut self, files: ToPush) -> Result<(), TransferError> {
        if files.is_empty() {
            return Ok(());
        }
        let mut buffer = self.take_buffer()?;
        let start = HEAD_ROOM - WHOLE_HEADER_BYTES;
        let mut end = start;
        let mut header = Vec::with_capacity(HEAD_ROOM);
        for (entry, found) in files {
            let len = found.entry.size() as usize;
            let body = end + WHOLE_HEADER_BYTES..end + WHOLE_HEADER_BYTES + len;
            let into = &mut buffer.bytes()[body.clone()];
            let Ok(root) = self.offered.read_small(&found, into) else { continue };
            if !self.offered.serving.with(|serving| serving.claim_push(entry, root)) {
                continue;
            }
            header.clear();
            Header::Pushed { entry, len: len as u32, root }.encode(&mut header);
            buffer.bytes()[end..body.start].copy_from_slice(&header);
            end = body.end;
        }
        if end == start { Ok(()) } else { self.write(buffer.freeze(start..end)) }
    }

    /// Settles a file that was compared with the receiver's, and writes its record to `out`. Returns
    /// the length of the record.
    fn put_compared(
        &self,
        job: &Job<Announced>,
        (ending, root): (Ending, Root),
        out: &mut [u8],
    ) -> usize {
        self.offered.resolve(job.entry, &job.item, ending, (Some(root), None));
        let mut header = Vec::with_capacity(HEAD_ROOM);
        Header::End { entry: job.entry, ending, chunks: 0, root }.encode(&mut header);
        out[..header.len()].copy_from_slice(&header);
        header.len()
    }

    /// Like [`Self::put_compared`], for a large file that the receiver has, which is not part of a batch.
    fn end_identical(&mut self, job: &Job<Announced>, root: Root) -> Result<(), TransferError> {
        self.offered.progress().add_found(job.item.file_bytes().unwrap_or(0));
        self.offered.resolve(job.entry, &job.item, Ending::Identical, (Some(root), None));
        let (entry, ending) = (job.entry, Ending::Identical);
        self.write_header(Header::End { entry, ending, chunks: 0, root })
    }

    /// Processes claimed chunks of a large file; ends the file after its last chunk.
    fn send_chunks(&mut self, large: &LargeFile, claim: Claim) -> Result<(), TransferError> {
        if let Claim::Send(chunk) | Claim::Hash(chunk) = claim
            && chunk.is_multiple_of(LOOK_CHUNKS)
        {
            large.check_change();
        }
        let worked = match claim {
            // The remaining chunks of a broken file are claimed and resolved without records.
            _ if large.is_broken() => Ok(()),
            Claim::Send(chunk) => self.send_chunk(large, chunk, true),
            Claim::Hash(chunk) => self.send_chunk(large, chunk, false),
            Claim::Hole { first, count, send } => self.send_hole(large, first..first + count, send),
        };
        worked?;
        if large.claims.resolve(claim) { self.end_large(large) } else { Ok(()) }
    }

    fn send_chunk(
        &mut self,
        large: &LargeFile,
        chunk: u64,
        send: bool,
    ) -> Result<(), TransferError> {
        let len = chunk_len(large.size, chunk);
        let mut buffer = self.take_buffer()?;
        let bytes = &mut buffer.bytes()[HEAD_ROOM..HEAD_ROOM + len];
        let progress = self.offered.progress();
        if let Err(error) = progress.at_disk(|| large.source.read_chunk(chunk, bytes)) {
            large.break_off(ending_of(&error));
            return Ok(());
        }
        let cv = large.tree.chunk_cv(chunk, &[bytes]);
        lock(&large.root).set(chunk, cv);
        if !send {
            large.count_unsent(progress, len as u64);
            return if (chunk + 1).is_multiple_of(PULSE_CHUNKS) {
                self.pulse(large, chunk + 1)
            } else {
                Ok(())
            };
        }
        large.progress.add_bytes(progress, len as u64);
        large.sent.fetch_add(1, Relaxed);
        self.offered.bytes_moved(len as u64);
        let mut header = Vec::with_capacity(HEAD_ROOM);
        Header::Chunk { entry: large.entry, index: chunk, len: len as u32, cv }.encode(&mut header);
        let start = HEAD_ROOM - header.len();
        buffer.bytes()[start..HEAD_ROOM].copy_from_slice(&header);
        self.write(buffer.freeze(start..HEAD_ROOM + len))
    }

    /// Returns a buffer, once the receiver has acknowledged enough data.
    pub(super) fn take_buffer(&self) -> Result<Buffer, TransferError> {
        let session = self.peer.session;
        session.wait_in(|| self.peer.pool.take(|| session.paths())).ok_or_else(|| session.stopped())
    }

    fn send_hole(
        &mut self,
        large: &LargeFile,
        chunks: Range<u64>,
        send: bool,
    ) -> Result<(), TransferError> {
        // Zeros that must be hashed are hashed chunk by chunk, outside the lock.
        let step = if large.tree.knows_zeros() { chunks.end - chunks.start } else { 1 };
        let mut first = chunks.start;
        while first < chunks.end {
            if self.peer.session.is_over() {
                return Err(self.peer.session.stopped());
            }
            let run = first..chunks.end.min(first + step);
            large.enter_zeros(run.clone());
            let at = |chunk: u64| large.size.min(chunk * CHUNK_BYTES as u64);
            large.count_unsent(self.offered.progress(), at(run.end) - at(run.start));
            first = run.end;
        }
        if !send {
            return self.pulse(large, chunks.end);
        }
        let (first, count) = (chunks.start, chunks.end - chunks.start);
        large.sent.fetch_add(count, Relaxed);
        self.write_header(Header::Hole { entry: large.entry, first, count })
    }

    fn pulse(&mut self, large: &LargeFile, chunks: u64) -> Result<(), TransferError> {
        self.write_header(Header::Pulse { entry: large.entry, chunks })
    }

    /// Sends the end record once all chunks are resolved.
    fn end_large(&mut self, large: &LargeFile) -> Result<(), TransferError> {
        let Some(job) = lock(&large.job).take() else { return Ok(()) };
        let broken = *lock(&large.broken);
        let checked = match broken {
            Some(ending) => Err(ending),
            None => {
                let root = lock(&large.root).finish(large.size).expect("every chunk was settled");
                self.check_still_has(&large.source, &job, (large.tree, &root))?.map(|()| root)
            }
        };
        let progress = self.offered.progress();
        let is_different =
            matches!((checked, large.unless), (Ok(ours), Some(theirs)) if ours != theirs);
        if is_different && matches!(job.wanted, Wanted::Unless(_)) {
            // So far the file was only hashed; now it is wanted.
            progress.end_file(large.entry);
            self.offered.serving.put_back(Job { wanted: Wanted::Whole, ..job });
            return Ok(());
        }
        large.progress.finish(progress, large.size);
        let chunks = large.sent.load(Relaxed);
        let root = match checked {
            Ok(root) => root,
            Err(ending) => return self.end(&job, ending, chunks),
        };
        let ending = match large.unless {
            Some(_) if is_different => Ending::Different,
            Some(_) => Ending::Identical,
            None => Ending::Complete,
        };
        self.offered.resolve(job.entry, &job.item, ending, (Some(root), None));
        self.write_header(Header::End { entry: job.entry, ending, chunks, root })
    }

    /// Checks that `source` still has its name and the content with this root; see
    /// [`SourceFile::still_has`]. Reports that the sender reads, if it reads the file again.
    pub(super) fn check_still_has(
        &mut self,
        source: &SourceFile,
        job: &Job<Announced>,
        root: (Tree, &Root),
    ) -> Result<Result<(), Ending>, TransferError> {
        if has_lost_name(source, &job.item.found) {
            return Ok(Err(Ending::Changed));
        }
        let entry = job.entry;
        let (mut read, mut written) = (0, Ok(()));
        let checked = source.still_has(root, || {
            read += 1;
            if read % PULSE_CHUNKS == 0 {
                written = self.write_header(Header::Pulse { entry, chunks: source.chunks() });
            }
            written.is_ok() && !self.peer.session.is_over()
        });
        written?;
        match checked {
            Ok(Some(true)) => Ok(Ok(())),
            Ok(Some(false)) => Ok(Err(Ending::Changed)),
            Ok(None) => Err(self.peer.session.stopped()),
            Err(error) => Ok(Err(ending_of(&error))),
        }
    }

    /// Ends a file that cannot be completed, after `chunks` chunks were sent.
    pub(super) fn end(
        &mut self,
        job: &Job<Announced>,
        ending: Ending,
        chunks: u64,
    ) -> Result<(), TransferError> {
        let header = self.resolve_broken(job, ending, chunks);
        self.write_header(header)
    }

    /// Ends a large file that cannot be opened.
    pub(super) fn end_unopened(
        &mut self,
        job: &Job<Announced>,
        ending: Ending,
    ) -> Result<(), TransferError> {
        self.offered.progress().add_found(job.item.file_bytes().unwrap_or(0));
        self.end(job, ending, 0)
    }

    /// Enters a file that cannot be completed in the ledger. Returns its end record with the
    /// change.
    fn resolve_broken(&self, job: &Job<Announced>, ending: Ending, chunks: u64) -> Header {
        let change = job.item.found.change();
        // The whole file may have been read, but a reader would no longer find it there.
        let ending = if change == Some(Change::Missing) { Ending::Unreadable } else { ending };
        self.offered.resolve(job.entry, &job.item, ending, (None, change));
        Header::End { entry: job.entry, ending, chunks, root: encode_change(change) }
    }

    pub(super) fn write_header(&mut self, header: Header) -> Result<(), TransferError> {
        let mut bytes = Vec::with_capacity(HEAD_ROOM);
        header.encode(&mut bytes);
        self.write(Bytes::from(bytes))
    }

    pub(super) fn write(&mut self, bytes: Bytes) -> Result<(), TransferError> {
        let session = self.peer.session;
        let len = bytes.len() as u64;
        let written = session.wait(self.stream.write_chunks([bytes]));
        written.map_err(|error| session.write_failed(error))?;
        session.moved(len);
        self.peer.demand.measure(session, self.offered.progress());
        Ok(())
    }
}
