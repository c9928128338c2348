//! Migration of connections and hole punching, with real sockets on loopback.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use wraith_core::punch::{PeerStart, Reflector};
use wraith_transport::mover::SocketPool;
use wraith_transport::{
    Addr, CloseReason, Config, Endpoint, MigrationError, ObserveError, PathEvent, PortGuessing,
    PunchError, PunchEvent, Role,
};

use crate::support::{ConnectedPair, Pattern, V4, connect, endpoint, pair, run};

const LEN: u64 = 32 << 20;
const PIECE: usize = 256 * 1024;
const SECRET: [u8; 32] = [7; 32];

/// Forwards datagrams between the first sender and `to`, until an empty datagram stops it.
fn forward(to: SocketAddr) -> SocketAddr {
    let near = UdpSocket::bind((V4, 0)).unwrap();
    let address = near.local_addr().unwrap();
    let far = UdpSocket::bind((V4, 0)).unwrap();
    let (near_back, far_back) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    let (tell, told) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let mut buf = [0; 65_536];
        let mut tell = Some(tell);
        while let Ok((len, from)) = near.recv_from(&mut buf) {
            if let Some(tell) = tell.take() {
                let _ = tell.send(from);
            }
            let _ = far.send_to(&buf[..len], to);
        }
    });
    thread::spawn(move || {
        let client = told.recv().unwrap();
        let mut buf = [0; 65_536];
        while let Ok((len, _)) = far_back.recv_from(&mut buf) {
            let _ = near_back.send_to(&buf[..len], client);
        }
    });
    address
}

#[test]
fn declaring_a_path_dead_ends_the_connection_at_once() {
    let pair = pair(V4);
    pair.client.path().declare_dead();
    assert_eq!(run(pair.client.closed()), CloseReason::IdleTimeout);
}

#[test]
fn a_connection_migrates_from_a_forwarder_to_the_peer_during_a_stream() {
    let (client_endpoint, server_endpoint) = (endpoint(1, V4), endpoint(2, V4));
    let direct = server_endpoint.local_addr();
    let by = forward(direct);
    let (client, server) = connect(&client_endpoint, &server_endpoint, by);
    assert_eq!(client.remote(), by);
    let pattern = Pattern::new(3);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (_send, mut recv) = run(server.accept_stream()).unwrap();
            assert_eq!(run(pattern.verify(&mut recv)), LEN);
        });
        let (mut send, _recv) = run(client.open_stream()).unwrap();
        run(pattern.write(&mut send, LEN / 2)).unwrap();
        let mut events = server.path().events();
        run(client.path().migrate_to(direct)).unwrap();
        assert_eq!(client.remote(), direct);
        for offset in (LEN / 2..LEN).step_by(PIECE) {
            run(send.write_all(&pattern.slice(offset, PIECE))).unwrap();
        }
        send.finish().unwrap();
        run(send.acked()).unwrap();
        let ours = Addr::from(client_endpoint.local_addr());
        while run(events.next()).unwrap() != PathEvent::Changed(Some(ours.clone())) {}
    });
    // It is on this path already.
    run(client.path().migrate_to(direct)).unwrap();
}

#[test]
fn a_migration_to_a_dead_address_fails_and_changes_nothing() {
    // All four handles are kept: a connection closes with its last handle, and a closed connection
    // does not wait for a move.
    let pair = pair(V4);
    let client = &pair.client;
    let silent = UdpSocket::bind((V4, 0)).unwrap();
    let elsewhere = silent.local_addr().unwrap();
    // Another move replaces it, so the test does not wait for the first to time out.
    let first = async { client.path().migrate_to(elsewhere).await };
    let mut first = Box::pin(first);
    let polled =
        std::future::poll_fn(|cx| std::task::Poll::Ready(first.as_mut().poll(cx).is_ready()));
    assert!(!run(polled));
    let unserved = Addr::Custom { kind: 1, bytes: [1].into() };
    assert_eq!(run(client.path().migrate_to(unserved)), Err(MigrationError::NoAnswer));
    assert_eq!(client.remote(), pair.server_endpoint.local_addr());
}

#[test]
fn candidates_and_exported_secrets_reach_the_peer() {
    let ConnectedPair { client, server, .. } = pair(V4);
    let mut events = server.path().events();
    let candidates: Vec<SocketAddr> =
        vec!["192.0.2.1:5".parse().unwrap(), "[2001:db8::1]:6".parse().unwrap()];
    client.path().set_candidates(candidates.clone());
    while run(events.next()).unwrap() != PathEvent::Candidates(candidates.clone()) {}
    assert_eq!(server.path().peer_candidates(), candidates);
    assert_eq!(client.path().export_secret(b"x"), server.path().export_secret(b"x"));
    assert_ne!(client.path().export_secret(b"x"), server.path().export_secret(b"y"));
    client.close(0x100, "");
    drop(client);
    assert!(
        run(async {
            loop {
                if let Err(reason) = events.next().await {
                    break reason;
                }
            }
        })
        .to_string()
        .contains("closed")
    );
}

