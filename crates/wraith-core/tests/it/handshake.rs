//! The start of a connection, and silence towards strangers.

use std::time::Duration;

use bytes::Bytes;
use wraith_core::{
    AccessKey, CloseReason, DoorId, Endpoint, Event, PathAddr, Time, TransportConfig,
};
use wraith_crypto::identity::SecretIdentity;

use crate::pair::{Pair, ip, moves, transfer};

/// Returns the initiator's round trip when it is connected, before any sample of a packet.
fn first_rtt(pair: &mut Pair) -> Duration {
    pair.connect();
    pair.run_until(|p| p.handle(0).is_some());
    let handle = pair.handle(0).unwrap();
    pair.sides[0].endpoint.connection(handle).unwrap().stats().rtt
}

#[test]
fn a_peer_that_comes_late_is_not_taken_for_one_that_is_far() {
    let mut pair = Pair::new(TransportConfig::default());
    // The first five H1s are lost. The sixth is answered at once, nearly five seconds later.
    pair.drop = Box::new(|n| n <= 10);
    let rtt = first_rtt(&mut pair);
    assert!(pair.now > Time::ZERO + Duration::from_secs(4));
    assert_eq!(rtt, Duration::from_millis(100), "what is assumed of any path");
}

#[test]
fn a_far_peer_is_known_to_be_far_although_h1_was_repeated() {
    for delay in [100, 300].map(Duration::from_millis) {
        let mut pair = Pair::new(TransportConfig::default());
        pair.delay = delay;
        assert_eq!(first_rtt(&mut pair), 2 * delay);
    }
}

#[test]
fn the_first_byte_of_an_application_leaves_one_round_trip_after_dialling() {
    // The responder's first byte leaves half a round trip later, after it has authenticated the
    // initiator.
    for (from, one_ways) in [(0, 3), (1, 4)] {
        let mut pair = Pair::new(TransportConfig::default());
        pair.connect();
        let mut sent = false;
        pair.run_until(|pair| {
            for side in &mut pair.sides {
                side.events.extend(std::iter::from_fn(|| side.endpoint.poll_event()));
            }
            if let Some(handle) = pair.handle(from).filter(|_| !sent) {
                let connection = pair.sides[from].endpoint.connection(handle).unwrap();
                sent = connection.send_datagram(Bytes::from_static(b"first"));
                assert!(sent);
            }
            let first = Event::Datagram(Bytes::from_static(b"first"));
            pair.sides[1 - from].events.iter().any(|(_, event)| *event == first)
        });
        assert_eq!(pair.now.since(Time::ZERO), one_ways * pair.delay);
    }
}

#[test]
fn each_lost_handshake_datagram_is_repeated() {
    for lost in 1..=8 {
        let mut pair = Pair::new(TransportConfig::default());
        pair.drop = Box::new(move |n| n == lost);
        transfer(&mut pair, 0, 10_000);
    }
}

#[test]
fn a_peer_that_never_answers_ends_the_attempt() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.drop = Box::new(|_| true);
    pair.connect();
    pair.run_until(|p| p.sides[0].endpoint.is_drained());
    let closed = &pair.sides[0].events.last().unwrap().1;
    assert_eq!(*closed, Event::Closed(CloseReason::HandshakeTimeout));
    assert_eq!(pair.now.since(Time::ZERO), Duration::from_secs(10));
}

#[test]
fn strangers_get_silence() {
    let mut pair = Pair::new(TransportConfig::default());
    let from = ip([127, 0, 0, 9], 9);
    let mut buf = vec![0; 65536];
    for len in 0..1500 {
        let mut garbage: Vec<u8> = (0..len).map(|i| (i * 7 + len) as u8).collect();
        let endpoint = &mut pair.sides[1].endpoint;
        endpoint.handle_datagram(pair.now, from, None, &mut garbage);
        assert!(endpoint.poll_transmit(pair.now, &mut buf).is_none());
        assert!(endpoint.poll_event().is_none() && endpoint.poll_timeout().is_none());
    }
    assert_eq!(pair.sides[1].endpoint.datagrams_dropped(), 1500);
}

