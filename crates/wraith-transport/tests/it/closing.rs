//! Ends of connections: reasons, dropped handles, and delivery after a close.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use crate::support::{Pattern, V4, access_key, dead_address, endpoint, node_id, pair, run};
use wraith_transport::{
    Bytes, CloseReason, ConnectError, ReadError, WriteError, block_on, block_on_timeout,
};

#[test]
fn the_peer_receives_close_code_and_reason() {
    let pair = pair(V4);
    pair.client.close(0x107, "enough");
    assert_eq!(run(pair.client.closed()), CloseReason::Local);
    let reason = run(pair.server.closed());
    assert_eq!(reason, CloseReason::Peer { code: 0x107, reason: "enough".into() });
    assert_eq!(pair.server.close_reason(), Some(reason));
}

#[test]
fn a_close_completes_all_pending_futures() {
    let pair = pair(V4);
    let (_send, mut recv) = run(pair.client.open_stream()).unwrap();
    let client = pair.client.clone();
    let waiters = [
        thread::spawn(move || {
            assert_eq!(run(client.accept_stream()).unwrap_err(), CloseReason::Local)
        }),
        thread::spawn(move || {
            let error = run(recv.read_chunk()).unwrap_err();
            assert_eq!(error, ReadError::ConnectionLost(CloseReason::Local));
        }),
    ];
    pair.client.close(0, "");
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    assert!(matches!(run(pair.server.accept_stream()), Err(CloseReason::Peer { .. })));
    assert!(matches!(run(pair.client.open_stream()), Err(CloseReason::Local)));
}

#[test]
fn a_sender_dropped_unfinished_resets_and_a_receiver_dropped_early_stops() {
    let pair = pair(V4);
    run(async {
        let (mut send, recv) = pair.client.open_stream().await.unwrap();
        send.write_all(b"first").await.unwrap();
        let (mut back, mut theirs) = pair.server.accept_stream().await.unwrap();
        let mut got = [0; 5];
        theirs.read_exact(&mut got).await.unwrap();
        drop(send);
        assert_eq!(theirs.read_chunk().await.unwrap_err(), ReadError::Reset(0));
        drop(recv);
        let error = loop {
            if let Err(error) = back.write_chunks([Bytes::from_static(&[0; 4096])]).await {
                break error;
            }
        };
        assert_eq!(error, WriteError::Stopped(0));
    });
}

#[test]
fn codes_of_reset_and_stop_arrive() {
    let pair = pair(V4);
    run(async {
        let (mut send, mut recv) = pair.client.open_stream().await.unwrap();
        send.write_all(b"x").await.unwrap();
        let (mut back, mut theirs) = pair.server.accept_stream().await.unwrap();
        theirs.read_exact(&mut [0]).await.unwrap();
        send.reset(0x123);
        assert_eq!(theirs.read_chunk().await.unwrap_err(), ReadError::Reset(0x123));
        assert_eq!(send.write_all(b"y").await.unwrap_err(), WriteError::Finished);
        recv.stop(0x456);
        assert_eq!(recv.read_chunk().await.unwrap_err(), ReadError::Stopped);
        assert_eq!(back.acked().await.unwrap_err(), WriteError::Stopped(0x456));
    });
}

#[test]
fn finished_streams_are_delivered_after_the_last_handle_is_dropped() {
    // More than the peer allows before it reads (2 MiB), less than this side holds beyond that (512
    // KiB).
    const LEN: u64 = (2 << 20) + (1 << 18);
    let pair = pair(V4);
    let server = pair.server.clone();
    let client = pair.client;
    let writer = thread::spawn(move || {
        run(async {
            let (mut send, _recv) = client.open_stream().await.unwrap();
            Pattern::new(5).write(&mut send, LEN).await.unwrap();
            send.finish().unwrap();
        });
    });
    run(async {
        let (_send, mut recv) = server.accept_stream().await.unwrap();
        writer.join().unwrap();
        assert_eq!(Pattern::new(5).verify(&mut recv).await, LEN);
    });
    assert!(matches!(run(pair.server.closed()), CloseReason::Peer { code: 0, .. }));
}

#[test]
fn acknowledged_bytes_can_be_read_after_the_peer_closed() {
    // More than the queue of the stream holds.
    const LEN: u64 = 2 << 20;
    let pair = pair(V4);
    run(async {
        let (mut send, _recv) = pair.client.open_stream().await.unwrap();
        Pattern::new(6).write(&mut send, LEN).await.unwrap();
        send.finish().unwrap();
        send.acked().await.unwrap();
    });
    pair.client.close(0, "");
    run(pair.server.closed());
    run(async {
        let (_send, mut recv) = pair.server.accept_stream().await.unwrap();
        assert_eq!(Pattern::new(6).verify(&mut recv).await, LEN);
        assert!(pair.server.accept_stream().await.is_err());
    });
}

