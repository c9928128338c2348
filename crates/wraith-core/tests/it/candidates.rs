//! Candidate addresses that the two sides exchange, and their exported secret.

use std::net::SocketAddr;

use wraith_core::{Event, TransportConfig};

use crate::pair::Pair;

fn connected() -> Pair {
    Pair::connected(TransportConfig::default())
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

fn set(pair: &mut Pair, side: usize, addresses: &[SocketAddr]) {
    let handle = pair.handle(side).unwrap();
    let connection = pair.sides[side].endpoint.connection(handle).unwrap();
    connection.set_candidates(addresses.iter().copied());
}

/// Returns the lists reported to side `index`.
fn told(pair: &Pair, index: usize) -> Vec<Vec<SocketAddr>> {
    pair.events_of(index, |event| match event {
        Event::PeerCandidates(addresses) => Some(addresses.clone()),
        _ => None,
    })
}

#[test]
fn each_side_learns_the_newest_list_of_the_other_although_packets_are_lost() {
    for lost in 3..15 {
        let mut pair = connected();
        let mut sent = 0;
        pair.drop = Box::new(move |_| {
            sent += 1;
            sent == lost - 2
        });
        for side in [0, 1] {
            set(&mut pair, side, &[address(1), address(2)]);
        }
        set(&mut pair, 0, &[address(3)]);
        pair.run_until(|p| [0, 1].iter().all(|side| !told(p, *side).is_empty()));
        assert_eq!(told(&pair, 0), [[address(1), address(2)]]);
        assert_eq!(told(&pair, 1), [[address(3)]]);
        let handle = pair.handle(1).unwrap();
        let connection = pair.sides[1].endpoint.connection(handle).unwrap();
        assert_eq!(connection.peer_candidates(), [address(3)]);
    }
}

#[test]
fn at_most_sixteen_valid_candidates_are_sent() {
    let mut pair = connected();
    let nobody = ["0.0.0.0:1", "224.0.0.1:1", "255.255.255.255:1", "192.0.2.1:0", "[ff02::1]:1"];
    let mut list: Vec<SocketAddr> = nobody.iter().map(|text| text.parse().unwrap()).collect();
    list.extend((1..=100).map(address));
    set(&mut pair, 0, &list);
    pair.run_until(|p| !told(p, 1).is_empty());
    let expected: Vec<_> = (1..=11).map(address).collect();
    assert_eq!(told(&pair, 1), [expected]);
}

#[test]
fn a_candidate_list_in_every_packet_causes_one_event_and_no_close() {
    let mut pair = connected();
    let (now, handle) = (pair.now, pair.handle(0).unwrap());
    let mut buf = vec![0; 65536];
    for port in 1..2000 {
        let connection = pair.sides[0].endpoint.connection(handle).unwrap();
        connection.set_candidates([address(port)]);
        let from = pair.sides[0].address;
        while let Some(transmit) = pair.sides[0].endpoint.poll_transmit(now, &mut buf) {
            let datagram = &mut buf[..transmit.len];
            pair.sides[1].endpoint.handle_datagram(now, from, None, datagram);
        }
    }
    pair.run_until(|p| !told(p, 1).is_empty());
    assert_eq!(told(&pair, 1), [[address(1999)]]);
}

#[test]
fn both_sides_export_the_same_secret_for_each_context_and_other_connections_another() {
    let secret = |pair: &mut Pair, side: usize, context: &[u8]| {
        let handle = pair.handle(side).unwrap();
        let connection = pair.sides[side].endpoint.connection(handle).unwrap();
        connection.export_secret(context).unwrap()
    };
    let mut pair = connected();
    let first = secret(&mut pair, 0, b"punch 1");
    assert_eq!(first, secret(&mut pair, 1, b"punch 1"));
    assert_ne!(first, secret(&mut pair, 1, b"punch 2"));
    let mut other = Pair::new(TransportConfig::default());
    // Other ephemeral keys: random numbers were drawn before.
    other.connect();
    let second = other.connect();
    other.run_until(|p| {
        p.sides[0].events.iter().any(|(h, e)| *h == second && *e == Event::Connected)
    });
    let connection = other.sides[0].endpoint.connection(second).unwrap();
    assert_ne!(connection.export_secret(b"punch 1"), Some(first));
}
