//! An interrupted transfer resumes where it stopped: after a restart of either side, and after a
//! network outage.

use std::fs;

use std::path::Path;

use tokio::task::JoinSet;
use wraith::{Event, FetchSummary, Node, Offer, OnConflict, ProgressReader, Role, Ticket};

use crate::support::{LOOPBACK, Wire, event, file, free_again, node, node_in, until, within};

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

/// Checks the end of a transfer of which `had` bytes were here before.
async fn check_rest(offer: Offer, received: &FetchSummary, to: &Path, bytes: &[u8], had: u64) {
    within(offer.finished()).await.unwrap().complete().unwrap();
    assert!(fs::read(to.join("film")).unwrap() == bytes, "other bytes");
    let moved = received.report.bytes_moved;
    assert!(moved <= BYTES - had + SLACK, "{moved} moved again of {BYTES}, {had} were here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_sender_resumes_with_a_waiting_receiver() {
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bytes = file(&folder.path().join("film"), 1, BYTES as usize);
    let (offer, ticket) = offered_slowly(&node_in(state.path()), &folder, RATE).await;
    let to = folder.path().join("to");
    let wire = Wire::to(ticket.addresses()[0]).await;
    let transfer = node().fetch(wire.ticket(&ticket), &to).accept_all(OnConflict::Rename);
    let mut events = transfer.events();
    let had = third(transfer.progress()).await;
    // Like a power cut: the receiver gets no word.
    wire.cut();
    drop(offer);
    event(&mut events, |event| matches!(event, Event::ConnectionLost { .. }).then_some(())).await;

    free_again(&ticket).await;
    wire.mend();
    let (offer, again) = offered_slowly(&node_in(state.path()), &folder, 1 << 40).await;
    assert_eq!(again, ticket, "the same offer another time has the same ticket");
    let received = within(transfer.finished()).await.unwrap();
    check_rest(offer, &received, &to, &bytes, had).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_receiver_resumes_with_the_same_ticket() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(&folder.path().join("film"), 1, BYTES as usize);
    let builder = node().offer(folder.path().join("film")).by_ticket().bind_to(LOOPBACK);
    let offer = within(builder.rate(RATE).keep_place(true).start()).await.unwrap();
    let ticket = offer.ticket().unwrap().clone();
    let (receiving, to) = (node(), folder.path().join("to"));
    let transfer = receiving.fetch(ticket.clone(), &to).accept_all(OnConflict::Rename);
    let had = third(transfer.progress()).await;
    let mut events = offer.events();
    within(transfer.cancel()).await.unwrap_err();
    let stopped = |event: &Event| match event {
        Event::Stopped { by, seconds_left } => Some((*by, seconds_left.is_some())),
        _ => None,
    };
    assert_eq!(event(&mut events, stopped).await, (Role::Receiver, true));
    assert!(!to.join("film").exists());

    let incoming = within(receiving.fetch(ticket, &to).wait_for_offer()).await.unwrap();
    let outcome = incoming.preview().unwrap().entries[0].outcome;
    assert!(
        matches!(outcome, wraith::PreviewOutcome::Continues(bytes) if bytes > 0),
        "{outcome:?}"
    );
    let received =
        within(incoming.accept(wraith::AcceptOptions::default()).finished()).await.unwrap();
    check_rest(offer, &received, &to, &bytes, had).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_code_resumes_with_its_saved_ticket() {
    let mut tasks = JoinSet::new();
    let server = crate::support::server(&mut tasks).await;
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    file(&folder.path().join("film"), 1, BYTES as usize);
    let offer = crate::support::node_at(server)
        .offer(folder.path().join("film"))
        .rate(RATE)
        .keep_place(true)
        .start();
    let offer = within(offer).await.unwrap();
    let (code, to) = (offer.code().unwrap().clone(), folder.path().join("to"));
    let receiving = || {
        let state = wraith::state::StateDir::in_folder(state.path());
        let builder = crate::support::nowhere().rendezvous(&server.to_string());
        builder.state(state).build().unwrap()
    };
    let transfer = receiving().fetch(code.clone(), &to).accept_all(OnConflict::Rename);
    let had = third(transfer.progress()).await;
    // A drop would not wait until the folder is free again.
    within(transfer.cancel()).await.unwrap_err();
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_is_reestablished_automatically() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(&folder.path().join("film"), 1, BYTES as usize);
    let (offer, ticket) = offered_slowly(&node(), &folder, RATE).await;
    let wire = Wire::to(ticket.addresses()[0]).await;
    let to = folder.path().join("to");
    let transfer = node().fetch(wire.ticket(&ticket), &to).accept_all(OnConflict::Rename);
    let mut events = transfer.events();
    let had = third(transfer.progress()).await;
    wire.cut();
    event(&mut events, |event| matches!(event, Event::ConnectionLost { .. }).then_some(())).await;
    wire.mend();
    let received = within(transfer.finished()).await.unwrap();
    check_rest(offer, &received, &to, &bytes, had).await;
}
