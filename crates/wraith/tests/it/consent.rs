//! Offers that are inspected before the answer: nothing is written before a yes, and each answer
//! reaches the sender.

use std::fs;
use std::time::Duration;

use wraith::{
    AcceptOptions, ErrorKind, Event, Incoming, Node, Offer, OnConflict, PreviewOutcome, Role,
    Ticket, TransferError,
};

use crate::support::{LOOPBACK, Wire, event, file, film_offered, node, offered, soon, within};

/// An offer of one file in this folder, asked for but not answered. The sender does not wait for a
/// lost receiver.
async fn asked(folder: &tempfile::TempDir, receiving: &Node) -> (Offer, Ticket, Incoming) {
    file(&folder.path().join("film"), 1, 200_000);
    let builder = node().offer(folder.path().join("film")).by_ticket().bind_to(LOOPBACK);
    let offer = within(builder.reconnect(Duration::ZERO).start()).await.unwrap();
    let ticket = offer.ticket().unwrap().clone();
    let asking = receiving.fetch(ticket.clone(), folder.path().join("to")).wait_for_offer();
    (offer, ticket, within(asking).await.unwrap())
}

#[tokio::test]
async fn an_offer_is_shown_whole_and_nothing_is_written_before_a_yes() {
    let folder = tempfile::tempdir().unwrap();
    let (offer, ticket, incoming) = asked(&folder, &node()).await;
    assert_eq!(incoming.sender(), ticket.node_id());
    assert!(incoming.remote().ip().unwrap().ip().is_loopback());
    let info = incoming.offer();
    assert_eq!((info.name.as_str(), info.files, info.bytes), ("film", 1, 200_000));
    assert!(!info.is_stream);
    let preview = incoming.preview().unwrap();
    assert!(preview.complete);
    assert_eq!(preview.entries[0].outcome, PreviewOutcome::New);
    assert!(!folder.path().join("to").exists());
    let transfer = incoming.accept(AcceptOptions::on_conflict(OnConflict::Rename));
    within(transfer.finished()).await.unwrap().complete().unwrap();
    within(offer.finished()).await.unwrap();
    assert_eq!(fs::read(folder.path().join("to/film")).unwrap().len(), 200_000);
}

#[tokio::test]
async fn a_refusal_ends_both_sides_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (offer, _, incoming) = asked(&folder, &node()).await;
    let own = soon(incoming.refuse("not today")).await;
    assert_eq!(own.kind(), ErrorKind::Refused);
    let theirs = soon(offer.finished()).await.unwrap_err();
    assert_eq!(theirs.kind(), ErrorKind::Refused);
    assert_eq!(theirs.transfer(), Some(&TransferError::Refused { why: "not today".into() }));
    assert!(!folder.path().join("to").exists());
}

#[tokio::test]
async fn a_postponed_offer_stays_valid_for_the_same_ticket() {
    let folder = tempfile::tempdir().unwrap();
    let receiving = node();
    let (offer, ticket, incoming) = asked(&folder, &receiving).await;
    let mut events = offer.events();
    soon(incoming.postpone()).await;
    event(&mut events, |event| matches!(event, Event::OfferPostponed).then_some(())).await;
    // Dropping the offer has the same effect.
    let to = folder.path().join("to");
    drop(within(receiving.fetch(ticket.clone(), &to).wait_for_offer()).await.unwrap());
    soon(event(&mut events, |event| matches!(event, Event::OfferPostponed).then_some(()))).await;
    assert!(!to.exists());
    let transfer = receiving.fetch(ticket, &to).accept_all(OnConflict::Rename);
    within(transfer.finished()).await.unwrap().complete().unwrap();
    within(offer.finished()).await.unwrap().complete().unwrap();
}

