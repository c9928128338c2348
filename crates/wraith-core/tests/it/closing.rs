//! The end of a connection.

use std::time::Duration;

use bytes::Bytes;
use wraith_core::{CloseReason, Endpoint, Event, Read, TransportConfig};

use crate::pair::{DELAY, Pair};

#[test]
fn a_close_tells_the_peer_why_and_both_sides_forget_it() {
    let mut pair = Pair::new(TransportConfig::default());
    let handle = pair.connect();
    pair.run_until(|p| p.handle(1).is_some());
    let now = pair.now;
    pair.sides[0].endpoint.connection(handle).unwrap().close(now, 0x123, "enough");
    pair.run_until(|p| p.sides.iter().all(|s| s.endpoint.is_drained()));
    let closed = |side: usize| pair.sides[side].events.last().unwrap().1.clone();
    assert_eq!(closed(0), Event::Closed(CloseReason::Local));
    let reason = CloseReason::Peer { code: 0x123, reason: "enough".into() };
    assert_eq!(closed(1), Event::Closed(reason));
}

/// Returns how long the closing side keeps its state.
fn time_until_forgotten(answer_arrives: bool) -> Duration {
    let mut pair = Pair::new(TransportConfig::default());
    let handle = pair.connect();
    pair.run_until(|p| p.handle(1).is_some());
    let (closed_at, sent) = (pair.now, pair.sent);
    pair.sides[0].endpoint.connection(handle).unwrap().close(closed_at, 0x100, "");
    // The CLOSE is the next datagram, and the answer to it the one after.
    pair.drop = Box::new(move |i| !answer_arrives && i == sent + 2);
    pair.run_until(|p| {
        let endpoint = &mut p.sides[0].endpoint;
        // Polling the timeout removes connections that are over.
        endpoint.poll_timeout().is_none() && endpoint.is_drained()
    });
    pair.now.since(closed_at)
}

#[test]
fn the_closing_side_is_drained_when_the_peer_answers() {
    assert_eq!(time_until_forgotten(true), 2 * DELAY);
    // Without an answer, it may have to retransmit.
    assert!(time_until_forgotten(false) > 6 * DELAY);
}

#[test]
fn a_stream_opened_right_before_the_close_is_seen_and_read() {
    let mut pair = Pair::new(TransportConfig::default());
    let handle = pair.connect();
    pair.run_until(|p| p.handle(1).is_some());
    let connection = pair.sides[0].endpoint.connection(handle).unwrap();
    let id = connection.open_stream().unwrap();
    connection.write(id, Bytes::from_static(b"last words")).unwrap();
    let mut buf = vec![0; 65536];
    let mut datagrams = Vec::new();
    let now = pair.now;
    for close in [false, true] {
        let side = &mut pair.sides[0].endpoint;
        if close {
            side.connection(handle).unwrap().close(now, 0x100, "");
        }
        while let Some(t) = side.poll_transmit(now, &mut buf) {
            datagrams.extend(buf[..t.len].chunks(t.segment).map(<[u8]>::to_vec));
        }
    }
    let (from, other) = (pair.sides[0].address, pair.handle(1).unwrap());
    let receiver = &mut pair.sides[1].endpoint;
    for datagram in &mut datagrams {
        receiver.handle_datagram(now, from, None, datagram);
    }
    let events: Vec<_> = std::iter::from_fn(|| receiver.poll_event()).map(|(_, e)| e).collect();
    let place = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(wanted);
    let opened = place(&|e| *e == Event::StreamOpened(id)).expect("the stream is seen");
    let closed = place(&|e| matches!(e, Event::Closed(_))).expect("the end is seen");
    assert!(opened < closed && closed + 1 == events.len());
    let read = receiver.connection(other).unwrap().read(now, id);
    assert!(matches!(read, Ok(Read::Slice(chunk)) if &*chunk == b"last words"));
}

const HOUR: Duration = Duration::from_secs(3600);

/// Connects a pair, and writes to a stream of the side `writer`.
fn written(writer: usize) -> Pair {
    let mut pair = Pair::new(TransportConfig::default());
    pair.connect();
    pair.run_until(|p| p.handle(1).is_some());
    let handle = pair.handle(writer).unwrap();
    let connection = pair.sides[writer].endpoint.connection(handle).unwrap();
    let id = connection.open_stream().unwrap();
    connection.write(id, Bytes::from_static(b"late")).unwrap();
    pair
}

fn expect_idle_timeout(endpoint: &mut Endpoint) {
    let events: Vec<_> = std::iter::from_fn(|| endpoint.poll_event()).map(|(_, e)| e).collect();
    assert_eq!(events.last(), Some(&Event::Closed(CloseReason::IdleTimeout)), "{events:?}");
}

/// A host can be suspended between any two calls, also while no timer is armed.
#[test]
fn a_datagram_that_waited_during_a_suspension_does_not_revive_a_connection() {
    let mut pair = written(0);
    let (from, mut buf) = (pair.sides[0].address, vec![0; 65536]);
    let len = pair.sides[0].endpoint.poll_transmit(pair.now, &mut buf).unwrap().len;
    let sleeper = &mut pair.sides[1].endpoint;
    let due = sleeper.poll_timeout().unwrap();
    sleeper.handle_timeout(due);
    sleeper.handle_datagram(due + HOUR, from, None, &mut buf[..len]);
    expect_idle_timeout(sleeper);
}

#[test]
fn a_packet_that_was_not_sent_before_a_suspension_does_not_revive_a_connection() {
    let mut pair = written(1);
    let sleeper = &mut pair.sides[1].endpoint;
    sleeper.handle_timeout(pair.now);
    assert!(sleeper.poll_transmit(pair.now + HOUR, &mut vec![0; 65536]).is_none());
    expect_idle_timeout(sleeper);
}

#[test]
fn a_dead_wire_ends_with_the_idle_timeout() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.connect();
    pair.run_until(|p| p.handle(1).is_some());
    pair.drop = Box::new(|_| true);
    pair.run_until(|p| p.sides.iter().all(|s| s.endpoint.is_drained()));
    for side in &pair.sides {
        assert_eq!(side.events.last().unwrap().1, Event::Closed(CloseReason::IdleTimeout));
    }
}
