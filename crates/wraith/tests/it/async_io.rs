//! Payloads and targets that are asynchronous readers and writers.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wraith::{ErrorKind, Event, OnConflict, Payload, Target};

use crate::support::{Written, event, node, noise, offered, soon, within};

const BYTES: usize = 3_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_goes_from_a_socket_to_a_socket() {
    let bytes = noise(1, BYTES);
    let ((mut feed, input), (output, mut drain)) =
        (tokio::io::duplex(1000), tokio::io::duplex(70_000));
    let (offer, ticket) = offered(&node(), Payload::async_reader("film", None, input)).await;
    let transfer =
        node().fetch(ticket, Target::async_writer(output)).accept_all(OnConflict::Rename);
    let sent = bytes.clone();
    let feeding = tokio::spawn(async move {
        feed.write_all(&sent).await.unwrap();
        feed.shutdown().await.unwrap();
    });
    let mut got = Vec::new();
    within(drain.read_to_end(&mut got)).await.unwrap();
    assert!(got == bytes, "other bytes");
    within(feeding).await.unwrap();
    within(transfer.finished()).await.unwrap().complete().unwrap();
    within(offer.finished()).await.unwrap().complete().unwrap();
}

#[tokio::test]
async fn a_socket_that_is_closed_by_its_reader_is_a_stream_failure_on_both_sides() {
    let (output, drain) = tokio::io::duplex(1000);
    drop(drain);
    let content = Payload::reader("film", None, io::Cursor::new(noise(1, BYTES)));
    let (offer, ticket) = offered(&node(), content).await;
    let transfer =
        node().fetch(ticket, Target::async_writer(output)).accept_all(OnConflict::Rename);
    let error = within(transfer.finished()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stream, "{error}");
    let source = std::error::Error::source(&error).unwrap();
    let source = source.downcast_ref::<io::Error>().unwrap();
    assert_eq!(source.kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(soon(offer.finished()).await.unwrap_err().kind(), ErrorKind::Stream);
}

#[tokio::test]
async fn a_silent_socket_does_not_keep_an_offer_from_its_end() {
    let (_feed, input) = tokio::io::duplex(1000);
    let (offer, ticket) = offered(&node(), Payload::async_reader("film", None, input)).await;
    let target = Target::writer(Written::default());
    let transfer = node().fetch(ticket, target).accept_all(OnConflict::Rename);
    let mut events = offer.events();
    event(&mut events, |event| matches!(event, Event::Accepted).then_some(())).await;
    assert_eq!(soon(offer.cancel()).await.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(soon(transfer.finished()).await.unwrap_err().kind(), ErrorKind::Cancelled);
}
