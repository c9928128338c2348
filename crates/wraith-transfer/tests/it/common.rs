//! Two endpoints on loopback, trees to send, and a comparison of trees.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::time::Duration;

use wraith_crypto::{NodeId, SecretIdentity};
use wraith_transfer::message::Message;
use wraith_transfer::{
    Progress, ReceiveOptions, ReceiveReport, Role, SendOptions, SendReport, TransferError, receive,
    serve,
};
use wraith_transport::{
    AccessKey, Config, Connection, Endpoint, EndpointConfig, RecvStream, block_on, block_on_timeout,
};

pub const SECRET: [u8; 16] = [7; 16];
pub const CHUNK: usize = 256 * 1024;

/// Temporary source and target folders of a test; removed when dropped.
pub struct Folders {
    pub dir: tempfile::TempDir,
}

impl Folders {
    pub fn new() -> Self {
        Self::within(tempfile::tempdir().unwrap())
    }
    pub fn within(dir: tempfile::TempDir) -> Self {
        fs::create_dir(dir.path().join("from")).unwrap();
        fs::create_dir(dir.path().join("to")).unwrap();
        Self { dir }
    }
    pub fn from(&self) -> PathBuf {
        self.dir.path().join("from")
    }
    pub fn to(&self) -> PathBuf {
        self.dir.path().join("to")
    }
    /// Writes a file below `from`.
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.from().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

pub fn identity(n: u8) -> SecretIdentity {
    SecretIdentity::from_seed([n; 32])
}

pub fn sender_identity() -> SecretIdentity {
    identity(1)
}

pub fn receiver_identity() -> SecretIdentity {
    identity(2)
}

/// Returns bytes that do not repeat.
pub fn noise(seed: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
    bytes
}

/// Both sides of a connection, and the endpoints that keep it alive.
pub struct Link {
    pub sender: Connection,
    pub receiver: Connection,
    /// Kept alive as long as the connection is used.
    pub endpoints: [Endpoint; 2],
}

/// Creates an endpoint on loopback that may `accept` connections.
pub fn endpoint(identity: SecretIdentity, accept: bool) -> std::io::Result<Endpoint> {
    let core = match accept {
        true => EndpointConfig::open(identity),
        false => EndpointConfig::new(identity),
    };
    Endpoint::bind(Config::new(core).bind(([127, 0, 0, 1], 0)))
}

/// Reads the next message of a control stream.
pub fn read_message(recv: &mut RecvStream) -> Message {
    let mut prefix = [0; 4];
    block_on(recv.read_exact(&mut prefix)).unwrap();
    let mut body = vec![0; u32::from_be_bytes(prefix) as usize];
    block_on(recv.read_exact(&mut body)).unwrap();
    Message::from_bytes(&body).unwrap()
}

pub fn link() -> Link {
    let sender = endpoint(sender_identity(), true).unwrap();
    let receiver = endpoint(receiver_identity(), false).unwrap();
    let (dialled, accepted) = connect(&receiver, &sender, sender_identity().node_id());
    Link { sender: accepted, receiver: dialled, endpoints: [sender, receiver] }
}

/// Connects `dialler` to `acceptor`, which has the identity `peer`. Returns both ends.
pub fn connect(dialler: &Endpoint, acceptor: &Endpoint, peer: NodeId) -> (Connection, Connection) {
    let (address, access_key) = ([acceptor.local_addr()], AccessKey::public(peer));
    let limit = Duration::from_secs(20);
    let dialled = block_on_timeout(dialler.connect(&address, peer, &access_key), limit);
    let dialled = dialled.unwrap().unwrap();
    (dialled, block_on_timeout(acceptor.accept(), limit).unwrap().unwrap())
}

/// Runs `own` on one side of a connection, with `script` as its peer on the other.
pub fn beside<T>(
    own: Role,
    script: impl FnOnce(Connection) + Send,
    run: impl FnOnce(Connection) -> T,
) -> T {
    let Link { sender, receiver, endpoints: _endpoints } = link();
    let (ours, theirs) = match own {
        Role::Sender => (sender, receiver),
        Role::Receiver => (receiver, sender),
    };
    std::thread::scope(|scope| {
        scope.spawn(move || script(theirs));
        run(ours)
    })
}

pub type Outcome = (Result<SendReport, TransferError>, Result<ReceiveReport, TransferError>);

/// Options that accept any offer, including pushed files.
pub fn receive_options<'a>(to: &Path) -> ReceiveOptions<'a> {
    let mut options = ReceiveOptions::new(to.to_path_buf(), SECRET, receiver_identity());
    options.push = true;
    options
}

/// Runs one transfer to its end on a fresh connection.
pub fn transfer(send: &SendOptions, receive_options: ReceiveOptions<'_>) -> Outcome {
    transfer_over(link(), send, receive_options)
}

pub fn transfer_over(link: Link, send: &SendOptions, options: ReceiveOptions<'_>) -> Outcome {
    let Link { sender, receiver, endpoints: _endpoints } = link;
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| serve(sender, send));
        let received = receive(receiver, options);
        (sending.join().unwrap(), received)
    })
}

