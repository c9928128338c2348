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
mod demand;
mod large_file;
mod ledger;
mod manifest;
mod negotiate;
mod offered;
mod options;
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
mod survey;
mod worker;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, mpsc};

use wraith_transport::Connection;

use crate::buffer_pool::BufferPool;
use crate::control::ControlReader;
use crate::error::{TransferError, close};
use crate::events::Event;
use crate::limits::STALL_BYTES;
use crate::local_folders::LocalFolders;
use crate::receipt::Receipt;
use crate::role::Role;
use crate::roots::Roots;
use crate::session::Session;
use crate::stream_kind::StreamKind;
use books::Books;
use delta_requests::DeltaRequests;
use demand::Demand;
use negotiate::{Negotiated, WORKERS, negotiate, terms};
use offered::Offered;
pub use options::{SendOptions, SendReport};
use peer::Peer;
use plan::Decisions;
use pushes::PushSelection;
pub use sent_roots::SentRoots;
use serving::Answer;
pub use source::StreamSource;

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
    let manifest_stream = session.open_stream(&session.connection, StreamKind::Manifest)?;
    let data_streams: Result<Vec<_>, _> =
        (0..WORKERS).map(|_| session.open_stream(&session.connection, StreamKind::Data)).collect();
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
