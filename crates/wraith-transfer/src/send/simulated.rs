//! [`Serving`] over a simulated lossy link. Both sides are event-driven and have no threads, files
//! or clock, so a seed repeats a whole transfer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use wraith_core::streams::Read;
use wraith_core::{CloseReason, Connection, Event, Role as Side, StreamId, Time, TransportConfig};
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_files::{
    CHUNK_BYTES, Entry, IntervalSet, Kind, Mtime, RelPath, Root, RootBuilder, Tree, small_root,
};
use wraith_sim::link::{Delay, Duplicate, Loss, Rate};
use wraith_sim::{Party, World, hops};

use super::plan::{Job, Planned};
use super::serving::{Answer, Serving, Terms};
use crate::content_digest::ContentDigest;
use crate::error::{TransferError, close};
use crate::exception::Exception;
use crate::message::{Accept, Message};
use crate::receipt::Receipt;
use crate::record::{Ending, Header};
use crate::wanted::{WantWriter, Wanted};

/// Bytes that the sender queues on a stream before it waits for room.
const QUEUE_BYTES: usize = 512 * 1024;
/// Entries that the sender announces at once, and after which the receiver sends a Want.
const BATCH: usize = 4;

/// The offered files, and what the receiver makes of them.
#[derive(Debug)]
struct Script {
    files: Vec<(Vec<u8>, Decision)>,
    /// True if the receiver claims one file more than it got.
    lies: bool,
}

#[derive(Clone, Debug)]
enum Decision {
    Want(Wanted),
    Skip,
}

fn root_of(bytes: &[u8]) -> Root {
    *blake3::hash(bytes).as_bytes()
}

fn receiver() -> SecretIdentity {
    SecretIdentity::from_seed([9; 32])
}

const TRANSFER: [u8; 16] = [7; 16];
const SENDER: NodeId = NodeId([8; 32]);

/// The streams of one side: bytes that wait for room, and bytes that wait for the rest of their
/// message.
#[derive(Debug, Default)]
struct Streams {
    outgoing: BTreeMap<StreamId, VecDeque<Bytes>>,
    incoming: BTreeMap<StreamId, Vec<u8>>,
    readable: Vec<StreamId>,
    closed: Option<CloseReason>,
}

impl Streams {
    fn on_event(&mut self, event: Event) {
        match event {
            Event::StreamOpened(id) | Event::Readable(id) => self.readable.push(id),
            Event::Closed(reason) => self.closed = Some(reason),
            _ => {}
        }
    }

    /// Appends all new bytes to the streams' buffers.
    fn read(&mut self, now: Time, connection: &mut Connection) {
        for id in std::mem::take(&mut self.readable) {
            while let Ok(Read::Slice(slice)) = connection.read(now, id) {
                self.incoming.entry(id).or_default().extend_from_slice(&slice);
            }
        }
    }

    fn write(&mut self, id: StreamId, bytes: impl Into<Bytes>) {
        self.outgoing.entry(id).or_default().push_back(bytes.into());
    }

    fn queued(&self, id: StreamId) -> usize {
        self.outgoing.get(&id).map_or(0, |queue| queue.iter().map(Bytes::len).sum())
    }

    /// Hands the waiting bytes to the core, as far as it has room.
    fn flush(&mut self, connection: &mut Connection) {
        for (&id, queue) in &mut self.outgoing {
            while let Some(mut bytes) = queue.pop_front() {
                let room = connection.send_capacity(id).min(bytes.len());
                let later = bytes.split_off(room);
                if !bytes.is_empty() {
                    connection.write(id, bytes).expect("the peer reads every stream");
                }
                if !later.is_empty() {
                    queue.push_front(later);
                    break;
                }
            }
        }
    }
}

/// Takes a length and that many bytes from the front.
fn take_prefixed(bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    let len = u32::from_be_bytes(*bytes.first_chunk()?) as usize;
    if bytes.len() < 4 + len {
        return None;
    }
    let rest = bytes.split_off(4 + len);
    Some(std::mem::replace(bytes, rest).split_off(4))
}

