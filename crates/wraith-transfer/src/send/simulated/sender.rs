//! A sender: [`Serving`], with files in memory.

use std::sync::Arc;

use wraith_core::{Connection, StreamId, Time};
use wraith_files::{CHUNK_BYTES, Entry, Kind, Mtime, RelPath, Tree};

use super::streams::{Streams, take_prefixed};
use super::{SENDER, Script, TRANSFER, receiver, root_of};
use crate::error::{TransferError, close};
use crate::message::Message;
use crate::receipt::Receipt;
use crate::record::{Ending, Header};
use crate::send::plan::{Job, Planned};
use crate::send::serving::{Answer, Serving, Terms};
use crate::wanted::Wanted;

/// Bytes that the sender queues on a stream before it waits for room.
const QUEUE_BYTES: usize = 512 * 1024;
/// Entries that the sender announces at once, and after which the receiver sends a Want.
const BATCH: usize = 4;

/// An offered file in memory.
#[derive(Debug)]
struct File {
    number: usize,
    len: u64,
}

impl Planned for File {
    fn file_bytes(&self) -> Option<u64> {
        Some(self.len)
    }

    fn tree(&self) -> Tree {
        Tree::Blake3
    }

    fn path_bytes(&self) -> usize {
        8
    }
}

#[derive(Debug)]
pub(super) struct Sender {
    script: Arc<Script>,
    pub(super) streams: Streams,
    serving: Serving<File>,
    announced: usize,
    hasher: blake3::Hasher,
    manifest: Option<StreamId>,
    data: Vec<StreamId>,
    pub(super) outcome: Option<Result<Receipt, TransferError>>,
}

impl Sender {
    pub(super) fn new(script: Arc<Script>) -> Self {
        let receiver = receiver().node_id();
        let (transfer_id, sender) = (TRANSFER, Some(SENDER));
        Self {
            script,
            streams: Streams::default(),
            serving: Serving::new(Terms { transfer_id, receiver, sender, delta: false }),
            announced: 0,
            hasher: blake3::Hasher::new(),
            manifest: None,
            data: Vec::new(),
            outcome: None,
        }
    }

    pub(super) fn start(&mut self, connection: &mut Connection) {
        let mut open = || connection.open_stream().expect("three streams may be open");
        self.manifest = Some(open());
        self.data = vec![open(), open()];
    }

    pub(super) fn drive(&mut self, now: Time, connection: &mut Connection) {
        self.streams.read(now, connection);
        self.announce();
        // Only the control stream has anything to read.
        for (id, mut bytes) in std::mem::take(&mut self.streams.incoming) {
            while let Some(message) = take_prefixed(&mut bytes) {
                self.handle(now, connection, Message::from_bytes(&message).unwrap());
            }
            self.streams.incoming.insert(id, bytes);
        }
        if self.outcome.is_some() {
            return;
        }
        while let Some(stream) = self.idle_stream() {
            let Some(job) = self.serving.take(|_| false).pop() else { break };
            self.answer(stream, job);
        }
        self.streams.flush(connection);
    }

    /// Announces and lists the next entries, then ends the manifest.
    fn announce(&mut self) {
        let Some(manifest) = self.manifest.filter(|_| self.serving.has_room()) else { return };
        let all = self.script.files.len();
        let batch = self.announced..all.min(self.announced + BATCH);
        let file = |number: usize| File { number, len: self.script.files[number].0.len() as u64 };
        self.serving.announce(batch.clone().map(file).collect());
        let mut bytes = Vec::new();
        for number in batch.clone() {
            let (path, size) = (format!("{number:08}"), self.script.files[number].0.len() as u64);
            let path = RelPath::parse(path.as_bytes()).unwrap();
            let kind = Kind::File { size, sparse: None };
            let mut entry = Vec::new();
            Entry { path, kind, mode: 0o644, mtime: Mtime::default() }.encode(&mut entry);
            bytes.extend_from_slice(&(entry.len() as u32).to_be_bytes());
            bytes.extend_from_slice(&entry);
        }
        self.hasher.update(&bytes);
        self.announced = batch.end;
        if self.announced == all {
            let hash = *self.hasher.finalize().as_bytes();
            self.serving.end_manifest(hash);
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend_from_slice(&hash);
            self.manifest = None;
        }
        self.streams.write(manifest, bytes);
    }

    fn handle(&mut self, now: Time, connection: &mut Connection, message: Message) {
        match self.serving.handle(message) {
            Ok(Answer::Receipt(receipt)) => {
                self.outcome = Some(Ok(receipt));
                connection.close(now, close::DONE, "");
            }
            Ok(_) => {}
            Err(error) => {
                self.outcome = Some(Err(error));
                connection.close(now, close::PROTOCOL, "");
            }
        }
    }

    fn idle_stream(&self) -> Option<StreamId> {
        let queued = |stream: &&StreamId| self.streams.queued(**stream);
        self.data.iter().min_by_key(queued).filter(|id| queued(id) < QUEUE_BYTES).copied()
    }

    /// Sends what is wanted of a file. Its result is recorded before its last record is written.
    fn answer(&mut self, stream: StreamId, job: Job<File>) {
        let (entry, script) = (job.entry, Arc::clone(&self.script));
        let bytes = &script.files[job.item.number].0;
        let root = root_of(bytes);
        let chunks = match &job.wanted {
            Wanted::Unless(theirs) | Wanted::Kept(theirs) if *theirs == root => None,
            Wanted::Chunks(chunks) => Some(chunks.clone()),
            _ => Some(std::iter::once(0..u64::MAX).collect()),
        };
        let mut record = Vec::new();
        let Some(chunks) = chunks else {
            self.serving.resolved(entry, &root, job.item.len);
            Header::End { entry, ending: Ending::Identical, chunks: 0, root }.encode(&mut record);
            return self.streams.write(stream, record);
        };
        if bytes.len() <= CHUNK_BYTES {
            self.serving.resolved(entry, &root, job.item.len);
            Header::Whole { entry, len: bytes.len() as u32, root }.encode(&mut record);
            record.extend_from_slice(bytes);
            return self.streams.write(stream, record);
        }
        let mut sent = 0;
        for (index, chunk) in (0..).zip(bytes.chunks(CHUNK_BYTES)) {
            if chunks.contains(index) {
                let cv = Tree::Blake3.chunk_cv(index, &[chunk]);
                let len = chunk.len() as u32;
                Header::Chunk { entry, index, len, cv }.encode(&mut record);
                record.extend_from_slice(chunk);
                // Chunks of one file arrive on both streams, in any order.
                let stream = self.data[sent % self.data.len()];
                self.streams.write(stream, std::mem::take(&mut record));
                sent += 1;
            }
        }
        self.serving.resolved(entry, &root, job.item.len);
        let ending = Ending::Complete;
        Header::End { entry, ending, chunks: sent as u64, root }.encode(&mut record);
        self.streams.write(stream, record);
    }
}
