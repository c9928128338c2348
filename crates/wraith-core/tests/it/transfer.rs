//! Stream data arrives despite losses and key changes.

use wraith_core::TransportConfig;

use crate::pair::{Pair, transfer, via};

#[test]
fn bytes_arrive_in_both_directions() {
    for from in [0, 1] {
        transfer(&mut Pair::new(TransportConfig::default()), from, 3_000_000);
    }
}

#[test]
fn every_twentieth_datagram_lost_still_delivers_everything() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.drop = Box::new(|n| n % 20 == 7);
    transfer(&mut pair, 0, 2_000_000);
}

#[test]
fn bytes_arrive_where_neither_side_has_an_ip_address() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.drop = Box::new(|n| n % 20 == 7);
    (pair.sides[0].address, pair.sides[1].address) = (via(1), via(2));
    transfer(&mut pair, 0, 2_000_000);
}

#[test]
fn keys_change_many_times_within_a_transfer() {
    let transport = TransportConfig { phase_packets: 50, max_mtu: 1200, ..Default::default() };
    let mut pair = Pair::new(transport);
    pair.drop = Box::new(|n| n % 31 == 0);
    transfer(&mut pair, 0, 3_000_000);
    let handle = pair.handle(0).unwrap();
    let stats = pair.sides[0].endpoint.connection(handle).unwrap().stats();
    assert!(stats.key_phases > 5, "{stats:?}");
}