#[tokio::test]
async fn cancelling_without_an_answer_notifies_the_sender() {
    let folder = tempfile::tempdir().unwrap();
    let (offer, _, incoming) = asked(&folder, &node()).await;
    assert_eq!(soon(incoming.cancel()).await.kind(), ErrorKind::Cancelled);
    let error = soon(offer.finished()).await.unwrap_err();
    assert_eq!(error.transfer(), Some(&TransferError::Cancelled { role: Role::Receiver }));
}

#[tokio::test]
async fn a_yes_counts_for_a_sender_that_comes_back_later() {
    let folder = tempfile::tempdir().unwrap();
    let state = tempfile::tempdir().unwrap();
    let sending = crate::support::node_in(state.path());
    file(&folder.path().join("film"), 1, 200_000);
    let (offer, ticket) = offered(&sending, folder.path().join("film")).await;
    let wire = Wire::to(ticket.addresses()[0]).await;
    let fetch = node().fetch(wire.ticket(&ticket), folder.path().join("to"));
    let incoming = within(fetch.wait_for_offer()).await.unwrap();
    wire.cut();
    within(offer.cancel()).await.unwrap_err();
    let transfer = incoming.accept(AcceptOptions::default());
    crate::support::free_again(&ticket).await;
    wire.mend();
    let (offer, again) = offered(&sending, folder.path().join("film")).await;
    assert_eq!(again, ticket);
    within(transfer.finished()).await.unwrap().complete().unwrap();
    within(offer.finished()).await.unwrap();
}

/// The sender has gone, and the receiver still searches for it. An answer that can never arrive
/// must not be waited for.
#[tokio::test]
async fn an_answer_after_the_sender_left_ends_the_fetch_at_once() {
    for refuse in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let (offer, _, incoming) = asked(&folder, &node()).await;
        let heard = std::sync::Arc::<crate::support::Heard>::default();
        incoming.observe(heard.clone());
        within(offer.cancel()).await.unwrap_err();
        if refuse {
            soon(incoming.refuse("too late")).await;
        } else {
            drop(incoming);
        }
        soon(crate::support::until(|| {
            heard.events().iter().any(|event| matches!(event, Event::Failed(_)))
        }))
        .await;
    }
}

#[tokio::test]
async fn a_question_is_gone_when_its_fetch_is_over() {
    let (folder, offer, ticket) = film_offered(200_000).await;
    let builder = node().fetch(ticket, folder.path().join("to")).reconnect(Duration::ZERO);
    let incoming = within(builder.wait_for_offer()).await.unwrap();
    drop(offer);
    soon(incoming.withdrawn()).await;
}

#[tokio::test]
async fn a_larger_offer_after_a_reconnect_is_not_covered_by_the_earlier_consent() {
    let folder = tempfile::tempdir().unwrap();
    let state = tempfile::tempdir().unwrap();
    let sending = crate::support::node_in(state.path());
    let (trip, to) = (folder.path().join("trip"), folder.path().join("to"));
    std::fs::create_dir(&trip).unwrap();
    file(&trip.join("film"), 1, 200_000);
    let (offer, ticket) = offered(&sending, trip.as_path()).await;
    let wire = Wire::to(ticket.addresses()[0]).await;
    let incoming = within(node().fetch(wire.ticket(&ticket), &to).wait_for_offer()).await.unwrap();
    let heard = std::sync::Arc::<crate::support::Heard>::default();
    incoming.observe(heard.clone());
    wire.cut();
    within(offer.cancel()).await.unwrap_err();
    let is_lost = |event: &Event| matches!(event, Event::ConnectionLost { .. });
    within(crate::support::until(|| heard.events().iter().any(is_lost))).await;
    let transfer = incoming.accept(AcceptOptions::default());
    file(&trip.join("more"), 2, 10);
    crate::support::free_again(&ticket).await;
    wire.mend();
    let (_offer, again) = offered(&sending, trip.as_path()).await;
    assert_eq!(again, ticket);
    let error = within(transfer.finished()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OfferChanged, "{error}");
    assert!(!to.exists(), "something was written");
}
