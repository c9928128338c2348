//! The receiver: fetches an offer into a directory over one connection (SPEC §10).
//!
//! Threads:
//!
//! - One thread reads the manifest, inspects the disk and sends Want messages (the requests for
//!   files).
//! - Each data stream has one thread, which parses, verifies and writes in place. A byte thus never
//!   changes threads after it has left the receive buffer.
//! - One thread detects stalls.
//! - The calling thread waits for the end and signs the receipt.
//!
//! Three parts share the state, and no file besides this one uses more than two of them:
//!
//! | part | content |
//! |---|---|
//! | [`Peer`] | a sender: its connection, what it was asked for and owes, what it may push |
//! | [`Assembly`] | the content: where it goes, and the chunks of each file by peer |
//! | [`Books`] | the results: events, counters, and the entries of the receipt |
//!
//! ```text
//! peer ── records, entries ──▶ assembly ── results ──▶ books ── receipt ──▶ peer
//! ```

mod assembly;
mod books;
mod completed_files;
mod data;
mod decide;
mod delta;
mod delta_files;
mod delta_records;
mod earlier_names;
mod entries;
mod incoming;
mod intake;
mod manifest;
mod name_files;
mod name_rules;
mod naming;
mod negotiate;
mod options;
mod outstanding;
mod parallel;
mod peer;
mod placement;
mod plan;
mod preview;
mod protected_objects;
mod pushes;
mod renamed_folders;
mod send_receipt;
mod shown;
mod stream;
mod stream_target;

use std::sync::Mutex;

use wraith_transport::Connection;

use crate::control::ControlReader;
use crate::error::TransferError;
use crate::events::Event;
use crate::limits::{PUSH_BYTES_MAX, STALL_BYTES};
use crate::local_folders::LocalFolders;
use crate::role::Role;
use crate::session::Session;
use assembly::{Assembly, Uses};
use books::Books;
use entries::ManifestEnd;
use incoming::PeerId;
use name_files::name_files;
use name_rules::NameRules;
use negotiate::{Control, Negotiated, Streams, Tree, negotiate, part_key, wanted_connections};
pub use options::{Decide, Decision, ReceiveOptions, ReceiveReport};
use outstanding::OutstandingFiles;
use peer::Peer;
pub use plan::{Action, Planned};
pub use preview::{Conflicts, Preview, PreviewOutcome, Previewed, Proposal};
use pushes::Pushes;
use send_receipt::send_receipt;
pub use shown::Shown;
pub use stream_target::StreamTarget;

/// Fetches the transfer named by `options.secret` and blocks until it is complete or has failed.
/// After that, the connection is closed, with the reason for the sender. [`ReceiveOptions::cancel`]
/// ends the transfer at any stage. It does not interrupt `decide`, the writer of a
/// [`StreamTarget::output`], or a single file system call.
pub fn receive(
    connection: Connection,
    mut options: ReceiveOptions<'_>,
) -> Result<ReceiveReport, TransferError> {
    let session = Session::new(
        connection,
        Role::Receiver,
        &options.cancel,
        LocalFolders::target(&options.target),
    );
    let result = session.catch_panic(|| match negotiate(&session, &mut options)? {
        Negotiated::Tree(tree) => run(&session, &options, *tree),
        Negotiated::Stream(stream) => stream::run(&session, &options, *stream),
    });
    session.conclude(result)
}

