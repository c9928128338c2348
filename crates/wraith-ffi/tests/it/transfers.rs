//! Transfers of files and messages between two nodes of this process, through the exported objects.

use std::sync::Arc;
use std::time::Duration;

use wraith_ffi::{
    AcceptFilter, AcceptOptions, Contact, Content, Event, FetchOptions, Incoming, Node, Offer,
    OfferOptions, Recipient, Target, WraithError,
};

use crate::support::{node, within};

async fn offered(node: &Node, what: Content) -> (Arc<Offer>, String) {
    let offer = node.offer(what, Recipient::Ticket, OfferOptions::default());
    let offer = within(offer).await.unwrap();
    let ticket = offer.ticket().unwrap();
    (offer, ticket)
}

async fn asked(ticket: &str, into: Target) -> Result<Arc<Incoming>, WraithError> {
    let timeout = Some(Duration::from_secs(2));
    within(node().fetch(ticket.into(), into, FetchOptions { timeout, ..FetchOptions::default() }))
        .await
}

fn message(text: &str) -> Content {
    Content::Bytes { name: "message".into(), bytes: text.into() }
}

const MEMORY: Target = Target::Memory { bytes_max: 1000 };

#[tokio::test]
async fn a_file_arrives_intact_and_both_sides_get_the_final_event() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("film.mov"), folder.path().join("in"));
    let content: Vec<u8> = (0..3_000_000_u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    std::fs::write(&from, &content).unwrap();
    let paths = vec![from.to_str().unwrap().to_owned()];
    let (offer, ticket) = offered(&node(), Content::Paths { paths }).await;
    let incoming = asked(&ticket, Target::Folder { path: to.to_str().unwrap().into() }).await;
    let incoming = incoming.unwrap();
    assert_eq!((incoming.offer().files, incoming.offer().bytes), (1, 3_000_000));
    assert!(!to.exists(), "nothing is written before there is a yes");
    let transfer = incoming.accept(AcceptOptions::default()).unwrap();
    let (received, sent) = (within(transfer.finished()).await, within(offer.finished()).await);
    assert_eq!(std::fs::read(to.join("film.mov")).unwrap(), content);
    assert_eq!((received.unwrap().files, sent.unwrap().receivers), (1, 1));
    let mut events = Vec::new();
    while let Some(event) = within(transfer.next_event()).await {
        events.push(event);
    }
    assert!(matches!(events.last(), Some(Event::Done)), "{events:?}");
    assert!(transfer.progress().is_some_and(|progress| progress.bytes == 3_000_000));
}

#[tokio::test]
async fn a_message_arrives_in_memory_and_is_taken_once() {
    let (_offer, ticket) = offered(&node(), message("hello")).await;
    let transfer = asked(&ticket, MEMORY).await.unwrap().accept(AcceptOptions::default()).unwrap();
    assert_eq!(within(transfer.bytes()).await.unwrap(), b"hello");
    assert_eq!(within(transfer.bytes()).await.unwrap(), b"");
}

#[tokio::test]
async fn a_message_beyond_the_limit_fails() {
    let (_offer, ticket) = offered(&node(), message("hello")).await;
    let incoming = asked(&ticket, Target::Memory { bytes_max: 4 }).await.unwrap();
    let transfer = incoming.accept(AcceptOptions::default()).unwrap();
    assert!(within(transfer.bytes()).await.is_err());
}

#[tokio::test]
async fn an_offer_is_answered_once() {
    let (offer, ticket) = offered(&node(), message("hello")).await;
    let incoming = asked(&ticket, MEMORY).await.unwrap();
    within(incoming.refuse("no room".into())).await.unwrap();
    let second = incoming.accept(AcceptOptions::default());
    assert!(matches!(second, Err(WraithError::WrongState(_))));
    assert!(matches!(within(incoming.postpone()).await, Err(WraithError::WrongState(_))));
    let refused = within(offer.finished()).await;
    assert!(matches!(&refused, Err(WraithError::Refused(why)) if why.contains("no room")));
}

#[tokio::test]
async fn an_invalid_ticket_and_an_unreachable_sender_are_different_errors() {
    let bad = asked("hello", MEMORY).await;
    assert!(matches!(bad, Err(WraithError::InvalidInput(_))));
    let (offer, ticket) = offered(&node(), message("hello")).await;
    assert!(within(offer.cancel()).await);
    assert!(matches!(asked(&ticket, MEMORY).await, Err(WraithError::NotFound(_))));
}

#[tokio::test]
async fn a_contact_that_listens_is_sent_to_without_a_code() {
    let folder = tempfile::tempdir().unwrap();
    let (sender, receiver) = (node(), node());
    let to = folder.path().to_str().unwrap().to_owned();
    let listener = within(receiver.listen(to, AcceptFilter::AnyPeer)).await.unwrap();
    let contact = Contact {
        name: "anna".into(),
        node_id: receiver.node_id(),
        addresses: vec![listener.address()],
    };
    sender.add_contact(contact.clone()).unwrap();
    assert_eq!(sender.contacts(), Ok(vec![contact]));
    let to = Recipient::Contact { name: "anna".into() };
    let offer = within(sender.offer(message("hello"), to, OfferOptions::default()));
    let offer = offer.await.unwrap();
    let incoming = within(listener.next_offer()).await.unwrap();
    assert_eq!(incoming.sender(), sender.node_id());
    let transfer = incoming.accept(AcceptOptions::default()).unwrap();
    within(transfer.finished()).await.unwrap();
    within(offer.finished()).await.unwrap();
    assert_eq!(std::fs::read(folder.path().join("message")).unwrap(), b"hello");
    sender.remove_contact("anna".into()).unwrap();
    assert_eq!(sender.contacts(), Ok(Vec::new()));
}

#[tokio::test]
async fn stopping_the_listener_ends_a_waiting_call() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().to_str().unwrap().to_owned();
    let listener = within(node().listen(to, AcceptFilter::Contacts)).await.unwrap();
    let mut next = std::pin::pin!(listener.next_offer());
    let waiting = std::future::poll_fn(|cx| std::task::Poll::Ready(next.as_mut().poll(cx)));
    assert!(waiting.await.is_pending());
    listener.stop();
    assert!(within(next).await.is_none());
    assert!(within(listener.next_offer()).await.is_none());
}

#[tokio::test]
async fn a_node_that_is_shut_down_ends_its_work_and_starts_nothing() {
    let sender = node();
    let (offer, ticket) = offered(&sender, message("hello")).await;
    let incoming = asked(&ticket, MEMORY).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().to_str().unwrap().to_owned();
    let listener = within(sender.listen(to, AcceptFilter::Contacts)).await.unwrap();
    within(sender.shutdown()).await;
    assert!(matches!(within(offer.finished()).await, Err(WraithError::Cancelled(_))));
    assert!(within(listener.next_offer()).await.is_none());
    let transfer = incoming.accept(AcceptOptions::default()).unwrap();
    assert!(matches!(within(transfer.finished()).await, Err(WraithError::Cancelled(_))));
    let later = sender.offer(message("hello"), Recipient::Ticket, OfferOptions::default());
    assert!(matches!(within(later).await, Err(WraithError::Cancelled(_))));
}
