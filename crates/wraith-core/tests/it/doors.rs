//! Handshakes at doors that are closed, full, or gone.

use std::time::Duration;

use wraith_core::{Door, DoorId, Endpoint, PathAddr, Time};

use crate::half_open::{access_key, answer, h1, hear, initiator, is_connected, responder, sent};
use crate::pair::ip;

const FROM: [u8; 4] = [10, 0, 0, 1];

/// Carries the handshake of this seed to its H3, which it returns.
fn h3(responder: &mut Endpoint, from: PathAddr, seed: u8) -> Vec<u8> {
    let (mut initiator, h1) = initiator(seed);
    let h2 = answer(responder, Time::ZERO, from, &h1).expect("the door is open");
    hear(&mut initiator, Time::ZERO, &h2);
    sent(&mut initiator, Time::ZERO).remove(0).1
}

/// Handles `h3`. Returns whether the handshake is complete.
fn completes(responder: &mut Endpoint, now: Time, from: PathAddr, h3: &[u8]) -> bool {
    responder.handle_datagram(now, from, None, &mut h3.to_vec());
    is_connected(responder)
}

#[test]
fn an_endpoint_that_takes_no_more_connections_is_silent() {
    let mut responder = responder(|config| config.connections_max = 0);
    assert!(answer(&mut responder, Time::ZERO, ip([192, 0, 2, 1], 1), &h1(10)).is_none());
}

/// The offer or service of an access key has ended, and the endpoint serves others.
#[test]
fn connections_to_a_role_that_is_gone_cost_nothing() {
    let mut responder = responder(|config| config.door = Door::default());
    let other = DoorId(2);
    responder.open_door(DoorId(1), Door { access_keys: vec![access_key()], ..Door::default() });
    responder.open_door(other, Door { access_keys: vec![access_key()], ..Door::default() });
    responder.close_door(DoorId(1));
    responder.close_door(other);
    let h1 = h1(3);
    for source in 0..10_000_u16 {
        let [high, low] = source.to_be_bytes();
        let from = ip([10, 1, high, low], source + 1);
        assert_eq!(answer(&mut responder, Time::ZERO, from, &h1), None);
    }
    assert_eq!((responder.datagrams_dropped(), responder.poll_event()), (20_000, None));
    assert_eq!(responder.poll_timeout(), None, "nothing is kept");
    // The peers of another role are heard.
    responder.open_door(other, Door { access_keys: vec![access_key()], ..Door::default() });
    assert!(answer(&mut responder, Time::ZERO, ip([10, 1, 0, 1], 1), &h1).is_some());
}

/// A role ends between H2 and H3, and another one begins with the number of its door.
#[test]
fn a_handshake_through_a_door_that_closes_meanwhile_fails() {
    let mut responder = responder(|_| ());
    let from = ip(FROM, 1);
    let h3 = h3(&mut responder, from, 3);
    responder.close_door(DoorId::FIRST);
    assert!(!completes(&mut responder, Time::ZERO, from, &h3));
    responder.open_door(DoorId::FIRST, Door { access_keys: vec![access_key()], ..Door::default() });
    assert!(!completes(&mut responder, Time::ZERO, from, &h3));
    assert_eq!(sent(&mut responder, Time::ZERO), []);
    assert!(answer(&mut responder, Time::ZERO, from, &h1(4)).is_some());
}

/// The initiator repeats its H3, so it comes in once another connection has ended.
#[test]
fn a_handshake_through_a_full_door_succeeds_once_there_is_room() {
    let mut responder = responder(|config| config.door.connections_max = 1);
    let [first, second] = [ip(FROM, 1), ip(FROM, 2)];
    let first_h3 = h3(&mut responder, first, 3);
    let second_h3 = h3(&mut responder, second, 4);
    responder.handle_datagram(Time::ZERO, first, None, &mut first_h3.clone());
    let (connection, _) = responder.poll_event().expect("it is connected");
    assert!(!completes(&mut responder, Time::ZERO, second, &second_h3));
    responder.connection(connection).expect("it is open").report_path_dead(Time::ZERO);
    while responder.poll_event().is_some() {}
    responder.poll_timeout();
    assert!(responder.is_drained());
    let repeated = Time::ZERO + Duration::from_millis(250);
    assert!(completes(&mut responder, repeated, second, &second_h3));
}

/// A door fills between the two datagrams of an H1. The initiator repeats both.
#[test]
fn a_handshake_whose_door_fills_meanwhile_begins_again_once_there_is_room() {
    let mut responder = responder(|config| config.door.connections_max = 1);
    let [first, second] = [ip(FROM, 1), ip(FROM, 2)];
    let first_h3 = h3(&mut responder, first, 3);
    let h1 = h1(4);
    responder.handle_datagram(Time::ZERO, second, None, &mut h1[0].clone());
    responder.handle_datagram(Time::ZERO, first, None, &mut first_h3.clone());
    let (connection, _) = responder.poll_event().expect("it is connected");
    responder.handle_datagram(Time::ZERO, second, None, &mut h1[1].clone());
    assert!(sent(&mut responder, Time::ZERO).iter().all(|(to, _)| *to == first), "it is full");
    responder.connection(connection).expect("it is open").report_path_dead(Time::ZERO);
    while responder.poll_event().is_some() {}
    responder.poll_timeout();
    assert!(responder.is_drained());
    let repeated = Time::ZERO + Duration::from_millis(250);
    assert!(answer(&mut responder, repeated, second, &h1).is_some());
}
