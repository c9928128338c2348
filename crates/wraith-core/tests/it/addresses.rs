//! Peers that migrate, and the reports of each side's own address.

use std::time::Duration;

use bytes::Bytes;
use wraith_core::{Event, PathAddr, TransportConfig};

use crate::pair::{DELAY, Pair, ip, moves, transfer, via};

/// Moves `mover` to address `to`. The other side follows once that address is validated.
fn follows(mover: usize, [from, to]: [PathAddr; 2]) {
    let mut pair = Pair::new(TransportConfig::default());
    pair.sides[mover].address = from;
    pair.connect();
    pair.run_until(|p| p.handle(0).is_some() && p.handle(1).is_some());
    pair.sides[mover].address = to;
    let handle = pair.handle(mover).unwrap();
    let connection = pair.sides[mover].endpoint.connection(handle).unwrap();
    let id = connection.open_stream().unwrap();
    connection.write(id, Bytes::from_static(b"hello")).unwrap();
    let other = 1 - mover;
    pair.run_until(|p| {
        p.sides[other].events.iter().any(|(_, e)| *e == Event::PathChanged { remote: to })
    });
    let handle = pair.handle(other).unwrap();
    assert_eq!(pair.sides[other].endpoint.connection(handle).unwrap().remote(), to);
}

#[test]
fn an_initiator_that_moves_is_followed() {
    moves().into_iter().for_each(|addresses| follows(0, addresses));
}

#[test]
fn a_responder_that_moves_is_followed_too() {
    moves().into_iter().for_each(|addresses| follows(1, addresses));
}

#[test]
fn a_peer_that_moves_from_a_short_path_to_a_long_one_is_followed() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.delay = Duration::from_micros(50);
    transfer(&mut pair, 0, 100_000);
    pair.delay = Duration::from_millis(150);
    let to = ip([127, 0, 0, 77], 7);
    pair.sides[0].address = to;
    pair.say_hello(0);
    let moved = pair.now;
    pair.run_until(|p| {
        p.now - moved > Duration::from_secs(20)
            || p.sides[1].events.iter().any(|(_, e)| *e == Event::PathChanged { remote: to })
    });
    assert!(pair.now - moved < Duration::from_secs(2), "{:?}", pair.now - moved);
}

#[test]
fn a_spoofed_address_is_not_followed_and_stays_within_the_amplification_limit() {
    for [here, spoofed] in moves() {
        let mut pair = Pair::connected_from(TransportConfig::default(), here);
        pair.say_hello(0);
        let now = pair.now;
        let initiator = &mut pair.sides[0].endpoint;
        let mut buf = vec![0; 65536];
        let len = initiator.poll_transmit(now, &mut buf).unwrap().len;
        // An on-path attacker takes the datagram and forwards it from another address. Nothing sent
        // to that address arrives.
        let responder = &mut pair.sides[1].endpoint;
        responder.handle_datagram(now, spoofed, None, &mut buf[..len]);
        let (mut now, mut sent) = (now, 0);
        let end = now + Duration::from_secs(20);
        while let Some(due) = responder.poll_timeout().filter(|due| *due <= end) {
            now = now.max(due);
            responder.handle_timeout(now);
            while let Some(transmit) = responder.poll_transmit(now, &mut buf) {
                sent += if transmit.to == spoofed { transmit.len } else { 0 };
            }
        }
        assert!(0 < sent && sent <= 3 * len, "{sent} bytes for {len}");
        let moved = |event: &Event| matches!(event, Event::PathChanged { .. });
        assert!(std::iter::from_fn(|| responder.poll_event()).all(|(_, event)| !moved(&event)));
    }
}