#[test]
fn a_connection_migrates_after_port_guessing_and_unused_sockets_are_closed() {
    let sockets = SocketPool::new().unwrap();
    let mut config = Config::new(crate::support::config(1)).bind((V4, 0));
    config.movers.push(Arc::new(sockets.clone()));
    let (client_endpoint, server_endpoint) = (Endpoint::bind(config).unwrap(), endpoint(2, V4));
    let server_at = server_endpoint.local_addr();
    let by = forward(server_at);
    let (client, server) = connect(&client_endpoint, &server_endpoint, by);
    let SocketAddr::V4(to) = server_at else { panic!("IPv4 was asked for") };
    let many = PortGuessing::Sockets(sockets.open(64, to));
    let mut from_many = client_endpoint.punch_by_port_guessing(SECRET, Role::Initiator, many);
    let local = std::net::Ipv4Addr::LOCALHOST;
    let mut to_many =
        server_endpoint.punch_by_port_guessing(SECRET, Role::Responder, PortGuessing::Ports(local));
    // Without NATs every socket gets through; the nearest is chosen.
    let best = run(to_many.best()).unwrap().expect("a pair is proved");
    assert_eq!(run(from_many.best()), Ok(None), "its side has no IP address for the pair");
    assert_ne!(best, client_endpoint.local_addr());
    let mut events = client.path().events();
    run(server.path().migrate_to(best)).unwrap();
    loop {
        if let PathEvent::Changed(Some(addr)) = run(events.next()).unwrap() {
            assert_eq!(SocketPool::remote(&addr), Some(to));
            break;
        }
    }
    let (pattern, begun) = (Pattern::new(5), Instant::now());
    thread::scope(|scope| {
        scope.spawn(|| {
            let (_send, mut recv) = run(server.accept_stream()).unwrap();
            assert_eq!(run(pattern.verify(&mut recv)), LEN);
        });
        let (mut send, _recv) = run(client.open_stream()).unwrap();
        run(pattern.write(&mut send, LEN)).unwrap();
        send.finish().unwrap();
        run(send.acked()).unwrap();
    });
    assert_eq!(server.remote(), best);
    // The socket that carries the connection received datagrams meanwhile; the other sockets
    // received no datagrams after the punch.
    assert!((1..64).contains(&sockets.close_silent(begun.elapsed())));
}

fn address(endpoint: &Endpoint) -> SocketAddr {
    endpoint.local_addr()
}

#[test]
fn two_endpoints_punch_and_then_connect_there() {
    let (one, other) = (endpoint(1, V4), endpoint(2, V4));
    let (a, b) = (address(&one), address(&other));
    let nobody: SocketAddr = "192.0.2.77:9".parse().unwrap();
    let mut punch = one.punch(SECRET, Role::Initiator, PeerStart::Now, [nobody, b]);
    let mut back = other.punch(SECRET, Role::Responder, PeerStart::Now, []);
    assert_eq!(run(punch.best()), Ok(Some(b)));
    assert_eq!(run(punch.next()), Ok(None));
    let mut seen = Vec::new();
    while let Some(event) = run(back.next()).unwrap() {
        seen.push(event);
    }
    assert!(seen.contains(&PunchEvent::Observed(b)), "{seen:?}");
    assert!(matches!(seen.last(), Some(PunchEvent::Ended { best, .. }) if *best == Some(a)));
    run(one.connect([b], crate::support::node_id(2), &crate::support::access_key(2))).unwrap();
}

#[test]
fn a_reflector_reports_the_observed_address_and_an_exchange_gets_one_reply() {
    let one = endpoint(1, V4);
    let socket = UdpSocket::bind((V4, 0)).unwrap();
    let at = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut rng = <rand_chacha::ChaCha20Rng as rand_core::SeedableRng>::from_seed([1; 32]);
        let reflector = Reflector::new(&SECRET);
        let mut buf = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buf) {
            let answer = reflector.answer(from, &buf[..len], &mut rng);
            let answer = answer.map(|answer| answer.packet);
            let answer = answer.unwrap_or_else(|| buf[..len].iter().rev().copied().collect());
            socket.send_to(&answer, from).unwrap();
        }
    });
    assert_eq!(run(one.observe(SECRET, at)), Ok(address(&one)));
    assert_eq!(
        run(one.exchange(at, b"abc-abc-abc-abc-abc-abc-abc-abc-abc-abd")).unwrap()[..4],
        *b"dba-"
    );
    let bad = SocketAddr::new(V4, 0);
    assert_eq!(run(one.observe(SECRET, bad)), Err(ObserveError::Refused(PunchError::NotATarget)));
    one.start_close();
    run(one.closed());
    assert_eq!(run(one.observe(SECRET, at)), Err(ObserveError::EndpointClosed));
}

#[test]
fn closing_the_endpoint_wakes_waiting_punches() {
    let one = endpoint(1, V4);
    let silent = UdpSocket::bind((V4, 0)).unwrap();
    let at = silent.local_addr().unwrap();
    let mut punch = one.punch(SECRET, Role::Initiator, PeerStart::Now, [at]);
    // Its first probe shows that the punch runs.
    silent.recv_from(&mut [0; 2048]).unwrap();
    one.close();
    assert_eq!(run(punch.best()), Ok(None));
}
