//! The sender: serves one receiver over one connection (SPEC §10). A fast transfer uses further
//! connections beside it (SPEC §10.13).
//!
//! Threads:
//!
//! - The calling thread reads control messages.
//! - One thread walks the tree and writes the manifest.
//! - Each worker thread reads and hashes files and writes its own data stream.
//! - One thread detects stalls.
//!
//! Three parts share the state, and no file besides this one uses more than two of them:
//!
//! | part | content |
//! |---|---|
//! | [`Peer`] | a receiver: its connection, the data that it has not acknowledged, its requests |
//! | [`Offered`] | the content: what of it is wanted, and the large file that is being read |
//! | [`Books`] | the results: events, counters, and the roots of the files that were read |
//!
//! The answers to the receiver are a state machine without I/O ([`serving::Serving`]), which the
//! threads share behind one lock.
//!
//! Local parameters, unknown to the peer. The reason for each is at its definition:
//!
//! | constant | value | bounds |
//! |---|---|---|
//! | [`WORKERS`] | 2 | threads that read and hash, and data streams |
//! | `BUFFERS_MAX` ([`crate::buffer_pool`]) | 128 of 256 KiB | memory of unacknowledged data |
//! | `AHEAD_BYTES` ([`crate::buffer_pool`]) | 2 MiB | read-ahead beyond the data in flight |
//! | `BATCH_FILES_MAX` ([`worker`]) | 64 | small files in one write |
//! | `BATCH_BYTES_FIRST`, `BATCH_BYTES_MAX` ([`manifest`]) | 1 KiB, 64 KiB | manifest in one write |
//! | [`limits::KEPT_BYTES_MAX`] | 32 MiB | input of `wraith send -` that is kept because the receiver has not confirmed it |
//! | [`limits::PARALLEL_RATE`], [`limits::PARALLEL_RTT_MAX`], [`limits::PARALLEL_BYTES_MIN`] | ≥ 400 MB/s, ≤ 5 ms, ≥ 256 MiB | rate, round-trip time and remaining bytes from which further connections are used |

mod announced;
mod books;
mod delta;
mod delta_requests;
mod large_file;
mod ledger;
mod manifest;
mod negotiate;
mod offered;
mod parallel;
mod peer;
mod plan;
mod pushes;
mod sent_roots;
mod serving;
mod shared_file;
mod shared_serving;
#[cfg(test)]
mod simulated;
mod source;
pub(crate) mod stream;
mod worker;

use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock, mpsc};

use wraith_crypto::NodeId;
use wraith_files::WalkSummary;
use wraith_transport::{Connection, SendStream, block_on};

use crate::buffer_pool::BufferPool;
use crate::cancel::Cancel;
use crate::control::ControlReader;
use crate::error::{TransferError, close};
use crate::events::{Event, Events};
use crate::limits::STALL_BYTES;
use crate::local_folders::LocalFolders;
use crate::message::Offer;
use crate::parallel::ParallelConnections;
use crate::progress::Progress;
use crate::rate::Rate;
use crate::receipt::Receipt;
use crate::role::Role;
use crate::roots::Roots;
use crate::session::Session;
use crate::stream_kind::StreamKind;
use books::Books;
use delta_requests::DeltaRequests;
use negotiate::{Negotiated, negotiate, summary_of};
use offered::Offered;
use parallel::Demand;
use peer::Peer;
use plan::Decisions;
use pushes::PushSelection;
pub use sent_roots::SentRoots;
use serving::{Answer, Terms};
pub use source::StreamSource;

/// Number of workers, each with its own data stream. One reads and hashes while the other waits for
/// room, and small files are opened on two cores at once. More workers only help disks that are
/// slow at one file and fast at many.
const WORKERS: u64 = 2;

/// Returns true if an identity, proved by the handshake, may use the capability.
pub type Admits = Arc<dyn Fn(NodeId) -> bool + Send + Sync>;

/// Options of [`serve`].
pub struct SendOptions {
    /// Files and directories; each keeps its own last name.
    pub paths: Vec<PathBuf>,
    /// Byte stream to send instead of the paths.
    pub stream: Option<StreamSource>,
    /// Capability secret of the ticket: only a receiver that presents it is served.
    pub secret: [u8; 16],
    /// Additional check of a receiver with the secret; `None` admits every such receiver.
    pub admits: Option<Admits>,
    /// Send only the differences of files of which the receiver has an old copy, if the receiver
    /// supports that.
    pub delta: bool,
    /// Wait until all data is on the receiver's stable storage.
    pub sync: bool,
    /// Sender's identity required in the receipt; not checked if `None`.
    pub node_id: Option<NodeId>,
    /// Roots of files read for earlier connections; shared by all connections of an offer.
    pub sent_roots: SentRoots,
    /// Rate limit.
    pub rate: Arc<Rate>,
    /// Parallel connections for the chunks of large files.
    pub parallel: ParallelConnections,
    /// Live counters.
    pub progress: Arc<Progress>,
    /// Receives events.
    pub events: Arc<dyn Events>,
    /// Cancels the transfer from another thread.
    pub cancel: Cancel,
    /// Counts and sizes for the offer, once known.
    survey: OnceLock<WalkSummary>,
}

