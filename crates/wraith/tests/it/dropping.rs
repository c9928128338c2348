//! Dropping a handle cancels its work: the peer is notified soon, and nothing keeps running.

use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::runtime::Runtime;
use wraith::{
    AcceptFilter, Error, ErrorKind, Event, Node, Offer, OnConflict, Progress, ProgressReader, Role,
    Ticket, Transfer, TransferError,
};

use crate::support::{
    LOOPBACK, alone_in_a_process, event, file, film_offered, node, offered, soon, threads, until,
    within,
};

/// Slow enough that a transfer of [`BYTES`] takes a long time.
const RATE: u64 = 4_000_000;
const BYTES: usize = 40_000_000;

/// An offer and a fetch of it.
async fn under_way(folder: &Path) -> (Offer, Ticket, Transfer) {
    file(&folder.join("film"), 1, BYTES);
    let builder = node().offer(folder.join("film")).by_ticket().bind_to(LOOPBACK).rate(RATE);
    let offer = within(builder.start()).await.unwrap();
    let ticket = offer.ticket().unwrap().clone();
    let transfer = node().fetch(ticket.clone(), folder.join("to")).accept_all(OnConflict::Rename);
    moves(transfer.progress()).await;
    (offer, ticket, transfer)
}

/// Waits until some bytes have arrived.
async fn moves(mut progress: ProgressReader) -> Progress {
    let mut now = None;
    within(until(|| {
        now = progress.read().filter(|progress| progress.bytes > 0);
        now.is_some()
    }))
    .await;
    now.unwrap()
}

/// Checks that the side of `role` has cancelled, and returns the error.
async fn cancelled_by<T: Debug>(role: Role, end: impl Future<Output = Result<T, Error>>) -> Error {
    let error = soon(end).await.unwrap_err();
    assert_eq!(error.transfer(), Some(&TransferError::Cancelled { role }));
    error
}

#[tokio::test]
async fn dropping_an_offer_ends_its_fetches() {
    let folder = tempfile::tempdir().unwrap();
    let (offer, _, transfer) = under_way(folder.path()).await;
    drop(offer);
    let error = cancelled_by(Role::Sender, transfer.finished()).await;
    assert!(error.is_resumable());
    assert!(!folder.path().join("to/film").exists(), "not whole, so not there");
}

#[tokio::test]
async fn a_dropped_transfer_ends_the_offer() {
    let folder = tempfile::tempdir().unwrap();
    let (offer, _, transfer) = under_way(folder.path()).await;
    drop(transfer);
    cancelled_by(Role::Receiver, offer.finished()).await;
}

#[tokio::test]
async fn cancel_returns_the_outcome() {
    let folder = tempfile::tempdir().unwrap();
    let (offer, _, transfer) = under_way(folder.path()).await;
    let error = soon(transfer.cancel()).await.unwrap_err();
    assert_eq!(error.transfer(), Some(&TransferError::Cancelled { role: Role::Receiver }));
    soon(offer.finished()).await.unwrap_err();

    let folder = tempfile::tempdir().unwrap();
    let (offer, _, transfer) = under_way(folder.path()).await;
    let error = soon(offer.cancel()).await.unwrap_err();
    assert_eq!(error.transfer(), Some(&TransferError::Cancelled { role: Role::Sender }));
    soon(transfer.finished()).await.unwrap_err();

    // Cancelling a finished operation keeps its result.
    let (folder, offer, ticket) = film_offered(1000).await;
    let transfer = node().fetch(ticket, folder.path().join("to")).accept_all(OnConflict::Rename);
    within(transfer.finished()).await.unwrap();
    within(offer.finished()).await.unwrap();
    assert_eq!(soon(transfer.cancel()).await.unwrap().report.files, 1);
    assert_eq!(soon(offer.cancel()).await.unwrap().receivers, 1);
}

#[tokio::test]
async fn stop_requests_the_end_and_finished_returns_it() {
    let folder = tempfile::tempdir().unwrap();
    let (offer, _, transfer) = under_way(folder.path()).await;
    transfer.stop();
    assert_eq!(soon(transfer.finished()).await.unwrap_err().kind(), ErrorKind::Cancelled);
    // May be called any number of times.
    assert_eq!(soon(transfer.finished()).await.unwrap_err().kind(), ErrorKind::Cancelled);
    soon(offer.finished()).await.unwrap_err();
}

#[tokio::test]
async fn dropping_a_future_cancels_nothing() {
    let (folder, offer, ticket) = film_offered(3_000_000).await;
    let transfer = node().fetch(ticket, folder.path().join("to")).accept_all(OnConflict::Rename);
    for _ in 0..20 {
        let _ = tokio::time::timeout(Duration::from_millis(1), transfer.finished()).await;
        let _ = tokio::time::timeout(Duration::from_millis(1), offer.finished()).await;
    }
    within(transfer.finished()).await.unwrap().complete().unwrap();
    within(offer.finished()).await.unwrap().complete().unwrap();
}

#[tokio::test]
async fn a_detached_offer_continues() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = file(&folder.path().join("film"), 1, 3_000_000);
    let (offer, ticket) = offered(&node(), folder.path().join("film")).await;
    let (mut sends, to) = (offer.events(), folder.path().join("to"));
    offer.detach();
    let transfer = node().fetch(ticket, &to).accept_all(OnConflict::Rename);
    let mut fetches = transfer.events();
    transfer.detach();
    for events in [&mut sends, &mut fetches] {
        event(events, |event| matches!(event, Event::Done).then_some(())).await;
    }
    assert!(fs::read(to.join("film")).unwrap() == bytes, "other bytes");
}

