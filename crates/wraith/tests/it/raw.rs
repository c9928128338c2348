//! Raw connections: streams for tokio's I/O utilities, and datagrams. A dialler with a wrong ticket
//! gets no answer.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use wraith::{
    Capability, Cause, CloseReason, Connection, ErrorKind, Node, ReadError, ReadToEndError,
    SecretIdentity, Service, ServiceAddress, SharedStream, Ticket, WriteError,
};
use wraith_transport::{AccessKey, Config, Endpoint, EndpointConfig};

use crate::support::{LOOPBACK, carries, node, noise, nowhere, soon, until, within};

/// Returns both ends of a connection between two nodes.
async fn connected(serving: &Node, connecting: &Node) -> (Service, Connection, Connection) {
    let service = serving.serve().start().await.unwrap();
    let open = connecting.connect(service.ticket().unwrap().clone()).open();
    let (accepted, opened) = within(async { tokio::join!(service.accept(), open) }).await;
    (service, accepted.unwrap(), opened.unwrap())
}

#[tokio::test]
async fn streams_are_read_and_written_with_tokios_tools() {
    let (serving, connecting) = (node(), node());
    let (_service, accepted, opened) = connected(&serving, &connecting).await;
    assert_eq!((accepted.peer(), opened.peer()), (connecting.id(), serving.id()));
    let echo = tokio::spawn(async move {
        let (mut send, mut receive) = accepted.accept_stream().await.unwrap();
        let bytes = copy(&mut receive, &mut send).await.unwrap();
        send.shutdown().await.unwrap();
        // Wait until the other side has read everything: dropping a connection closes it.
        accepted.closed().await;
        bytes
    });
    let bytes = noise(1, 5_000_000);
    let (mut send, mut receive) = within(opened.open_stream()).await.unwrap();
    let sent = bytes.clone();
    let sending = tokio::spawn(async move {
        copy(&mut &sent[..], &mut send).await.unwrap();
        send.shutdown().await.unwrap();
    });
    let mut got = Vec::new();
    within(receive.read_to_end(&mut got)).await.unwrap();
    assert!(got == bytes, "other bytes");
    within(sending).await.unwrap();
    opened.close(0x100, "thanks");
    assert_eq!(within(echo).await.unwrap(), bytes.len() as u64);
}