impl SendOptions {
    /// Creates options that report no events.
    pub fn new(paths: Vec<PathBuf>, secret: [u8; 16]) -> Self {
        Self {
            paths,
            stream: None,
            secret,
            admits: None,
            delta: true,
            sync: true,
            node_id: None,
            sent_roots: SentRoots::in_memory(&wraith_crypto::kdf::derive(
                "wraith/1 sent marks of a process",
                &secret,
            )),
            rate: Arc::default(),
            parallel: ParallelConnections::default(),
            progress: Arc::default(),
            events: Arc::new(()),
            cancel: Cancel::default(),
            survey: OnceLock::new(),
        }
    }

    /// Walks the tree without reading files, and keeps its counts for the offer of every [`serve`].
    /// Call it before a receiver connects, so that the receiver need not wait. Fails if one of the
    /// paths cannot be read.
    pub fn survey(&self) -> Result<&WalkSummary, TransferError> {
        if let Some(source) = &self.stream {
            return Ok(self.survey.get_or_init(|| summary_of(source)));
        }
        if let Some(summary) = self.survey.get() {
            return Ok(summary);
        }
        let summary = manifest::survey(&self.paths, &self.cancel)?;
        Ok(self.survey.get_or_init(|| summary))
    }
}

impl std::fmt::Debug for SendOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendOptions").field("paths", &self.paths).finish_non_exhaustive()
    }
}

/// Result of a transfer at the sender: everything the receiver wanted has arrived on its disk and
/// is verified.
#[derive(Clone, Debug)]
pub struct SendReport {
    /// The offer.
    pub offer: Offer,
    /// The receiver's signed receipt.
    pub receipt: Receipt,
    /// Identity of the receiver.
    pub receiver: NodeId,
    /// Number of files that were sent or found identical.
    pub files: u64,
    /// Their total bytes.
    pub bytes: u64,
    /// Bytes of file content sent over the connection.
    pub bytes_moved: u64,
    /// Bytes of all datagrams, in both directions.
    pub wire_bytes: u64,
    /// Number of connections that carried data.
    pub connections: u64,
    /// Number of files that could not be read, changed during reading, or that the receiver could
    /// not keep.
    pub failed: u64,
    /// Number of files, folders and links missing from the offer. These are names that no receiver
    /// would accept, folders that cannot be listed, and entries that appeared too late.
    pub left_out: u64,
    /// Number of sockets, pipes and devices, which have no content to send.
    pub special: u64,
}

impl SendReport {
    /// Returns [`TransferError::Partial`] if anything is missing.
    pub fn outcome(&self) -> Result<(), TransferError> {
        TransferError::partial(Role::Sender, self.failed, self.offer.files, self.left_out)
    }
}

/// Serves one receiver and blocks until its receipt arrives or the transfer fails. After that, the
/// connection is closed, with the reason for the receiver. [`SendOptions::cancel`] ends the
/// transfer at any stage, but does not interrupt a single file system call.
pub fn serve(connection: Connection, options: &SendOptions) -> Result<SendReport, TransferError> {
    let session = Session::new(
        connection,
        Role::Sender,
        &options.cancel,
        LocalFolders::sources(&options.paths),
    );
    options.rate.apply_to(&session.connection);
    let result = session.catch_panic(|| {
        let mut negotiated = negotiate(&session, options)?;
        match negotiated.source.take() {
            Some(source) => stream::run(&session, options, negotiated, &source),
            None => run(&session, options, negotiated),
        }
    });
    options.rate.release();
    session.conclude(result)
}

