//! A peer that acknowledges nothing, or selectively, or packets that it cannot have received. It
//! occupies little memory and gains nothing.

use std::time::Duration;

use bytes::Bytes;
use wraith_core::{CloseReason, TransportConfig};

use crate::counting::bytes_held;
use crate::hostile_peer::HostilePeer;

/// Maximum memory of a connection for packets and gaps, in addition to the bytes of its windows.
const TRACKED_MAX: i64 = 256 * 1024;

fn is_violation(peer: &HostilePeer) -> bool {
    matches!(peer.closed, Some(CloseReason::Violation(_)))
}

#[test]
fn an_ack_of_a_skipped_packet_number_closes_the_connection() {
    let mut peer = HostilePeer::connect(TransportConfig::default());
    // An honest ACK of received packets has no effect.
    while peer.received.len() < 2048 {
        peer.send(0, |out| assert!(out.ping()));
        peer.wait(Duration::from_millis(30));
        let ranges: Vec<_> = peer.received.iter().rev().take(20).map(|&pn| pn..=pn).collect();
        let adjacent = ranges.windows(2).all(|w| w[0].start() - w[1].end() == 1);
        let (newest, oldest) = (*ranges[0].end(), *ranges.last().unwrap().start());
        if adjacent {
            peer.ack(&[oldest..=newest]);
        }
        assert_eq!(peer.closed, None);
    }
    // The received numbers have a gap, and the ACK covers it.
    let newest = *peer.received.last().unwrap();
    assert!((0..=newest).any(|pn| !peer.received.contains(&pn)), "no number was left out");
    peer.ack(&[0..=newest]);
    assert!(is_violation(&peer), "{:?}", peer.closed);
}

#[test]
fn an_ack_of_an_unsent_packet_closes_the_connection() {
    let mut peer = HostilePeer::connect(TransportConfig::default());
    peer.send(0, |out| assert!(out.ping()));
    peer.wait(Duration::from_millis(30));
    let newest = *peer.received.last().unwrap();
    peer.ack(&[0..=newest + 2]);
    assert!(is_violation(&peer), "{:?}", peer.closed);
}

#[test]
fn a_million_packets_of_a_peer_that_acknowledges_nothing_hold_little_memory() {
    let mut peer = HostilePeer::connect(TransportConfig::default());
    peer.notes = false;
    let before = bytes_held();
    for round in 0..1_000_000 {
        // Every packet leaves a gap, so each one causes an immediate ACK.
        peer.send(1, |out| assert!(out.ping()));
        if round % 1000 == 0 {
            peer.wait(Duration::from_secs(2));
            assert_eq!(peer.closed, None);
            let held = bytes_held() - before;
            assert!(held <= TRACKED_MAX, "{held} bytes after {round} packets");
        }
    }
}

#[test]
fn a_peer_that_opens_every_gap_it_can_holds_little_memory_beyond_the_bytes() {
    let mut peer = HostilePeer::connect(TransportConfig::default());
    peer.notes = false;
    let before = bytes_held();
    // 300 single bytes per packet, two apart. The bytes themselves lie in blocks of the window.
    let window = 2 << 20;
    for first in (1..window).step_by(400) {
        peer.send(0, |out| {
            for offset in (first..first + 400).step_by(2).filter(|offset| *offset < window) {
                if out.stream(0, offset, 1, false, |to| to.fill(1)).is_none() {
                    break;
                }
            }
        });
        assert_eq!(peer.closed, None);
    }
    // As many as it can are the first 8192, in blocks of 16 KiB together.
    let held = bytes_held() - before - (16 << 10);
    assert!(held <= TRACKED_MAX, "{held} bytes");
}

#[test]
fn a_peer_that_acknowledges_every_second_packet_holds_little_memory_beyond_the_send_buffer() {
    const SEND_BUFFER: i64 = 1 << 20;
    /// Number of packets that the victim sends.
    const PACKETS: usize = 100_000;
    let transport =
        TransportConfig { send_buffer_max: SEND_BUFFER as u64, ..TransportConfig::default() };
    let mut peer = HostilePeer::connect(transport);
    let connection = peer.victim.connection(peer.handle).unwrap();
    let id = connection.open_stream().unwrap();
    let content = Bytes::from(vec![5; 64 * 1024]);
    peer.received.reserve(2 * PACKETS);
    let (before, mut most) = (bytes_held(), 0);
    while peer.received.len() < PACKETS {
        let connection = peer.victim.connection(peer.handle).unwrap();
        while connection.send_capacity(id) > 0 {
            connection.write(id, Bytes::copy_from_slice(&content)).unwrap();
        }
        peer.drain();
        peer.wait(Duration::from_millis(5));
        let odd = peer.received.iter().rev().filter(|pn| *pn % 2 == 1).take(60);
        let ranges: Vec<_> = odd.map(|&pn| pn..=pn).collect();
        if !ranges.is_empty() {
            peer.ack(&ranges);
        }
        assert_eq!(peer.closed, None);
        most = most.max(bytes_held() - before);
    }
    assert!(most - SEND_BUFFER <= TRACKED_MAX, "{} bytes", most - SEND_BUFFER);
}