/// One side of the transfer. The receiver opens the connection and the control stream.
#[derive(Debug)]
enum Peer {
    Sender(Box<Sender>),
    Receiver(Box<Receiver>),
}

impl Party for Peer {
    type Plan = Arc<Script>;

    fn new(side: Side, _: u64, script: Arc<Script>) -> Self {
        match side {
            Side::Initiator => Self::Receiver(Box::new(Receiver::new(script))),
            Side::Responder => Self::Sender(Box::new(Sender::new(script))),
        }
    }

    fn on_event(&mut self, _: Time, connection: &mut Connection, event: Event) {
        let is_connected = event == Event::Connected;
        match self {
            Self::Sender(sender) => sender.streams.on_event(event),
            Self::Receiver(receiver) => receiver.streams.on_event(event),
        }
        match self {
            Self::Sender(sender) if is_connected => sender.start(connection),
            Self::Receiver(receiver) if is_connected => receiver.start(connection),
            _ => {}
        }
    }

    fn drive(&mut self, now: Time, connection: &mut Connection) {
        match self {
            Self::Sender(sender) => sender.drive(now, connection),
            Self::Receiver(receiver) => receiver.drive(now, connection),
        }
    }

    fn wants_driving(&self, _: Time) -> bool {
        match self {
            Self::Sender(sender) => sender.streams.closed.is_none(),
            Self::Receiver(receiver) => receiver.streams.closed.is_none(),
        }
    }

    fn wake(&self) -> Option<Time> {
        None
    }
}

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
struct Sender {
    script: Arc<Script>,
    streams: Streams,
    serving: Serving<File>,
    announced: usize,
    hasher: blake3::Hasher,
    manifest: Option<StreamId>,
    data: Vec<StreamId>,
    outcome: Option<Result<Receipt, TransferError>>,
}