fn run(
    session: &Session,
    options: &SendOptions,
    negotiated: Negotiated,
) -> Result<SendReport, TransferError> {
    let Negotiated { mut reader, writer, offer, position_free, push, .. } = negotiated;
    let peer = Peer {
        session,
        writer: Mutex::new(writer),
        position_free,
        rate: &options.rate,
        parallel: &options.parallel,
        demand: Demand::default(),
        pool: BufferPool::default(),
        requests: DeltaRequests::default(),
    };
    let books = Books::new(&*options.events, &options.progress, &options.sent_roots);
    let offered = Offered::new(&books, terms(session, options, &offer));
    // A long manifest fills the receiver's window while its user decides.
    session.suspend_stall_check(true);
    let manifest_stream = open(session, StreamKind::Manifest)?;
    let data_streams: Result<Vec<_>, _> =
        (0..WORKERS).map(|_| open(session, StreamKind::Data)).collect();
    let data_streams = data_streams?;
    let mut receipt = None;
    let stop = || {
        peer.stop();
        offered.stop();
    };
    std::thread::scope(|scope| {
        let (peer, offered, offer) = (&peer, &offered, &offer);
        let (chosen, to_push) = mpsc::channel();
        let mut to_push = Some(to_push);
        let choice = PushSelection::new(push);
        scope.spawn(move || {
            let to = (offer, manifest_stream);
            session.run_or_fail(|| manifest::write(peer, offered, options, to, choice, chosen));
        });
        for stream in data_streams {
            // The first one starts with the pushed files.
            let to_push = to_push.take();
            scope.spawn(move || {
                session.run_or_fail(|| worker::work(peer, offered, stream, to_push))
            });
        }
        scope.spawn(move || session.watch(|| false, || Ok(()), stop));
        session.run_or_fail(|| {
            let open_parallel = |count| {
                scope.spawn(move || {
                    session.run_or_fail(|| parallel::open(scope, peer, offered, count));
                });
            };
            receipt = Some(read_control(peer, offered, &books, &mut reader, open_parallel)?);
            session.complete();
            // Before the streams are dropped: the receiver must see this close and not broken
            // streams.
            session.close(close::DONE, "");
            Ok(())
        });
    });
    // Also after a failure: the next connection need not read these files again.
    let _ = options.sent_roots.flush();
    session.outcome()?;
    let receipt = receipt.expect("without an error there is a receipt");
    options.events.event(Event::Done { receipt: &receipt });
    let counts = offered.serving.with(|serving| serving.counts());
    Ok(SendReport {
        failed: counts.failed,
        files: counts.resolved,
        bytes: counts.bytes,
        bytes_moved: books.bytes_moved.load(Relaxed),
        wire_bytes: session.wire_bytes(),
        left_out: books.left_out.load(Relaxed),
        special: books.special.load(Relaxed),
        receiver: session.connection.peer(),
        receipt,
        connections: session.used_connections(),
        offer,
    })
}

fn terms(session: &Session, options: &SendOptions, offer: &Offer) -> Terms {
    Terms {
        transfer_id: offer.transfer_id,
        receiver: session.connection.peer(),
        sender: options.node_id,
        delta: options.delta,
    }
}

/// Opens a stream of this kind.
fn open(session: &Session, kind: StreamKind) -> Result<SendStream, TransferError> {
    open_on(session, &session.connection, kind)
}

fn open_on(
    session: &Session,
    connection: &Connection,
    kind: StreamKind,
) -> Result<SendStream, TransferError> {
    let opened = session.wait(connection.open_stream());
    let (mut stream, _unused) = opened.map_err(|reason| session.lost(&reason))?;
    block_on(stream.write_all(&[kind.byte()])).map_err(|error| session.write_failed(error))?;
    Ok(stream)
}

/// Handles the receiver's messages up to its receipt.
fn read_control(
    peer: &Peer<'_>,
    offered: &Offered<'_>,
    books: &Books<'_>,
    reader: &mut ControlReader,
    open_parallel: impl FnOnce(usize),
) -> Result<Receipt, TransferError> {
    let session = peer.session;
    let mut open_parallel = Some(open_parallel);
    loop {
        match offered.serving.handle(reader.next(session)?)? {
            Answer::Accepted { rate, parallel } => {
                peer.rate.ask(rate);
                // Before a file is started.
                let count = parallel::agreed(peer, parallel);
                if let Some(open) = open_parallel.take().filter(|_| count > 0) {
                    offered.shared_file.share();
                    open(count);
                }
                session.suspend_stall_check(false);
                session.log_accept(false);
                books.accepted();
            }
            Answer::Decided(Decisions { passed, pushed }) => {
                pushed.iter().for_each(|pushed| books.pushed(pushed));
                passed.into_iter().for_each(|passed| books.passed(passed));
            }
            Answer::Excepted(excepted) => {
                excepted.into_iter().for_each(|(entry, why)| books.excepted(entry, why));
            }
            Answer::Delta(request) => peer.requests.deliver(request),
            Answer::Busy => session.moved(STALL_BYTES),
            Answer::Receipt(receipt) => return Ok(receipt),
        }
    }
}