#[tokio::test]
async fn datagrams_go_both_ways_and_each_side_hears_where_it_is() {
    let (_service, accepted, opened) = connected(&node(), &node()).await;
    for (from, to) in [(&accepted, &opened), (&opened, &accepted)] {
        within(until(|| from.max_datagram_len() >= 5)).await;
        let reading = to.read_datagram();
        let sending = async {
            // A datagram may be lost.
            loop {
                from.send_datagram(b"hello".as_slice().into()).unwrap();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let read = within(async {
            tokio::select! {
                read = reading => read,
                () = sending => unreachable!("it goes on for ever"),
            }
        });
        assert_eq!(&read.await.unwrap()[..], b"hello");
        within(until(|| from.observed_address().is_some())).await;
        let seen = from.observed_address().unwrap();
        assert_eq!(seen, to.remote().ip().unwrap(), "where the other side sees it");
    }
}

#[tokio::test]
async fn a_wrong_capability_gets_no_answer_and_disturbs_no_other_caller() {
    let service = node().serve().start().await.unwrap();
    let ticket = service.ticket().unwrap().clone();
    let other = Capability::from_bytes([7; Capability::LEN]);
    let wrong = Ticket::new(ticket.node_id(), other, ticket.reach().clone()).of_service();
    let mut accepting = tokio::spawn(async move { (service.accept().await, service) });
    let builder = node().connect(wrong).timeout(Duration::from_secs(1));
    let error = within(builder.open()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let connecting = node();
    let opened = within(connecting.connect(ticket).open()).await.unwrap();
    let (accepted, _service) = within(&mut accepting).await.unwrap();
    assert_eq!(accepted.unwrap().peer(), connecting.id());
    drop(opened);
}

#[tokio::test]
async fn another_key_is_reached_nowhere() {
    let service = node().serve().start().await.unwrap();
    let ticket = service.ticket().unwrap();
    let other = Ticket::new(node().id(), ticket.capability().clone(), ticket.reach().clone());
    let builder = node().connect(other.of_service()).timeout(Duration::from_secs(1));
    let error = within(builder.open()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(matches!(error.cause(), Some(Cause::Unreachable(_))), "{error:?}");
}

#[tokio::test]
async fn a_dropped_connection_is_closed_for_the_other_side_soon() {
    let (_service, accepted, opened) = connected(&node(), &node()).await;
    drop(opened);
    soon(accepted.closed()).await;
    let (_service, accepted, opened) = connected(&node(), &node()).await;
    drop(accepted);
    soon(opened.closed()).await;
}

#[tokio::test]
async fn a_dropped_service_keeps_its_connections_and_accepts_no_new_ones() {
    let (service, accepted, opened) = connected(&node(), &node()).await;
    let ticket = service.ticket().unwrap().clone();
    drop(service);
    carries(&opened, &accepted).await;
    // The socket is still open for the other connections and may answer, but serves no new one.
    let newcomer = node().connect(ticket).timeout(Duration::from_secs(1)).open();
    if let Ok(newcomer) = within(newcomer).await {
        soon(newcomer.closed()).await;
    }
}

#[tokio::test]
async fn several_callers_are_taken_in_one_after_the_other() {
    let service = node().serve().start().await.unwrap();
    let callers = [node(), node(), node()];
    let mut opened = Vec::new();
    for caller in &callers {
        opened
            .push(within(caller.connect(service.ticket().unwrap().clone()).open()).await.unwrap());
    }
    let mut peers = Vec::new();
    for _ in &callers {
        // Dropping the future loses no connection.
        let soonest = tokio::time::timeout(Duration::ZERO, service.accept()).await;
        if let Ok(accepted) = soonest {
            peers.push(accepted.unwrap().peer());
            continue;
        }
        peers.push(within(service.accept()).await.unwrap().peer());
    }
    for caller in &callers {
        assert!(peers.contains(&caller.id()));
    }
}

#[tokio::test]
async fn silent_strangers_do_not_block_callers() {
    let service = node().serve().bind_to(LOOPBACK).start().await.unwrap();
    let ticket = service.ticket().unwrap().clone();
    let accepting = tokio::spawn(async move { (service.accept().await, service) });
    let stranger = EndpointConfig::new(SecretIdentity::from_seed([3; 32]));
    let stranger = Endpoint::bind(Config::new(stranger).bind(LOOPBACK)).unwrap();
    let mut silent = Vec::new();
    // More than the limit of silent callers.
    for _ in 0..80 {
        let access_key = AccessKey::of_ticket(ticket.capability().as_bytes(), ticket.node_id());
        let connecting = stranger.connect(ticket.addresses(), ticket.node_id(), &access_key);
        silent.push(within(connecting).await.unwrap());
    }
    let connecting = node();
    let _opened = within(connecting.connect(ticket).open()).await.unwrap();
    let (accepted, _service) = within(accepting).await.unwrap();
    assert_eq!(accepted.unwrap().peer(), connecting.id());
    soon(silent[0].closed()).await;
}

#[tokio::test]
async fn a_service_that_is_started_again_keeps_its_ticket() {
    let identity = SecretIdentity::from_seed([3; 32]);
    let capability = Capability::from_bytes([7; Capability::LEN]);
    let start = async |address| {
        let node = nowhere().identity(identity.clone()).build().unwrap();
        let service = node.serve().capability(capability.clone()).bind_to(address).start();
        service.await.unwrap()
    };
    let first = start(LOOPBACK).await;
    let ticket = first.ticket().unwrap().clone();
    drop(first);
    let again = ticket.addresses()[0];
    within(until(|| std::net::UdpSocket::bind(again).is_ok())).await;
    let second = start(again).await;
    assert_eq!(second.ticket().unwrap().to_string(), ticket.to_string());
    let connecting = node();
    let open = connecting.connect(ticket).open();
    let (accepted, opened) = within(async { tokio::join!(second.accept(), open) }).await;
    assert_eq!(accepted.unwrap().peer(), connecting.id());
    drop(opened.unwrap());
}

/// Returns both ends of a stream on which the opening side has written `first`.
async fn streams(
    accepted: &Connection,
    opened: &Connection,
    first: &'static [u8],
) -> (SharedStream, SharedStream) {
    let one = SharedStream::new(within(opened.open_stream()).await.unwrap());
    within(one.write(first.into())).await.unwrap();
    (SharedStream::new(within(accepted.accept_stream()).await.unwrap()), one)
}

#[tokio::test]
async fn a_shared_stream_is_read_in_parts_and_to_its_end_within_a_limit() {
    let (_service, accepted, opened) = connected(&node(), &node()).await;
    let (reads, writes) = streams(&accepted, &opened, b"0123456789").await;
    assert_eq!(within(reads.read(4)).await.unwrap(), b"0123");
    assert_eq!(within(reads.read(0)).await.unwrap(), b"");
    // A call that ends early keeps the received bytes for the next one.
    let early = tokio::time::timeout(Duration::from_millis(50), reads.read_to_end(6)).await;
    assert!(early.is_err());
    within(writes.write(b"abc".as_slice().into())).await.unwrap();
    writes.finish().unwrap();
    within(writes.acked()).await.unwrap();
    let error = within(reads.read_to_end(8)).await.unwrap_err();
    assert_eq!(error, ReadToEndError::TooLong { max: 8 });
    assert_eq!(within(reads.read(1)).await.unwrap(), b"4");
    assert_eq!(within(reads.read_to_end(8)).await.unwrap(), b"56789abc");
    assert_eq!(within(reads.read(8)).await.unwrap(), b"");
    assert_eq!(writes.write(b"more".as_slice().into()).await, Err(WriteError::Finished));
}

/// Writes until the queue is full and the stream fails.
async fn fill(writes: &SharedStream) -> WriteError {
    loop {
        if let Err(error) = within(writes.write(vec![7; 1 << 20].into())).await {
            return error;
        }
    }
}

#[tokio::test]
async fn a_reset_and_a_stop_end_waiting_calls_at_both_sides() {
    let (_service, accepted, opened) = connected(&node(), &node()).await;
    let (reads, writes) = streams(&accepted, &opened, b"x").await;
    assert_eq!(within(reads.read(9)).await.unwrap(), b"x");
    let reading = async { within(reads.read(9)).await };
    let (read, ()) = tokio::join!(reading, async { writes.reset(0x123) });
    assert_eq!(read, Err(ReadError::Reset(0x123)));
    // A writer that fills the queue, and ends the wait itself; then a peer that does.
    let (reads, writes) = streams(&accepted, &opened, b"x").await;
    let stop = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        reads.stop(0x321);
    };
    assert_eq!(tokio::join!(fill(&writes), stop).0, WriteError::Stopped(0x321));
    assert_eq!(within(reads.read(9)).await, Err(ReadError::Stopped));
    let (reads, writes) = streams(&accepted, &opened, b"x").await;
    let reset = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        writes.reset(1);
    };
    assert_eq!(tokio::join!(fill(&writes), reset).0, WriteError::Finished);
    // A reader that stops itself while it waits.
    drop(reads);
    let (reads, _writes) = streams(&accepted, &opened, b"x").await;
    assert_eq!(within(reads.read(9)).await.unwrap(), b"x");
    let stop = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        reads.stop(1);
    };
    assert_eq!(tokio::join!(within(reads.read(9)), stop).0, Err(ReadError::Stopped));
}

#[tokio::test]
async fn the_end_of_a_connection_reaches_a_shared_stream_with_its_reason() {
    let (_service, accepted, opened) = connected(&node(), &node()).await;
    let (reads, writes) = streams(&accepted, &opened, b"x").await;
    assert_eq!(within(reads.read(9)).await.unwrap(), b"x");
    let close = async { accepted.close(0x155, "enough") };
    let (error, ()) = tokio::join!(within(writes.read(9)), close);
    let reason = CloseReason::Peer { code: 0x155, reason: "enough".to_owned() };
    assert_eq!(error, Err(ReadError::ConnectionLost(reason)));
    assert_eq!(within(reads.read(9)).await, Err(ReadError::ConnectionLost(CloseReason::Local)));
}

#[tokio::test]
async fn a_code_and_a_ticket_of_a_service_are_told_apart_by_their_text() {
    let service = within(node().serve().start()).await.unwrap();
    let ticket = service.ticket().unwrap().to_string();
    assert!(matches!(ticket.parse(), Ok(ServiceAddress::Ticket(_))));
    assert!(matches!("7-crater-lemon".parse(), Ok(ServiceAddress::Code(_))));
    let error = "hello".parse::<ServiceAddress>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}
