//! Migrations that one side requests itself, packet by packet.

use wraith_core::{Event, TransportConfig};

use crate::pair::{Pair, ip, moves, via};

fn connected() -> Pair {
    Pair::connected(TransportConfig::default())
}

#[test]
fn a_probing_packet_from_another_address_causes_no_migration() {
    for [here, elsewhere] in moves() {
        let mut pair = Pair::connected_from(TransportConfig::default(), here);
        let (now, handle) = (pair.now, pair.handle(0).unwrap());
        let mut buf = vec![0; 65536];
        let Pair { sides: [mover, other], .. } = &mut pair;
        while mover.endpoint.poll_transmit(now, &mut buf).is_some() {}
        // The challenge goes to an address of the peer, and reaches the peer from an address other
        // than the mover's.
        let connection = mover.endpoint.connection(handle).unwrap();
        assert!(connection.migrate_to(now, via(99)));
        let challenge = mover.endpoint.poll_transmit(now, &mut buf).unwrap();
        assert_eq!((challenge.to, challenge.len), (via(99), 1200));
        other.endpoint.handle_datagram(now, elsewhere, None, &mut buf[..1200]);
        let mut sent = Vec::new();
        while let Some(transmit) = other.endpoint.poll_transmit(now, &mut buf) {
            sent.push((transmit.to, transmit.len));
        }
        // The response and the peer's own challenge: at most three times the received bytes.
        assert!(sent.contains(&(elsewhere, 1200)), "{sent:?}");
        let elsewhere_bytes: usize =
            sent.iter().filter(|(to, _)| *to == elsewhere).map(|(_, len)| len).sum();
        assert!(elsewhere_bytes <= 3600, "{sent:?}");
        let moved = |event: &Event| matches!(event, Event::PathChanged { .. });
        assert!(std::iter::from_fn(|| other.endpoint.poll_event()).all(|(_, e)| !moved(&e)));
    }
}

#[test]
fn a_move_that_is_asked_for_before_the_peer_is_known_to_have_h3_begins_then() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.connect();
    pair.run_until(|p| p.handle(0).is_some());
    let (now, handle) = (pair.now, pair.handle(0).unwrap());
    assert!(pair.handle(1).is_none(), "its H3 is not even on its way");
    let nobody = ip([127, 0, 0, 98], 9);
    let there = via(98);
    let connection = pair.sides[0].endpoint.connection(handle).unwrap();
    assert!(connection.migrate_to(now, nobody) && connection.migrate_to(now, there));
    let failed = |p: &Pair, remote| {
        p.sides[0].events.iter().any(|(_, event)| *event == Event::MigrationFailed { remote })
    };
    pair.run_until(|p| p.handle(1).is_some());
    pair.run_until(|p| failed(p, nobody));
    assert!(!failed(&pair, there), "it is being asked");
    pair.run_until(|p| failed(p, there));
}

#[test]
fn a_migration_to_a_dead_address_fails_and_a_new_one_replaces_it() {
    let mut pair = connected();
    let (nobody, nobody_else) = (ip([127, 0, 0, 98], 9), via(98));
    let (now, handle) = (pair.now, pair.handle(0).unwrap());
    let connection = pair.sides[0].endpoint.connection(handle).unwrap();
    let here = connection.remote();
    assert!(!connection.migrate_to(now, here), "it is there");
    assert!(connection.migrate_to(now, nobody) && connection.migrate_to(now, nobody));
    assert!(connection.migrate_to(now, nobody_else));
    let failed = |p: &Pair, remote| {
        p.sides[0].events.iter().any(|(_, event)| *event == Event::MigrationFailed { remote })
    };
    pair.run_until(|p| failed(p, nobody) && failed(p, nobody_else));
    let connection = pair.sides[0].endpoint.connection(handle).unwrap();
    assert_eq!(connection.remote(), here);
    pair.say_hello(0);
    pair.run_until(|p| p.sides[1].events.iter().any(|(_, e)| matches!(e, Event::StreamOpened(_))));
}
