//! In a steady transfer, an endpoint allocates nothing: neither for received nor for sent
//! datagrams, timers or events. Both sides send and acknowledge, so the test covers every packet of
//! a transfer.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use wraith_core::{
    AccessKey, ConnectionHandle, Endpoint, EndpointConfig, Event, Read, StreamId, Time,
    TransportConfig,
};
use wraith_crypto::SecretIdentity;

use crate::counting::allocations;

const MTU: u16 = 1452;
/// Half a round trip.
const DELAY: Duration = Duration::from_micros(100);
const WRITE_BYTES: usize = 64 * 1024;
/// Bytes transferred each way until windows, buffers and blocks have their final size.
const WARM_UP_BYTES: usize = 32 << 20;
/// Bytes transferred each way after that.
const COUNTED_BYTES: usize = 16 << 20;

struct PairSide {
    endpoint: Endpoint,
    address: SocketAddr,
    handle: Option<ConnectionHandle>,
    outgoing: Option<StreamId>,
    incoming: Option<StreamId>,
    read: usize,
}

/// Two endpoints, and the count of allocations inside them.
struct Pair {
    now: Time,
    sides: [PairSide; 2],
    /// One in this many datagrams is lost; 0 for none.
    lose_every: u64,
    datagrams: u64,
    content: Bytes,
    buf: Vec<u8>,
    /// Allocations inside the endpoints.
    inside: u64,
}

fn side(seed: u8) -> PairSide {
    let transport = TransportConfig {
        // Small enough that a debug build reaches its steady state soon.
        connection_window_max: 4 << 20,
        stream_window_max: 4 << 20,
        send_buffer_max: 4 << 20,
        initial_mtu: MTU,
        max_mtu: MTU,
        ..TransportConfig::default()
    };
    let identity = SecretIdentity::from_seed([seed; 32]);
    PairSide {
        endpoint: Endpoint::new(
            EndpointConfig { transport, ..EndpointConfig::open(identity) },
            [seed; 32],
        ),
        address: SocketAddr::from(([127, 0, 0, seed], 1000)),
        handle: None,
        outgoing: None,
        incoming: None,
        read: 0,
    }
}

impl Pair {
    fn connected(lose_every: u64) -> Self {
        let mut sides = [side(1), side(2)];
        let peer = SecretIdentity::from_seed([2; 32]).node_id();
        let remote = sides[1].address;
        sides[0].endpoint.connect(Time::ZERO, remote, peer, &AccessKey::public(peer)).unwrap();
        let content = (0..WRITE_BYTES).map(|i| (i % 251) as u8).collect::<Vec<_>>();
        Self {
            now: Time::ZERO,
            sides,
            lose_every,
            datagrams: 0,
            content: content.into(),
            buf: vec![0; 65536],
            inside: 0,
        }
    }

    /// Runs until both sides have read `bytes` in total.
    fn run_until_read(&mut self, bytes: usize) {
        for _ in 0..1_000_000 {
            if self.sides.iter().all(|side| side.read >= bytes) {
                return;
            }
            self.step();
        }
        panic!("stuck at {:?} bytes", self.sides.each_ref().map(|side| side.read));
    }

    fn step(&mut self) {
        let Self { now, sides, lose_every, datagrams, content, buf, inside } = self;
        for i in 0..2 {
            application(&mut sides[i], *now, content, inside);
            let from = sides[i].address;
            while let Some(transmit) =
                counted(inside, || sides[i].endpoint.poll_transmit(*now, buf))
            {
                for datagram in buf[..transmit.len].chunks_mut(transmit.segment) {
                    *datagrams += 1;
                    if *lose_every == 0 || !datagrams.is_multiple_of(*lose_every) {
                        let to = &mut sides[1 - i].endpoint;
                        counted(inside, || to.handle_datagram(*now, from, None, datagram));
                    }
                }
            }
            let endpoint = &mut sides[i].endpoint;
            counted(inside, || {
                if endpoint.poll_timeout().is_some_and(|at| at <= *now) {
                    endpoint.handle_timeout(*now);
                }
            });
        }
        *now += DELAY;
    }
}

/// Calls `what`, and adds its allocations to `sum`.
fn counted<T>(sum: &mut u64, what: impl FnOnce() -> T) -> T {
    let before = allocations();
    let done = what();
    *sum += allocations() - before;
    done
}

/// Handles events, reads and compares all available bytes, and writes up to the capacity.
fn application(side: &mut PairSide, now: Time, content: &Bytes, inside: &mut u64) {
    while let Some((handle, event)) = counted(inside, || side.endpoint.poll_event()) {
        match event {
            Event::Connected => {
                let connection = side.endpoint.connection(handle).unwrap();
                (side.handle, side.outgoing) = (Some(handle), connection.open_stream());
            }
            Event::StreamOpened(id) => side.incoming = Some(id),
            Event::Closed(why) => panic!("{why:?}"),
            _ => {}
        }
    }
    let Some(connection) = side.handle.and_then(|handle| side.endpoint.connection(handle)) else {
        return;
    };
    if let Some(id) = side.incoming {
        while let Read::Slice(slice) = connection.read(now, id).unwrap() {
            let at = side.read % WRITE_BYTES;
            let first = slice.len().min(WRITE_BYTES - at);
            assert_eq!(slice[..first], content[at..at + first], "at {}", side.read);
            side.read += slice.len();
        }
    }
    if let Some(id) = side.outgoing {
        while connection.send_capacity(id) >= WRITE_BYTES {
            connection.write(id, content.clone()).unwrap();
        }
    }
}

#[test]
fn a_steady_transfer_in_both_directions_allocates_nothing() {
    let mut pair = Pair::connected(0);
    pair.run_until_read(WARM_UP_BYTES);
    let (allocations, datagrams) = (pair.inside, pair.datagrams);
    assert!(allocations > 100, "the counter counts");
    pair.run_until_read(WARM_UP_BYTES + COUNTED_BYTES);
    let datagrams = pair.datagrams - datagrams;
    assert!(datagrams > 2 * (COUNTED_BYTES / usize::from(MTU)) as u64, "{datagrams} datagrams");
    assert_eq!(pair.inside - allocations, 0, "for {datagrams} datagrams");
}
