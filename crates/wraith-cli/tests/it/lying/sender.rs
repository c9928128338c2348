//! A sender that lies to the real `wraith receive`.

use std::time::Duration;

use wraith_crypto::SecretIdentity;
use wraith_discovery::{Capability, Ticket};
use wraith_files::{Entry, Kind, Mtime, RelPath, Tree, small_root};
use wraith_transfer::message::{FEATURE_DELTA, Hello, Message, Want};
use wraith_transfer::record::{Ending, Header};
use wraith_transfer::{Offer, Role};
use wraith_transport::{
    AccessKey, Bytes, CloseReason, Config, Connection, Endpoint, EndpointConfig, RecvStream,
    SendStream, block_on, block_on_timeout,
};

use super::{CHUNK, SECRET, read_message};
use crate::support::{Process, World};

/// A server that waits for receivers.
pub struct LyingSender {
    endpoint: Endpoint,
}

impl LyingSender {
    pub fn listen() -> Self {
        let mut core = EndpointConfig::new(identity());
        core.door.access_keys = vec![AccessKey::of_ticket(&SECRET, core.identity.node_id())];
        core.transport.keep_alive = true;
        Self { endpoint: Endpoint::bind(Config::new(core).bind(([127, 0, 0, 1], 0))).unwrap() }
    }

    /// Starts an honest receiver of a lying sender. It gives up once the connection is lost.
    pub fn and_receiver() -> (World, Self, Process) {
        let (world, sender) = (World::new(), Self::listen());
        let receiver = world.receive_with(&sender.ticket(), &["--reconnect", "0"]);
        (world, sender, receiver)
    }

    pub fn ticket(&self) -> String {
        let addresses = vec![self.endpoint.local_addr()];
        Ticket::new(identity().node_id(), Capability::from_bytes(SECRET), addresses).to_string()
    }

    /// Accepts the next receiver without reading from it.
    pub fn accept(&self) -> Connection {
        block_on(self.endpoint.accept()).unwrap()
    }

    /// Accepts the next receiver and reads its Hello and Fetch, without an answer.
    pub fn greet(&self) -> Greeted {
        let connection = self.accept();
        let (send, mut recv) = block_on(connection.accept_stream()).unwrap();
        assert!(matches!(read_message(&mut recv), Some(Message::Hello(_))));
        let Some(Message::Fetch(fetch)) = read_message(&mut recv) else { panic!("no Fetch") };
        assert_eq!(fetch.secret, SECRET);
        Greeted { connection, control: (send, recv) }
    }

    /// Accepts the next receiver and makes an offer, with a manifest and a data stream.
    pub fn offer(&self, offer: Offer) -> Liar {
        self.greet().offer(offer)
    }
}

fn identity() -> SecretIdentity {
    SecretIdentity::from_seed([0xba; 32])
}

/// Returns an offer of this size.
pub fn offer_of(entries: u64, bytes: u64) -> Offer {
    let id = wraith_crypto::kdf::derive("wraith/1 transfer id", &SECRET);
    Offer {
        transfer_id: id[..16].try_into().unwrap(),
        name: "gift".into(),
        files: entries,
        dirs: 0,
        links: 0,
        bytes,
        largest: bytes,
        data_streams: 1,
        stream: None,
        left_out: None,
        no_sync: None,
        names: None,
    }
}

pub fn entry(path: &[u8], kind: Kind) -> Entry {
    Entry { path: RelPath::parse(path).unwrap(), kind, mode: 0o644, mtime: Mtime::default() }
}

pub fn file(path: &str, size: usize) -> Entry {
    entry(path.as_bytes(), Kind::File { size: size as u64, sparse: None })
}

pub fn folder(path: &str) -> Entry {
    Entry { mode: 0o755, ..entry(path.as_bytes(), Kind::Dir) }
}

pub fn link(path: &str, target: &[u8]) -> Entry {
    entry(path.as_bytes(), Kind::Symlink { target: target.to_vec() })
}

/// Encodes a file entry with a path that no honest encoder accepts.
pub fn raw_file(path: &[u8], size: u64) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend_from_slice(&0o644u32.to_be_bytes());
    bytes.extend_from_slice(&[0; 12]);
    bytes.extend_from_slice(&(path.len() as u16).to_be_bytes());
    bytes.extend_from_slice(path);
    bytes.extend_from_slice(&size.to_be_bytes());
    bytes
}

/// Returns a truthful chunk record.
pub fn chunk(entry: u32, index: u64, bytes: &[u8]) -> Header {
    let cv = Tree::Blake3.chunk_cv(index, &[bytes]);
    Header::Chunk { entry, index, len: bytes.len() as u32, cv }
}

/// Returns a truthful record of a small file.
pub fn whole(entry: u32, bytes: &[u8]) -> Header {
    Header::Whole { entry, len: bytes.len() as u32, root: small_root(bytes) }
}

/// The connection of a receiver that waits for an offer.
pub struct Greeted {
    pub connection: Connection,
    pub control: (SendStream, RecvStream),
}