fn run(
    session: &Session,
    options: &ReceiveOptions<'_>,
    tree: Tree,
) -> Result<ReceiveReport, TransferError> {
    let Tree { control, accepted, target, completed, streams } = tree;
    let Control { reader, writer, offer, features } = control;
    let peer = Peer {
        id: PeerId(0),
        session,
        offer: &offer,
        accepted: accepted.within,
        owed: OutstandingFiles::new(),
        pushes: Pushes::new(if options.push { PUSH_BYTES_MAX } else { 0 }),
        writer: Mutex::new(writer),
    };
    let books = Books::new(&*options.events, &options.progress, &session.span);
    let assembly = Assembly::new(
        &books,
        &target,
        (&offer.transfer_id, part_key(session, options)),
        NameRules::new(accepted.conflicts),
        completed,
        Uses { old_copies: features.delta, sync: options.sync && offer.no_sync != Some(true) },
    );
    let mut end = None;
    fetch(&peer, &assembly, options, (reader, streams), |manifest| {
        let reached = assembly.reached()?;
        let said = features.durability.then_some(reached as u8);
        let sent = send_receipt(&peer, &books, options, manifest.hash, said);
        end = Some(sent.map(|(receipt, confirmed)| (receipt, confirmed, manifest.left_out)));
        session.close_parallel();
        Ok(())
    });
    // This is done after a failure, too: completed files then need no comparison of content next
    // time.
    assembly.completed.close();
    session.outcome()?;
    let (receipt, confirmed, left_out) = end.expect("without an error there is a receipt")?;
    if receipt.failed == 0 {
        assembly.completed.remove();
        assembly.renamed.remove();
    }
    if let Some(now) = target.moved_from(&options.target) {
        let (path, now) = (options.target.display(), now.display().to_string());
        let what = format!("this folder was moved during the transfer; the files are in {now}");
        options.events.event(Event::Note { path: &path, what: &what });
    }
    options.events.event(Event::Done { receipt: &receipt });
    let [files, bytes_moved, already_here, skipped, failed] = books.totals();
    Ok(ReceiveReport {
        sender: session.connection.peer(),
        files,
        bytes_moved,
        wire_bytes: session.wire_bytes(),
        connections: session.used_connections(),
        already_here,
        skipped,
        failed,
        // More may have been left out than at the time of the offer.
        left_out,
        receipt,
        confirmed,
        offer: offer.clone(),
    })
}

/// Receives everything, with a thread for each stream and task. Calls `finish` once all entries are
/// in place. An error is recorded in the session.
fn fetch(
    peer: &Peer<'_>,
    assembly: &Assembly<'_>,
    options: &ReceiveOptions<'_>,
    (reader, streams): (ControlReader, Streams),
    finish: impl FnOnce(ManifestEnd) -> Result<(), TransferError>,
) {
    let session = peer.session;
    let Streams { manifest, data } = streams;
    // Kept even without parallel connections, so that the stream is not stopped.
    let mut reader = Some(reader);
    std::thread::scope(|scope| {
        let stop = || {
            peer.owed.stop();
            assembly.stop();
        };
        // Data from the sender was not read during a flush, so its stall timer restarts after it.
        let moved = || session.moved(STALL_BYTES);
        let naming = scope.spawn(move || session.run_or_fail(|| name_files(assembly, moved)));
        for stream in data {
            scope.spawn(move || session.run_or_fail(|| data::receive(peer, assembly, stream)));
        }
        if wanted_connections(options).is_some() {
            let (reader, parallel) = (reader.take(), &options.parallel);
            scope.spawn(move || {
                let reader = reader.expect("nobody else takes it");
                session.run_or_fail(|| parallel::join(scope, peer, assembly, reader, parallel));
            });
        }
        scope.spawn(move || session.watch(|| peer.is_due(), || assembly.check_target(), stop));
        let reading = scope.spawn(move || {
            let mut read = None;
            session.run_or_fail(|| {
                read = Some(manifest::receive(peer, assembly, manifest)?);
                Ok(())
            });
            read
        });
        if assembly.uses().old_copies {
            scope.spawn(move || session.run_or_fail(|| delta::work(peer, assembly)));
        }
        session.run_or_fail(|| {
            let resolved = peer.owed.wait_until_resolved();
            let read = reading.join().expect("the manifest thread does not panic");
            assembly.deltas.stop();
            assembly.naming.end();
            naming.join().expect("the naming thread does not panic");
            match read {
                Some((links, end)) if resolved && !session.is_over() => {
                    manifest::finish_tree(peer, assembly, &links)?;
                    finish(end)
                }
                _ => Ok(()),
            }
        });
    });
}