#[test]
fn closing_the_endpoint_delivers_data_and_closes_all_connections() {
    let pair = pair(V4);
    let (mut send, _recv) = run(pair.client.open_stream()).unwrap();
    run(send.write_all(b"last words")).unwrap();
    send.finish().unwrap();
    pair.client_endpoint.close();
    run(send.acked()).unwrap();
    run(async {
        let (_send, mut recv) = pair.server.accept_stream().await.unwrap();
        let mut got = [0; 10];
        recv.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"last words");
    });
    assert!(matches!(run(pair.server.closed()), CloseReason::Peer { code: 0, .. }));
    run(pair.client_endpoint.closed());
    assert!(run(pair.client_endpoint.accept()).is_none());
    let address = pair.server_endpoint.local_addr();
    let error =
        run(pair.client_endpoint.connect(&[address], node_id(2), &access_key(2))).unwrap_err();
    assert!(matches!(error, ConnectError::EndpointClosed));
}

#[test]
fn an_endpoint_whose_peers_closed_has_nothing_to_wait_for() {
    let pair = pair(V4);
    pair.server.close(0, "");
    run(pair.client.closed());
    pair.client_endpoint.start_close();
    run(pair.client_endpoint.closed());
    pair.server_endpoint.close();
}

#[test]
fn dropping_endpoint_and_connection_closes_it_at_the_peer() {
    let pair = pair(V4);
    drop(pair.client_endpoint);
    // The connection works without its endpoint handle.
    run(async {
        let (mut send, _recv) = pair.client.open_stream().await.unwrap();
        send.write_all(b"still here").await.unwrap();
        send.finish().unwrap();
        send.acked().await.unwrap();
    });
    drop(pair.client);
    assert!(matches!(run(pair.server.closed()), CloseReason::Peer { code: 0, .. }));
}

#[test]
fn closing_wakes_pending_accepts() {
    let server = endpoint(2, V4);
    let other = server.clone();
    let waiter = thread::spawn(move || assert!(run(other.accept()).is_none()));
    server.close();
    waiter.join().unwrap();
}

#[test]
fn the_first_address_that_answers_wins() {
    let server = endpoint(2, V4);
    let client = endpoint(1, IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    let unreachable = SocketAddr::from(([255, 255, 255, 255], 1));
    let addresses = [unreachable, dead_address(), server.local_addr(), dead_address()];
    let connection = run(client.connect(&addresses, node_id(2), &access_key(2))).unwrap();
    assert_eq!(connection.remote(), server.local_addr());
    let accepted = run(server.accept()).unwrap();
    assert_eq!(accepted.peer(), node_id(1));
    // The other connections ended without a trace.
    assert!(block_on_timeout(server.accept(), Duration::from_millis(1)).is_none());
}

#[test]
fn unserved_addresses_fail_at_once() {
    let client = endpoint(1, V4);
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 9));
    let error = run(client.connect(&[v6, v6], node_id(2), &access_key(2))).unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable(_)), "{error}");
    let nowhere: [SocketAddr; 0] = [];
    assert!(matches!(
        run(client.connect(nowhere, node_id(2), &access_key(2))),
        Err(ConnectError::NoAddress)
    ));
}

#[test]
fn a_dropped_connect_leaves_the_endpoint_usable() {
    let client = endpoint(1, V4);
    let dead = dead_address();
    assert!(
        block_on_timeout(
            client.connect(&[dead], node_id(2), &access_key(2)),
            Duration::from_millis(5)
        )
        .is_none()
    );
    let server = endpoint(2, V4);
    run(client.connect(&[server.local_addr()], node_id(2), &access_key(2))).unwrap();
    client.close();
}

#[test]
fn a_dropped_read_loses_nothing() {
    let pair = pair(V4);
    block_on(async {
        let (mut send, _recv) = pair.client.open_stream().await.unwrap();
        send.write_all(b"a").await.unwrap();
        let (_send, mut recv) = pair.server.accept_stream().await.unwrap();
        recv.read_exact(&mut [0]).await.unwrap();
        assert!(block_on_timeout(recv.read_chunk(), Duration::from_millis(1)).is_none());
        send.write_all(b"b").await.unwrap();
        let mut got = [0];
        recv.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"b");
    });
}