impl Sender {
    fn new(script: Arc<Script>) -> Self {
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

    fn start(&mut self, connection: &mut Connection) {
        let mut open = || connection.open_stream().expect("three streams may be open");
        self.manifest = Some(open());
        self.data = vec![open(), open()];
    }

    fn drive(&mut self, now: Time, connection: &mut Connection) {
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

#[derive(Debug)]
struct Receiver {
    script: Arc<Script>,
    streams: Streams,
    control: Option<StreamId>,
    wants: WantWriter,
    listed: u32,
    hasher: blake3::Hasher,
    manifest: Option<Root>,
    arriving: BTreeMap<u32, Arriving>,
    /// Files that are complete: received, or identical.
    verified: BTreeMap<u32, Root>,
    is_signed: bool,
}

/// A file of which something was wanted.
#[derive(Debug, Default)]
struct Arriving {
    root: RootBuilder,
    chunks: u64,
    end: Option<(u64, Root)>,
}

impl Receiver {
    fn new(script: Arc<Script>) -> Self {
        Self {
            script,
            streams: Streams::default(),
            control: None,
            wants: WantWriter::default(),
            listed: 0,
            hasher: blake3::Hasher::new(),
            manifest: None,
            arriving: BTreeMap::new(),
            verified: BTreeMap::new(),
            is_signed: false,
        }
    }

    fn start(&mut self, connection: &mut Connection) {
        let control = connection.open_stream().expect("the first stream");
        self.control = Some(control);
        let accept = Accept { have: None, rate: None, parallel: None };
        self.streams.write(control, Message::Accept(accept).to_bytes());
    }

    fn drive(&mut self, now: Time, connection: &mut Connection) {
        let Some(control) = self.control else { return };
        self.streams.read(now, connection);
        for (id, mut bytes) in std::mem::take(&mut self.streams.incoming) {
            // The sender opens the manifest first.
            if id.sequence() == 0 {
                self.read_manifest(&mut bytes);
            } else {
                while self.read_record(&mut bytes) {}
            }
            self.streams.incoming.insert(id, bytes);
        }
        if let Some(want) = self.wants.take() {
            self.streams.write(control, Message::Want(want).to_bytes());
        }
        let wanted = self.script.files.iter();
        let wanted = wanted.filter(|(_, decision)| matches!(decision, Decision::Want(_))).count();
        if self.manifest.is_some() && self.verified.len() == wanted && !self.is_signed {
            self.is_signed = true;
            let receipt = Message::Receipt(self.receipt().to_body());
            self.streams.write(control, receipt.to_bytes());
        }
        self.streams.flush(connection);
    }

    fn read_manifest(&mut self, bytes: &mut Vec<u8>) {
        while self.manifest.is_none() {
            if bytes.first_chunk() == Some(&[0; 4]) {
                let Some(hash) = bytes.get(4..36) else { return };
                assert_eq!(hash, self.hasher.finalize().as_bytes());
                self.manifest = hash.try_into().ok();
                return;
            }
            let Some(entry) = take_prefixed(bytes) else { return };
            self.hasher.update(&(entry.len() as u32).to_be_bytes()).update(&entry);
            let (entry, _) = Entry::decode(&entry).unwrap();
            let (content, decision) = &self.script.files[self.listed as usize];
            assert_eq!(entry.size(), content.len() as u64);
            match decision {
                Decision::Want(wanted) => {
                    self.arriving.insert(self.listed, Arriving::of(content, wanted));
                    self.wants.add(self.listed, wanted, false);
                }
                Decision::Skip => self.wants.except(self.listed, Exception::Skipped),
            }
            self.listed += 1;
        }
    }

    /// Reads and verifies a record. Returns false if more bytes must arrive first.
    fn read_record(&mut self, bytes: &mut Vec<u8>) -> bool {
        let Some(len) = bytes.first().map(|kind| Header::len_of(*kind).unwrap()) else {
            return false;
        };
        let Some(header) = bytes.get(..len).map(|header| Header::parse(header).unwrap()) else {
            return false;
        };
        let Some(body) = bytes.get(len..len + header.body_len()).map(<[u8]>::to_vec) else {
            return false;
        };
        bytes.drain(..len + body.len());
        let entry = header.entry();
        let file = self.arriving.get_mut(&entry).expect("only wanted files are sent, once");
        match header {
            Header::Whole { root, .. } => {
                assert_eq!(small_root(&body), root);
                file.end = Some((0, root));
            }
            Header::Chunk { index, cv, .. } => {
                assert_eq!(Tree::Blake3.chunk_cv(index, &[&body]), cv);
                file.root.set(index, cv);
                file.chunks += 1;
            }
            Header::End { chunks, root, .. } => file.end = Some((chunks, root)),
            other => panic!("{other:?}"),
        }
        if let Some((chunks, root)) = file.end.filter(|(chunks, _)| *chunks == file.chunks) {
            let (content, _) = &self.script.files[entry as usize];
            assert_eq!(root, root_of(content), "entry {entry}");
            if chunks > 0 {
                assert_eq!(file.root.finish(content.len() as u64), Some(root));
            }
            self.arriving.remove(&entry);
            self.verified.insert(entry, root);
        }
        true
    }

    fn receipt(&self) -> Receipt {
        let mut contents = ContentDigest::new();
        let (mut bytes, mut kept) = (0, 0);
        for (number, (content, decision)) in (0..).zip(&self.script.files) {
            match (self.verified.get(&number), decision) {
                (Some(root), _) => {
                    contents.add(number, root);
                    bytes += content.len() as u64;
                }
                (None, _) => {
                    contents.except(number, Exception::Skipped);
                    kept += 1;
                }
            }
        }
        let receipt = Receipt {
            transfer_id: TRANSFER,
            sender: SENDER,
            manifest: self.manifest.expect("the manifest ended"),
            contents: contents.digest(),
            verified: self.verified.len() as u64 + u64::from(self.script.lies),
            kept,
            failed: 0,
            bytes,
            unix_seconds: 0,
            durability_number: None,
            signature: [0; 64],
        };
        receipt.signed(&receiver())
    }
}

impl Arriving {
    /// A file with the chunks that the receiver has already.
    fn of(content: &[u8], wanted: &Wanted) -> Self {
        let mut root = RootBuilder::new();
        if let Wanted::Chunks(missing) = wanted {
            for (index, chunk) in (0..).zip(content.chunks(CHUNK_BYTES)) {
                if !missing.contains(index) {
                    root.set(index, Tree::Blake3.chunk_cv(index, &[chunk]));
                }
            }
        }
        Self { root, ..Self::default() }
    }
}

/// Files of all kinds of decisions, more than one Want covers.
fn script(lies: bool) -> Arc<Script> {
    let content = |number: u64, len: usize| {
        let mut bytes = vec![0; len];
        blake3::Hasher::new().update(&number.to_be_bytes()).finalize_xof().fill(&mut bytes);
        bytes
    };
    let mut files = Vec::new();
    for number in 0..30 {
        let bytes = content(number, number as usize * 997);
        let decision = match number % 4 {
            0 => Decision::Want(Wanted::Unless(root_of(&bytes))),
            1 => Decision::Want(Wanted::Unless([1; 32])),
            2 => Decision::Skip,
            _ => Decision::Want(Wanted::Whole),
        };
        files.push((bytes, decision));
    }
    let missing: IntervalSet = [1..2, 3..5].into_iter().collect();
    files.push((content(30, 5 * CHUNK_BYTES), Decision::Want(Wanted::Chunks(missing))));
    files.push((content(31, 3 * CHUNK_BYTES + 1), Decision::Want(Wanted::Whole)));
    Arc::new(Script { files, lies })
}

/// What a run leaves: the outcome at the sender, the files at the receiver, and the fingerprint of
/// all datagrams.
#[derive(Debug)]
struct Run {
    outcome: Result<Receipt, TransferError>,
    verified: BTreeMap<u32, Root>,
    fingerprint: u64,
}

fn run(seed: u64, script: &Arc<Script>) -> Run {
    let mut world = World::<Peer>::with_parties(seed);
    let [receiver, sender] =
        ["receiver", "sender"].map(|name| world.add_endpoint(name, TransportConfig::default()));
    let way = || {
        let duplicate = Duplicate::percent(1.0, Duration::from_millis(3));
        hops![Rate::mbit(20), Delay::ms(20), Loss::percent(3.0), duplicate]
    };
    world.link((receiver, way()), (sender, way()));
    world.connect(receiver, sender, Arc::clone(script));
    let deadline = Time::ZERO + Duration::from_secs(60);
    let is_over = |world: &World<Peer>| {
        world.parties(sender).any(|party| match party {
            Peer::Sender(sender) => sender.outcome.is_some(),
            Peer::Receiver(_) => false,
        })
    };
    assert!(world.run_until(deadline, is_over), "seed {seed}: {:?}", world.now());
    let fingerprint = world.fingerprint();
    let outcome = world.parties(sender).find_map(|party| match party {
        Peer::Sender(sender) => sender.outcome.clone(),
        Peer::Receiver(_) => None,
    });
    let verified = world.parties(receiver).find_map(|party| match party {
        Peer::Receiver(receiver) => Some(receiver.verified.clone()),
        Peer::Sender(_) => None,
    });
    Run { outcome: outcome.unwrap(), verified: verified.unwrap(), fingerprint }
}

#[test]
fn a_sender_serves_a_whole_offer_over_a_lossy_link() {
    let script = script(false);
    for seed in 0..8 {
        let Run { outcome, verified, .. } = run(seed, &script);
        let receipt = outcome.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        for (number, (content, decision)) in (0..).zip(&script.files) {
            let expected = matches!(decision, Decision::Want(_)).then(|| root_of(content));
            assert_eq!(verified.get(&number).copied(), expected, "seed {seed}, entry {number}");
        }
        assert_eq!((receipt.verified, receipt.kept), (25, 7));
    }
}

#[test]
fn a_receipt_that_claims_more_than_was_sent_is_refused_over_a_lossy_link() {
    let Run { outcome, .. } = run(1, &script(true));
    assert!(matches!(outcome, Err(TransferError::Verification { .. })), "{outcome:?}");
}

#[test]
fn a_seed_repeats_a_served_transfer() {
    let script = script(false);
    let fingerprint = |seed| run(seed, &script).fingerprint;
    assert_eq!(fingerprint(5), fingerprint(5));
    assert_ne!(fingerprint(5), fingerprint(6));
}