#[tokio::test]
async fn an_abandoned_request_notifies_the_sender() {
    for cancel in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        file(&folder.path().join("film"), 1, 1000);
        let builder = node().offer(folder.path().join("film")).by_ticket().bind_to(LOOPBACK);
        let offer = within(builder.keep_place(true).start()).await.unwrap();
        let ticket = offer.ticket().unwrap().clone();
        let mut events = offer.events();
        let receiving = node();
        let mut asking = receiving.fetch(ticket.clone(), folder.path().join("to")).request_offer();
        // The offer has arrived but was not taken yet.
        event(&mut events, |event| matches!(event, Event::Connected { .. }).then_some(())).await;
        if cancel {
            assert_eq!(soon(asking.cancel()).await.kind(), ErrorKind::Cancelled);
        } else {
            // Dropping the future cancels nothing.
            let _ = tokio::time::timeout(Duration::ZERO, asking.incoming()).await;
            drop(asking);
        }
        soon(event(&mut events, |event| {
            matches!(event, Event::Stopped { .. } | Event::OfferPostponed).then_some(())
        }))
        .await;
        let transfer =
            receiving.fetch(ticket, folder.path().join("to")).accept_all(OnConflict::Rename);
        within(transfer.finished()).await.unwrap();
        within(offer.finished()).await.unwrap();
    }
}

/// Starts each kind of operation, and drops it after `moment`.
async fn begin_and_drop(kind: u64, folder: &Path, moment: Duration) {
    let film = folder.join("film");
    let until_then = tokio::time::sleep(moment);
    let sending: Node = node();
    let receiving: Node = node();
    match kind {
        0 | 1 => {
            let (offer, ticket) = offered(&sending, film.as_path()).await;
            let transfer =
                receiving.fetch(ticket, folder.join("to")).accept_all(OnConflict::Rename);
            until_then.await;
            if kind == 0 { drop(offer) } else { drop(transfer) }
        }
        2 => {
            let (_offer, ticket) = offered(&sending, film.as_path()).await;
            let asking = receiving.fetch(ticket, folder.join("to")).request_offer();
            until_then.await;
            drop(asking);
        }
        3 => {
            let (_offer, ticket) = offered(&sending, film.as_path()).await;
            let incoming =
                within(receiving.fetch(ticket, folder.join("to")).wait_for_offer()).await.unwrap();
            until_then.await;
            drop(incoming);
        }
        4 => {
            let builder = receiving.listen(folder.join("to")).bind_to(LOOPBACK);
            let listener =
                within(builder.accept_filter(AcceptFilter::AnyPeer).start()).await.unwrap();
            let added = sending.contacts().change(|book| -> Result<_, wraith::state::StateError> {
                book.add(&"bob".parse().unwrap(), receiving.id())?;
                book.set_addresses(receiving.id(), &[listener.address().into()]);
                Ok(book.with(receiving.id()).unwrap().clone())
            });
            let offer =
                within(sending.offer(film.as_path()).to_contact(added.unwrap()).start()).await;
            until_then.await;
            drop(listener);
            drop(offer);
        }
        _ => {
            let service = sending.serve().start().await.unwrap();
            let connection =
                within(receiving.connect(service.ticket().unwrap().clone()).open()).await.unwrap();
            let accepted = tokio::time::timeout(moment, service.accept()).await;
            drop((service, connection, accepted));
        }
    }
}

#[test]
fn nothing_keeps_running_whenever_it_was_dropped() {
    alone_in_a_process("dropping::nothing_keeps_running_whenever_it_was_dropped", || {
        let folder = tempfile::tempdir().unwrap();
        file(&folder.path().join("film"), 1, 20_000_000);
        let runtime = Runtime::new().unwrap();
        runtime.block_on(async {
            for round in 0..48_u64 {
                // From at once to the middle of the transfer, at different moments for each kind.
                let moment = Duration::from_micros((round * round * 37) % 60_000);
                begin_and_drop(round % 6, folder.path(), moment).await;
                let _ = fs::remove_dir_all(folder.path().join("to"));
            }
            // A task that ends a thread ends after the thread.
            let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
            let gone = until(|| threads().is_empty() && tasks() == 0);
            let gone = tokio::time::timeout(Duration::from_secs(10), gone).await;
            assert!(gone.is_ok(), "{:?} and {} tasks are left", threads(), tasks());
        });
    });
}

#[test]
fn handles_can_be_dropped_outside_of_any_runtime() {
    let folder = tempfile::tempdir().unwrap();
    file(&folder.path().join("film"), 1, 1000);
    let runtime = Runtime::new().unwrap();
    let handles = runtime.block_on(async {
        let (offer, ticket) = offered(&node(), folder.path().join("film")).await;
        let incoming =
            within(node().fetch(ticket.clone(), folder.path().join("to")).wait_for_offer())
                .await
                .unwrap();
        let asking = node().fetch(ticket, folder.path().join("to")).request_offer();
        let listener =
            within(node().listen(folder.path()).bind_to(LOOPBACK).start()).await.unwrap();
        let service = node().serve().start().await.unwrap();
        let connection =
            within(node().connect(service.ticket().unwrap().clone()).open()).await.unwrap();
        let accepted = within(service.accept()).await.unwrap();
        (offer, incoming, asking, listener, service, connection, accepted)
    });
    drop(handles);
}
