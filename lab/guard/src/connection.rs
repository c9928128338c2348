//! All processing of a packet on both sides: two endpoints on a simulated clock, each sending to
//! the other.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use wraith_core::{
    AccessKey, ConnectionHandle, Endpoint, EndpointConfig, Event, Read, StreamId, Time,
    TransportConfig,
};
use wraith_crypto::SecretIdentity;

use crate::DATAGRAM_BYTES;

/// Bytes moved in each direction in one repetition.
const BYTES: usize = 256 * 1024;
/// Uncounted repetitions, after which windows, buffers and blocks have their final sizes.
const WARM_UP: u64 = 8;
/// Time between the turns of the two sides, and so the round trip of both.
const STEP: Duration = Duration::from_micros(100);
/// A window of constant size: with a growing one, later bytes would cost less.
const WINDOW_BYTES: u64 = 512 * 1024;
/// Bytes of one write.
const WRITE_BYTES: usize = 64 * 1024;
/// Maximum number of steps of one repetition, many times the usual number.
const STEPS_MAX: u32 = 100_000;

struct Side {
    endpoint: Endpoint,
    address: SocketAddr,
    handle: Option<ConnectionHandle>,
    /// Stream on which this side sends.
    stream: Option<StreamId>,
    /// Stream on which the other side sends.
    incoming: Option<StreamId>,
    written: usize,
    read: usize,
}

pub(crate) fn transfer(times: u64) {
    let mut sides = [side(1), side(2)];
    let mut now = Time::ZERO;
    let (remote, peer) = (sides[1].address, SecretIdentity::from_seed([2; 32]).node_id());
    sides[0].endpoint.connect(now, remote, peer, &AccessKey::public(peer)).expect("a valid peer");
    let content = Bytes::from((0..WRITE_BYTES).map(|i| (i % 251) as u8).collect::<Vec<_>>());
    let mut buf = vec![0; 65536];
    for repetition in 1..=WARM_UP + times {
        let target = repetition as usize * BYTES;
        let mut steps = 0;
        while sides.iter().any(|side| side.read < target) {
            assert!(steps < STEPS_MAX, "stuck at {} and {} bytes", sides[0].read, sides[1].read);
            steps += 1;
            step(&mut sides, &mut now, &content, target, &mut buf);
        }
    }
    for side in &mut sides {
        let connection = side.endpoint.connection(side.handle.expect("connected"));
        let stats = connection.expect("alive").stats();
        assert_eq!(stats.packets_lost, 0);
    }
}

fn side(seed: u8) -> Side {
    let transport = TransportConfig {
        connection_window_initial: WINDOW_BYTES,
        connection_window_max: WINDOW_BYTES,
        stream_window_initial: WINDOW_BYTES,
        stream_window_max: WINDOW_BYTES,
        send_buffer_max: WINDOW_BYTES,
        initial_mtu: DATAGRAM_BYTES as u16,
        max_mtu: DATAGRAM_BYTES as u16,
        ..TransportConfig::default()
    };
    let identity = SecretIdentity::from_seed([seed; 32]);
    let config = EndpointConfig { transport, ..EndpointConfig::open(identity) };
    Side {
        endpoint: Endpoint::new(config, [seed; 32]),
        address: SocketAddr::from(([127, 0, 0, seed], 1000)),
        handle: None,
        stream: None,
        incoming: None,
        written: 0,
        read: 0,
    }
}

fn step(sides: &mut [Side; 2], now: &mut Time, content: &Bytes, target: usize, buf: &mut [u8]) {
    for i in 0..2 {
        *now += STEP;
        let now = *now;
        sides[i].drive(now, content, target);
        let from = sides[i].address;
        while let Some(transmit) = sides[i].endpoint.poll_transmit(now, buf) {
            for datagram in buf[..transmit.len].chunks_mut(transmit.segment) {
                sides[1 - i].endpoint.handle_datagram(now, from, transmit.ecn, datagram);
            }
        }
        if sides[i].endpoint.poll_timeout().is_some_and(|at| at <= now) {
            sides[i].endpoint.handle_timeout(now);
        }
    }
}

impl Side {
    /// Acts as the application: handles events, reads all data, and writes up to `target` bytes in
    /// total. So the amount is the same at any speed of either side.
    fn drive(&mut self, now: Time, content: &Bytes, target: usize) {
        while let Some((handle, event)) = self.endpoint.poll_event() {
            match event {
                Event::Connected => {
                    let connection = self.endpoint.connection(handle).expect("alive");
                    (self.handle, self.stream) = (Some(handle), connection.open_stream());
                }
                Event::StreamOpened(id) => self.incoming = Some(id),
                Event::Closed(why) => panic!("closed: {why:?}"),
                _ => {}
            }
        }
        let Some(connection) = self.handle.and_then(|handle| self.endpoint.connection(handle))
        else {
            return;
        };
        if let Some(id) = self.incoming {
            while let Ok(Read::Slice(chunk)) = connection.read(now, id) {
                let at = self.read % WRITE_BYTES;
                assert_eq!(chunk[0], content[at], "at {}", self.read);
                self.read += chunk.len();
            }
        }
        if let Some(id) = self.stream {
            while self.written < target && connection.send_capacity(id) >= WRITE_BYTES {
                connection.write(id, content.clone()).expect("open");
                self.written += WRITE_BYTES;
            }
        }
    }
}