#[test]
fn the_node_id_alone_is_answered_by_nothing() {
    let mut pair = Pair::new(TransportConfig::default());
    let (remote, peer) = (pair.sides[1].address, SecretIdentity::from_seed([2; 32]).node_id());
    let invited = AccessKey::of_ticket(&[7; 16], peer);
    pair.sides[1]
        .endpoint
        .set_access_keys(DoorId::FIRST, vec![invited.clone(), AccessKey::of_pair(&[8; 32], peer)]);
    let other = AccessKey::of_ticket(&[8; 16], peer);
    for (access_key, answered) in [(AccessKey::public(peer), 0), (other, 0), (invited, 2)] {
        let [dialling, responder] = &mut pair.sides;
        dialling.endpoint.connect(pair.now, remote, peer, &access_key).unwrap();
        let mut buf = vec![0; 65536];
        while let Some(sent) = dialling.endpoint.poll_transmit(pair.now, &mut buf) {
            let (from, datagram) = (dialling.address, &mut buf[..sent.len]);
            responder.endpoint.handle_datagram(pair.now, from, None, datagram);
        }
        let next = || responder.endpoint.poll_transmit(pair.now, &mut buf);
        assert_eq!(std::iter::from_fn(next).count(), answered);
    }
}

#[test]
fn a_replayed_h1_from_elsewhere_gets_silence() {
    for [here, elsewhere] in moves() {
        let mut pair = Pair::new(TransportConfig::default());
        pair.connect();
        let mut buf = vec![0; 65536];
        let mut said = |endpoint: &mut Endpoint, now| {
            let next =
                || endpoint.poll_transmit(now, &mut buf).map(|t| (t.to, buf[..t.len].to_vec()));
            std::iter::from_fn(next).collect::<Vec<_>>()
        };
        let h1 = said(&mut pair.sides[0].endpoint, pair.now);
        let mut answers = Vec::new();
        for (from, answered) in [(here, true), (here, true), (elsewhere, false)] {
            let endpoint = &mut pair.sides[1].endpoint;
            for (_, datagram) in &h1 {
                endpoint.handle_datagram(pair.now, from, None, &mut datagram.clone());
            }
            let mut answer = said(endpoint, pair.now);
            assert!(answer.iter().all(|(to, _)| *to == from));
            assert_eq!(answer.len(), if answered { 2 } else { 0 });
            answer.sort_by_key(|(_, datagram)| datagram.clone());
            answers.push(answer);
        }
        assert_eq!(answers[0], answers[1], "an exact repeat gets the identical H2");
        let len = |datagrams: &[(PathAddr, Vec<u8>)]| {
            datagrams.iter().map(|(_, d)| d.len()).sum::<usize>()
        };
        assert!(len(&answers[0]) <= len(&h1), "H2 is never longer than H1");
    }
}

#[test]
fn a_peer_off_the_allowlist_gets_no_answer_to_h3() {
    let mut pair = Pair::new(TransportConfig::default());
    let other = SecretIdentity::from_seed([9; 32]).node_id();
    pair.sides[1].endpoint.set_admitted(DoorId::FIRST, Some([other].into()));
    pair.connect();
    pair.run_until(|p| {
        p.sides[0].events.iter().any(|(_, event)| matches!(event, Event::Closed(_)))
    });
    // The responder sends H2 before it can identify the initiator, and nothing after that.
    let events: Vec<_> = pair.sides[0].events.iter().map(|(_, event)| event.clone()).collect();
    let observed = Event::ObservedAddress(pair.sides[0].address.ip().unwrap());
    let end = Event::Closed(CloseReason::IdleTimeout);
    assert_eq!(events, [Event::Connected, observed, end]);
    assert!(pair.sides[1].events.is_empty() && pair.sides[1].endpoint.is_drained());

    let initiator = SecretIdentity::from_seed([1; 32]).node_id();
    pair.sides[1].endpoint.set_admitted(DoorId::FIRST, Some([other, initiator].into()));
    pair.sides[0].events.clear();
    transfer(&mut pair, 0, 100_000);
}