/// Relays the initiator's packets and its path response to the responder from `diverted`, so that
/// the responder moves there.
fn divert(pair: &mut Pair, diverted: PathAddr) {
    let mut buf = vec![0; 65536];
    let Pair { now, sides: [initiator, responder], .. } = pair;
    let moved = Event::PathChanged { remote: diverted };
    while !std::iter::from_fn(|| responder.endpoint.poll_event()).any(|(_, event)| event == moved) {
        while let Some(t) = responder.endpoint.poll_transmit(*now, &mut buf) {
            initiator.endpoint.handle_datagram(*now, responder.address, None, &mut buf[..t.len]);
        }
        *now += 2 * DELAY;
        while let Some(t) = initiator.endpoint.poll_transmit(*now, &mut buf) {
            responder.endpoint.handle_datagram(*now, diverted, None, &mut buf[..t.len]);
        }
    }
}

#[test]
fn a_relayed_peer_is_challenged_at_its_previous_address_and_found_there() {
    for [here, elsewhere] in moves() {
        let mut pair = Pair::connected_from(TransportConfig::default(), here);
        pair.say_hello(0);
        divert(&mut pair, elsewhere);
        let diverted = pair.now;
        // The attacker is gone, and packets to its address are lost.
        let back = Event::PathChanged { remote: here };
        pair.run_until(|p| p.sides[1].events.iter().any(|(_, event)| *event == back));
        // Two challenges and their responses, without a probe timeout. The event is polled when the
        // next datagram has arrived.
        assert!(pair.now - diverted <= 5 * DELAY, "{:?}", pair.now - diverted);
    }
}

/// Returns the observed addresses reported to side `index`.
fn observed(pair: &Pair, index: usize) -> Vec<PathAddr> {
    pair.events_of(index, |event| match event {
        Event::ObservedAddress(address) => Some(PathAddr::from(*address)),
        _ => None,
    })
}

#[test]
fn both_sides_get_their_observed_addresses_despite_loss() {
    // Every single datagram of the first dozen after the handshake.
    for lost in 3..15 {
        let mut pair = Pair::new(TransportConfig::default());
        pair.drop = Box::new(move |n| n == lost);
        pair.connect();
        pair.run_until(|p| p.handle(0).is_some());
        let handle = pair.handle(0).unwrap();
        let connection = pair.sides[0].endpoint.connection(handle).unwrap();
        let id = connection.open_stream().unwrap();
        connection.write(id, Bytes::from(vec![0; 20_000])).unwrap();
        pair.run_until(|p| [0, 1].iter().all(|side| !observed(p, *side).is_empty()));
        for side in [0, 1] {
            assert_eq!(observed(&pair, side), [pair.sides[side].address]);
            let handle = pair.handle(side).unwrap();
            let connection = pair.sides[side].endpoint.connection(handle).unwrap();
            assert_eq!(connection.observed_address(), pair.sides[side].address.ip());
        }
    }
}

#[test]
fn a_migrated_peer_gets_its_new_observed_address() {
    for mover in [0, 1] {
        let mut pair = Pair::new(TransportConfig::default());
        pair.connect();
        pair.run_until(|p| [0, 1].iter().all(|side| p.handle(*side).is_some()));
        let (from, to) = (pair.sides[mover].address, ip([127, 0, 0, 77], 7));
        for side in [0, 1] {
            let handle = pair.handle(side).unwrap();
            let connection = pair.sides[side].endpoint.connection(handle).unwrap();
            let id = connection.open_stream().unwrap();
            connection.write(id, Bytes::from_static(b"hello")).unwrap();
        }
        pair.run_until(|p| !observed(p, mover).is_empty());
        pair.sides[mover].address = to;
        let handle = pair.handle(mover).unwrap();
        let connection = pair.sides[mover].endpoint.connection(handle).unwrap();
        let id = connection.open_stream().unwrap();
        connection.write(id, Bytes::from_static(b"hello")).unwrap();
        pair.run_until(|p| observed(p, mover).len() == 2);
        assert_eq!(observed(&pair, mover), [from, to]);
    }
}

#[test]
fn a_peer_without_an_ip_address_gets_no_observed_address() {
    let mut pair = Pair::new(TransportConfig::default());
    (pair.sides[0].address, pair.sides[1].address) = (via(1), via(2));
    transfer(&mut pair, 0, 100_000);
    assert!([0, 1].iter().all(|side| observed(&pair, *side).is_empty()));
}