impl Greeted {
    pub fn say(&mut self, message: &Message) {
        let _ = block_on(self.control.0.write_all(&message.to_bytes()));
    }

    pub fn hello(&mut self) {
        self.say(&Message::Hello(Hello {
            version: 1,
            role: Role::Sender,
            features: Some(FEATURE_DELTA),
        }));
    }

    pub fn offer(mut self, offer: Offer) -> Liar {
        let open = |kind| {
            let (mut stream, _) = block_on(self.connection.open_stream()).unwrap();
            let _ = block_on(stream.write_all(&[kind]));
            stream
        };
        // Opened before the offer, because a receiver may decline it at once. The receiver ignores
        // them until the offer has come.
        let (manifest, data) = (open(1), open(2));
        self.hello();
        self.say(&Message::Offer(offer));
        let Self { connection, control } = self;
        Liar { connection, control, manifest, data, hasher: blake3::Hasher::new(), entries: 0 }
    }
}

/// The connection of a receiver that has got an offer.
pub struct Liar {
    pub connection: Connection,
    pub control: (SendStream, RecvStream),
    pub manifest: SendStream,
    pub data: SendStream,
    hasher: blake3::Hasher,
    pub entries: u64,
}

impl Liar {
    pub fn list(&mut self, entry: &Entry) {
        let mut bytes = Vec::new();
        entry.encode(&mut bytes);
        self.list_raw(&bytes);
    }

    pub fn list_raw(&mut self, entry: &[u8]) {
        self.list_all([entry.to_vec()]);
    }

    /// Lists many entries with few writes.
    pub fn list_all(&mut self, entries: impl IntoIterator<Item = Vec<u8>>) {
        let mut batch = Vec::new();
        for entry in entries {
            batch.extend_from_slice(&(entry.len() as u32).to_be_bytes());
            batch.extend_from_slice(&entry);
            self.entries += 1;
            if batch.len() >= CHUNK {
                self.write_manifest(std::mem::take(&mut batch));
            }
        }
        self.write_manifest(batch);
    }

    /// Lists entries until the receiver has read nothing for `limit`.
    pub fn list_until_blocked(
        &mut self,
        entries: impl IntoIterator<Item = Vec<u8>>,
        limit: Duration,
    ) {
        let (mut batch, mut count) = (Vec::new(), 0);
        for entry in entries {
            batch.extend_from_slice(&(entry.len() as u32).to_be_bytes());
            batch.extend_from_slice(&entry);
            count += 1;
            if batch.len() < 16 << 10 {
                continue;
            }
            let bytes = Bytes::from(std::mem::take(&mut batch));
            if block_on_timeout(self.manifest.write_chunks([bytes]), limit).is_none() {
                return;
            }
            self.entries += std::mem::take(&mut count);
        }
    }

    fn write_manifest(&mut self, bytes: Vec<u8>) {
        self.hasher.update(&bytes);
        let _ = block_on(self.manifest.write_chunks([Bytes::from(bytes)]));
    }

    pub fn end_manifest(&mut self) {
        let hash = *self.hasher.finalize().as_bytes();
        let trailer = [&[0; 4][..], &self.entries.to_be_bytes(), &hash, &[0; 8]].concat();
        let _ = block_on(self.manifest.write_all(&trailer));
        let _ = self.manifest.finish();
    }

    pub fn record(&mut self, header: Header, body: &[u8]) {
        let mut bytes = Vec::new();
        header.encode(&mut bytes);
        let body = Bytes::copy_from_slice(body);
        let _ = block_on(self.data.write_chunks([Bytes::from(bytes), body]));
    }

    /// Sends a small file, complete.
    pub fn whole(&mut self, entry: u32, bytes: &[u8]) {
        self.record(whole(entry, bytes), bytes);
    }

    /// Ends a file of these chunks honestly.
    pub fn complete(&mut self, entry: u32, content: &[u8]) {
        let chunks = content.len().div_ceil(CHUNK) as u64;
        let root = *blake3::hash(content).as_bytes();
        self.record(Header::End { entry, ending: Ending::Complete, chunks, root }, b"");
    }

    /// Returns the next message of the receiver.
    pub fn next(&mut self) -> Option<Message> {
        read_message(&mut self.control.1)
    }

    /// Returns the next Want, if the receiver is still there.
    pub fn want(&mut self) -> Option<Want> {
        loop {
            match self.next()? {
                Message::Want(want) => return Some(want),
                Message::Accept(_) | Message::Exceptions(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Reads Wants until every entry listed so far is decided.
    pub fn decided(&mut self) {
        while let Some(want) = self.want() {
            if want.upto >= self.entries {
                return;
            }
        }
        panic!("the receiver left early");
    }

    /// Reads until the receipt, and confirms it.
    pub fn part_well(mut self) {
        while let Some(message) = self.next() {
            if matches!(message, Message::Receipt(_)) {
                self.connection.close(wraith_transfer::close::DONE, "");
                return;
            }
        }
        panic!("no receipt");
    }

    /// Returns how the receiver closed the connection.
    pub fn told(self) -> CloseReason {
        block_on(self.connection.closed())
    }
}
