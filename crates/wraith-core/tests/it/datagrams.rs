//! Unreliable datagrams between two applications.

use bytes::Bytes;
use wraith_core::{Event, TransportConfig};

use crate::pair::Pair;

fn connected() -> Pair {
    Pair::connected(TransportConfig { max_mtu: 1200, ..Default::default() })
}

fn send(pair: &mut Pair, from: usize, bytes: Bytes) -> bool {
    let handle = pair.handle(from).unwrap();
    pair.sides[from].endpoint.connection(handle).unwrap().send_datagram(bytes)
}

fn received(pair: &Pair, by: usize) -> Vec<Bytes> {
    pair.events_of(by, |event| match event {
        Event::Datagram(bytes) => Some(bytes.clone()),
        _ => None,
    })
}

#[test]
fn they_arrive_as_they_were_sent_in_both_directions() {
    let mut pair = connected();
    let sent: Vec<Bytes> =
        [0usize, 1, 100, 1000].map(|len| vec![len as u8; len].into()).into_iter().collect();
    for side in [0, 1] {
        sent.iter().for_each(|bytes| assert!(send(&mut pair, side, bytes.clone())));
    }
    pair.run_until(|p| [0, 1].iter().all(|side| received(p, *side).len() == sent.len()));
    assert_eq!(received(&pair, 0), sent);
    assert_eq!(received(&pair, 1), sent);
}

#[test]
fn one_that_is_lost_is_not_sent_again_and_does_not_hold_back_the_next() {
    let mut pair = connected();
    // Packets of the handshake arrive first.
    let until = pair.now + std::time::Duration::from_secs(1);
    pair.run_until(|p| p.now >= until);
    let sent = pair.sent;
    pair.drop = Box::new(move |n| n == sent + 1);
    assert!(send(&mut pair, 0, Bytes::from_static(b"first")));
    pair.step();
    assert!(send(&mut pair, 0, Bytes::from_static(b"second")));
    let until = pair.now + std::time::Duration::from_secs(3);
    pair.run_until(|p| p.now >= until);
    assert_eq!(received(&pair, 1), [Bytes::from_static(b"second")]);
}

#[test]
fn the_largest_that_is_taken_arrives_and_a_larger_one_is_refused() {
    let mut pair = connected();
    let largest = (1..1200usize)
        .rev()
        .find(|len| send(&mut pair, 0, vec![0; *len].into()))
        .expect("some length is taken");
    assert!(largest > 1100, "{largest}");
    pair.run_until(|p| !received(p, 1).is_empty());
    assert_eq!(received(&pair, 1)[0].len(), largest);
}

#[test]
fn when_more_wait_than_are_held_the_oldest_give_way() {
    let mut pair = connected();
    for number in 0..100u8 {
        assert!(send(&mut pair, 0, vec![number].into()));
    }
    pair.run_until(|p| received(p, 1).last().is_some_and(|last| last[0] == 99));
    let numbers: Vec<u8> = received(&pair, 1).iter().map(|bytes| bytes[0]).collect();
    assert_eq!(numbers, (36..100).collect::<Vec<u8>>());
}
