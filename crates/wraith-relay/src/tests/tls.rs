//! The TCP port against clients that speak another protocol, send nothing or too much, or use
//! resources of other clients.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::raw::{RawClient, Relay, tls_stream, within};
use crate::frame::{ClientFrame, Refusal, ServerFrame};
use crate::proof::resumption;
use crate::server::Timeouts;

/// Starts a relay with short timeouts.
async fn impatient() -> Relay {
    let short = Duration::from_millis(50);
    Relay::start(Timeouts { handshake: short, hello: short, idle: short }, |_| ()).await
}

/// Reports whether the relay closed the connection without sending a byte.
async fn is_ended(stream: &mut TcpStream) -> bool {
    let mut answer = Vec::new();
    let read = within(stream.read_to_end(&mut answer)).await;
    answer.is_empty()
        && read.map_or_else(|error| error.kind() == std::io::ErrorKind::ConnectionReset, |_| true)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_and_incomplete_handshakes_time_out() {
    let relay = impatient().await;
    // Nothing; only the head of a TLS record; an incomplete ClientHello.
    for bytes in [&[][..], &[0x16], &[0x16, 3, 1, 2, 0, 1, 0, 1]] {
        let mut stream = TcpStream::connect(relay.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        assert!(is_ended(&mut stream).await, "{bytes:?}");
    }
    // TLS without a HELLO or with half of one; then a session without any frame.
    for bytes in [&[][..], &[0, 30, 1, 1]] {
        let mut client = RawClient::connect(relay.address).await;
        client.send_bytes(bytes);
        assert!(client.receive().await.is_err());
    }
    let (mut client, _) = RawClient::welcome(relay.address).await;
    assert!(client.receive().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_its_answers_is_disconnected() {
    let relay = Relay::usual().await;
    let (mut client, _) = RawClient::welcome(relay.address).await;
    assert_eq!(relay.metrics.clients.get(), 1);
    let mut pings = Vec::new();
    (0..10_000).for_each(|number| ClientFrame::Ping(number).encode(&mut pings));
    within(async { while client.write_only(&pings).await.is_ok() {} }).await;
    assert_eq!(relay.metrics.clients.get(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_of_another_protocol_is_closed() {
    let relay = Relay::usual().await;
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"SSH-2.0-x\r\n", &[0xff; 100]] {
        let mut stream = TcpStream::connect(relay.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        assert!(is_ended(&mut stream).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_requests_are_answered_with_not_found() {
    let relay = Relay::usual().await;
    let mut stream = tls_stream(relay.address).await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    within(stream.read_to_end(&mut answer)).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 404 Not Found\r\n"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_oversized_and_misplaced_frames_end_the_connection() {
    let relay = Relay::usual().await;
    let mut hello = Vec::new();
    let proof = crate::frame::Proof::None;
    ClientFrame::Hello { version: 1, resume: None, proof }.encode(&mut hello);
    let bad: [&[u8]; 6] = [
        &[0, 0, 6],
        &[0, 1, 99],
        // Longer than any frame of its type.
        &[1, 0x91, 2],
        &[0xff, 0xff, 0],
        // A datagram that is too short.
        &[0, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        // A second HELLO.
        &hello,
    ];
    for bytes in bad {
        let (mut client, _) = RawClient::welcome(relay.address).await;
        client.send_bytes(bytes);
        assert!(client.receive().await.is_err(), "{bytes:?}");
    }
    // No other frame is allowed before HELLO.
    let mut client = RawClient::connect(relay.address).await;
    client.send(&ClientFrame::Ping(1));
    assert!(client.receive().await.is_err());
    let mut client = RawClient::connect(relay.address).await;
    client.send(&ClientFrame::Hello { version: 2, resume: None, proof });
    let answer = client.receive().await.unwrap();
    assert!(ServerFrame::decode(&answer) == Ok(Some(ServerFrame::Refused(Refusal::Version))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_cannot_use_ends_and_mailboxes_of_others() {
    let relay = Relay::usual().await;
    let (mut a, _) = RawClient::welcome(relay.address).await;
    let (mut b, _) = RawClient::welcome(relay.address).await;
    let (mut thief, _) = RawClient::welcome(relay.address).await;
    let mailbox = b.register([5; 32]).await;
    let (at_a, at_b) = (a.dial(mailbox).await, b.incoming().await);
    for id in [at_a, at_b, 0, 99] {
        thief.send(&ClientFrame::Datagram(id, &[1; 100]));
        thief.send(&ClientFrame::HangUp(id));
    }
    thief.send(&ClientFrame::Unregister(mailbox));
    thief.ping().await;
    // The pair and the mailbox are unchanged.
    a.send(&ClientFrame::Datagram(at_a, &[2; 100]));
    a.ping().await;
    let frame = b.receive().await.unwrap();
    assert!(ServerFrame::decode(&frame) == Ok(Some(ServerFrame::Datagram(at_b, &[2; 100]))));
    thief.dial(mailbox).await;
    // A client cannot dial its own mailbox.
    b.incoming().await;
    b.send(&ClientFrame::Dial { request: 3, mailbox });
    let answer = b.receive().await.unwrap();
    let refused = ServerFrame::NotDialled(3, Refusal::NoMailbox);
    assert!(ServerFrame::decode(&answer) == Ok(Some(refused)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_its_secret_resumes_a_session_and_the_older_connection_ends() {
    let relay = Relay::usual().await;
    let (mut first, welcome) = RawClient::welcome(relay.address).await;
    first.register([5; 32]).await;
    let mut thief = RawClient::connect(relay.address).await;
    let wrong = resumption(&[0; 32], &thief.exporter);
    assert!(!thief.hello(Some((welcome.session, wrong))).await.resumed);
    // A proof from another connection is invalid.
    let copied = resumption(&welcome.secret, &first.exporter);
    let mut thief = RawClient::connect(relay.address).await;
    assert!(!thief.hello(Some((welcome.session, copied))).await.resumed);
    first.ping().await;
    let mut second = RawClient::connect(relay.address).await;
    let proof = resumption(&welcome.secret, &second.exporter);
    let resumed = second.hello(Some((welcome.session, proof))).await;
    assert!(resumed.resumed && resumed.secret == welcome.secret);
    assert!(first.receive().await.is_err());
    second.ping().await;
    assert_eq!(relay.metrics.resumed.get(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dials_per_address_and_mailboxes_per_client_are_limited() {
    let relay = Relay::usual().await;
    let (mut client, _) = RawClient::welcome(relay.address).await;
    for i in 0..4 {
        client.register([i; 32]).await;
    }
    client.send(&ClientFrame::Register([4; 32]));
    let answer = client.receive().await.unwrap();
    assert!(matches!(
        ServerFrame::decode(&answer),
        Ok(Some(ServerFrame::NotRegistered(_, Refusal::Full)))
    ));
    let mut answers = Vec::new();
    for _ in 0..30 {
        client.send(&ClientFrame::Dial { request: 1, mailbox: [0; 16] });
        let answer = client.receive().await.unwrap();
        let Ok(Some(ServerFrame::NotDialled(1, why))) = ServerFrame::decode(&answer) else {
            panic!()
        };
        answers.push(why);
    }
    assert_eq!(answers[..20], [Refusal::NoMailbox; 20]);
    assert!(answers[20..].contains(&Refusal::TooOften));
}