/// Sends `from` (its children as roots) into `to`; both sides must succeed.
pub fn transfer_all(folders: &Folders) -> (SendReport, ReceiveReport) {
    let send = SendOptions::new(roots(&folders.from()), SECRET);
    let (sent, received) = transfer(&send, receive_options(&folders.to()));
    (sent.unwrap(), received.unwrap())
}

pub fn roots(dir: &Path) -> Vec<PathBuf> {
    let mut roots: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    roots.sort();
    roots
}

/// Attributes that a transfer must preserve, by path.
#[derive(Debug, PartialEq, Eq)]
pub enum Node {
    File { content: blake3::Hash, mode: u32, mtime: (i64, i64) },
    Dir { mode: u32, mtime: (i64, i64) },
    Link { target: PathBuf },
}

pub fn tree(root: &Path) -> BTreeMap<PathBuf, Node> {
    let mut nodes = BTreeMap::new();
    let mut dirs = vec![root.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let mode = meta.permissions().mode() & 0o777;
            let mtime = (meta.mtime(), meta.mtime_nsec());
            let node = if meta.is_symlink() {
                Node::Link { target: fs::read_link(&path).unwrap() }
            } else if meta.is_dir() {
                dirs.push(path.clone());
                Node::Dir { mode, mtime }
            } else {
                Node::File { content: blake3::hash(&fs::read(&path).unwrap()), mode, mtime }
            };
            nodes.insert(path.strip_prefix(root).unwrap().to_path_buf(), node);
        }
    }
    nodes
}

/// Prints why a test was skipped, past the harness, in the form that `cargo xtask test` counts.
pub fn skipped(why: &str) {
    use std::io::Write;
    let thread = std::thread::current();
    let line = format!("skipped: {}: {why}\n", thread.name().unwrap_or("a test"));
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// Transfers everything. Returns the report and the bytes that the receiver first checked, and fails
/// if its progress did not show the check.
pub fn transfer_with_check(folders: &Folders) -> (ReceiveReport, u64) {
    let send = SendOptions::new(roots(&folders.from()), SECRET);
    let progress = Arc::new(Progress::default());
    let mut options = receive_options(&folders.to());
    options.progress = Arc::clone(&progress);
    let is_over = AtomicBool::new(false);
    let (received, seen) = std::thread::scope(|scope| {
        let (started, start) = channel();
        let (progress, is_over) = (&progress, &is_over);
        let watching = scope.spawn(move || {
            started.send(()).unwrap();
            let mut seen = Vec::new();
            while !is_over.load(Relaxed) {
                seen.extend(progress.checked());
                std::thread::yield_now();
            }
            seen
        });
        start.recv().unwrap();
        let (sent, received) = transfer_over(link(), &send, options);
        is_over.store(true, Relaxed);
        assert_eq!(sent.unwrap().failed, 0);
        (received.unwrap(), watching.join().unwrap())
    });
    let to_check = seen.last().expect("a check was seen").bytes_total;
    assert!(seen.iter().all(|checked| checked.bytes_total == to_check), "{seen:?}");
    assert!(seen.is_sorted_by_key(|checked| checked.bytes));
    assert!(seen.iter().any(|checked| checked.bytes > 0 && checked.bytes < to_check), "{seen:?}");
    assert_eq!(progress.checked(), None);
    (received, to_check)
}
