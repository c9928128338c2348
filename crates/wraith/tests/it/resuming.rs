//! An interrupted transfer resumes where it stopped: after a restart of either side, and after a
//! network outage.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use wraith::{Event, Node, Offer, OnConflict, ProgressReader, Ticket};

use crate::support::{LOOPBACK, event, file, free_again, node, node_in, until, within};

const BYTES: u64 = 24_000_000;
const RATE: u64 = 6_000_000;
/// Bytes that may have been in flight, or not yet recorded, at the interruption.
const SLACK: u64 = 4_000_000;

/// Waits until a third has arrived, and returns the byte count.
async fn third(mut progress: ProgressReader) -> u64 {
    let mut bytes = 0;
    within(until(|| {
        bytes = progress.read().map_or(0, |progress| progress.bytes);
        bytes > BYTES / 3
    }))
    .await;
    bytes
}

async fn offered_slowly(node: &Node, folder: &tempfile::TempDir, rate: u64) -> (Offer, Ticket) {
    let builder = node.offer(folder.path().join("film")).by_ticket().bind_to(LOOPBACK).rate(rate);
    let offer = within(builder.start()).await.unwrap();
    let ticket = offer.ticket().unwrap().clone();
    (offer, ticket)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_sender_resumes_with_a_waiting_receiver() {
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bytes = file(&folder.path().join("film"), 1, BYTES as usize);
    let (offer, ticket) = offered_slowly(&node_in(state.path()), &folder, RATE).await;
    let to = folder.path().join("to");
    let transfer = node().fetch(ticket.clone(), &to).accept_all(OnConflict::Rename);
    let mut events = transfer.events();
    let had = third(transfer.progress()).await;
    drop(offer);
    event(&mut events, |event| matches!(event, Event::ConnectionLost { .. }).then_some(())).await;

    free_again(&ticket).await;
    let (offer, again) = offered_slowly(&node_in(state.path()), &folder, 1 << 40).await;
    assert_eq!(again, ticket, "the same offer another time has the same ticket");
    let received = within(transfer.finished()).await.unwrap();
    within(offer.finished()).await.unwrap().complete().unwrap();
    assert!(fs::read(to.join("film")).unwrap() == bytes, "other bytes");
    let moved = received.report.bytes_moved;
    assert!(moved <= BYTES - had + SLACK, "{moved} moved again of {BYTES}, {had} were here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_receiver_resumes_with_the_same_ticket() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(&folder.path().join("film"), 1, BYTES as usize);
    let (offer, ticket) = offered_slowly(&node(), &folder, RATE).await;
    let (receiving, to) = (node(), folder.path().join("to"));
    let transfer = receiving.fetch(ticket.clone(), &to).accept_all(OnConflict::Rename);
    let had = third(transfer.progress()).await;
    let mut events = offer.events();
    within(transfer.cancel()).await.unwrap_err();
    event(&mut events, |event| matches!(event, Event::ConnectionLost { .. }).then_some(())).await;
    assert!(!to.join("film").exists());

    let incoming = within(receiving.fetch(ticket, &to).wait_for_offer()).await.unwrap();
    let outcome = incoming.preview().unwrap().entries[0].outcome;
    assert!(
        matches!(outcome, wraith::PreviewOutcome::Continues(bytes) if bytes > 0),
        "{outcome:?}"
    );
    let received =
        within(incoming.accept(wraith::AcceptOptions::default()).finished()).await.unwrap();
    within(offer.finished()).await.unwrap().complete().unwrap();
    assert!(fs::read(to.join("film")).unwrap() == bytes, "other bytes");
    let moved = received.report.bytes_moved;
    assert!(moved <= BYTES - had + SLACK, "{moved} moved again of {BYTES}, {had} were here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_code_resumes_with_its_saved_ticket() {
    let mut tasks = JoinSet::new();
    let server = crate::support::server(&mut tasks).await;
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    file(&folder.path().join("film"), 1, BYTES as usize);
    let offer =
        crate::support::node_at(server).offer(folder.path().join("film")).rate(RATE).start();
    let offer = within(offer).await.unwrap();
    let (code, to) = (offer.code().unwrap().clone(), folder.path().join("to"));
    let receiving = || {
        let state = wraith::state::StateDir::in_folder(state.path());
        let builder = crate::support::nowhere().rendezvous(&server.to_string());
        builder.state(state).build().unwrap()
    };
    let transfer = receiving().fetch(code.clone(), &to).accept_all(OnConflict::Rename);
    let had = third(transfer.progress()).await;
    drop(transfer);
    let transfer = receiving().fetch(code.clone(), &to).accept_all(OnConflict::Rename);
    let mut events = transfer.events();
    event(&mut events, |event| matches!(event, Event::Resumed).then_some(())).await;
    let received = within(transfer.finished()).await.unwrap();
    within(offer.finished()).await.unwrap().complete().unwrap();
    let moved = received.report.bytes_moved;
    assert!(moved <= BYTES - had + SLACK, "{moved} moved again of {BYTES}, {had} were here");
    // Nothing is left to resume.
    let gone = receiving().fetch(code, &to).timeout(std::time::Duration::from_secs(1));
    within(gone.accept_all(OnConflict::Rename).finished()).await.unwrap_err();
}

/// A link between a receiver and a sender that can be cut.
struct Wire {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    _tasks: JoinSet<()>,
}

impl Wire {
    async fn to(sender: SocketAddr) -> Self {
        let (near, far) =
            (UdpSocket::bind(LOOPBACK).await.unwrap(), UdpSocket::bind(LOOPBACK).await.unwrap());
        far.connect(sender).await.unwrap();
        let address = near.local_addr().unwrap();
        let is_cut = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        let cut = Arc::clone(&is_cut);
        tasks.spawn(async move {
            let mut receiver = None;
            let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
            loop {
                // Packets that cannot be sent are lost, as on any link.
                tokio::select! {
                    Ok((len, from)) = near.recv_from(&mut up) => {
                        receiver = Some(from);
                        if !cut.load(Relaxed) {
                            let _ = far.send(&up[..len]).await;
                        }
                    }
                    Ok(len) = far.recv(&mut down) => {
                        if let (Some(to), false) = (receiver, cut.load(Relaxed)) {
                            let _ = near.send_to(&down[..len], to).await;
                        }
                    }
                }
            }
        });
        Self { address, is_cut, _tasks: tasks }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_is_reestablished_automatically() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(&folder.path().join("film"), 1, BYTES as usize);
    let (offer, ticket) = offered_slowly(&node(), &folder, RATE).await;
    let wire = Wire::to(ticket.addresses()[0]).await;
    let over_it = Ticket::new(ticket.node_id(), ticket.capability().clone(), vec![wire.address]);
    let to = folder.path().join("to");
    let transfer = node().fetch(over_it, &to).accept_all(OnConflict::Rename);
    let mut events = transfer.events();
    let had = third(transfer.progress()).await;
    wire.is_cut.store(true, Relaxed);
    event(&mut events, |event| matches!(event, Event::ConnectionLost { .. }).then_some(())).await;
    wire.is_cut.store(false, Relaxed);
    let received = within(transfer.finished()).await.unwrap();
    within(offer.finished()).await.unwrap().complete().unwrap();
    assert!(fs::read(to.join("film")).unwrap() == bytes, "other bytes");
    let moved = received.report.bytes_moved;
    assert!(moved <= BYTES - had + SLACK, "{moved} moved again of {BYTES}, {had} were here");
}
