//! wraith's core as a contender: real endpoints with real encryption, and one stream.

use std::net::SocketAddr;

use wraith_core::{
    AccessKey, Algorithm, ConnectionHandle, Endpoint, EndpointConfig, Event, Read, StreamId, Time,
    TransportConfig, WallClock,
};
use wraith_crypto::identity::{NodeId, SecretIdentity};
use wraith_sim::Rng;
use wraith_sim::link::Datagram;

use crate::host::{Content, FULL_DATAGRAM, Host, Progress, Verifier};

/// Wall-clock time at which simulations start: arbitrary, and the same for both ends.
const UNIX_TIME_AT_ZERO: u64 = 1_800_000_000;
/// Size of the buffer for `poll_transmit`: a full batch.
const TRANSMIT_BYTES: usize = 64 * 1024;
/// Random streams of the flows' hosts, two each.
const HOST_STREAM: u64 = 1 << 32;

/// One end of a flow between two wraith endpoints.
#[derive(Debug)]
pub struct WraithHost {
    endpoint: Endpoint,
    address: SocketAddr,
    connection: Option<ConnectionHandle>,
    part: FlowRole,
    buffer: Vec<u8>,
    last: Progress,
    complete: bool,
}

#[derive(Debug)]
enum FlowRole {
    Sends { to: SocketAddr, peer: NodeId, content: Content, written: u64, stream: Option<StreamId> },
    Receives(Verifier),
}

/// Creates sender and receiver of one flow of `content` between two `addresses`, with windows of
/// `windows` bytes.
pub fn pair(
    algorithm: Algorithm,
    windows: u64,
    seed: u64,
    flow: u64,
    addresses: (SocketAddr, SocketAddr),
    content: Content,
) -> (WraithHost, WraithHost) {
    let (sender, _) = endpoint(algorithm, windows, seed, 2 * flow);
    let (receiver, peer) = endpoint(algorithm, windows, seed, 2 * flow + 1);
    let (from, to) = addresses;
    let sends = FlowRole::Sends { to, peer, content, written: 0, stream: None };
    let receives = FlowRole::Receives(Verifier::new(content));
    (WraithHost::new(sender, from, sends), WraithHost::new(receiver, to, receives))
}

fn endpoint(algorithm: Algorithm, windows: u64, seed: u64, number: u64) -> (Endpoint, NodeId) {
    let mut rng = Rng::new(seed, HOST_STREAM + number);
    let identity = SecretIdentity::from_seed(rng.seed());
    let node_id = identity.node_id();
    let transport = TransportConfig {
        congestion: algorithm.into(),
        initial_mtu: FULL_DATAGRAM,
        max_mtu: FULL_DATAGRAM,
        connection_window_max: windows,
        stream_window_max: windows,
        send_buffer_max: windows,
        ..TransportConfig::default()
    };
    let config = EndpointConfig {
        transport,
        wall_clock: WallClock::starting_at(UNIX_TIME_AT_ZERO),
        ..EndpointConfig::open(identity)
    };
    (Endpoint::new(config, rng.seed()), node_id)
}

impl WraithHost {
    fn new(endpoint: Endpoint, address: SocketAddr, part: FlowRole) -> Self {
        Self {
            endpoint,
            address,
            connection: None,
            part,
            buffer: vec![0; TRANSMIT_BYTES],
            last: Progress::default(),
            complete: false,
        }
    }

    fn on_event(&mut self, now: Time, handle: ConnectionHandle, event: &Event) {
        self.connection = Some(handle);
        match event {
            Event::Connected => self.write(handle),
            Event::Writable(_) => self.write(handle),
            Event::StreamOpened(id) | Event::Readable(id) => self.read(now, handle, *id),
            Event::Closed(reason) => self.last.aborted = Some(format!("{reason:?}")),
            _ => {}
        }
    }

    fn write(&mut self, handle: ConnectionHandle) {
        let FlowRole::Sends { content, written, stream, .. } = &mut self.part else { return };
        let Some(connection) = self.endpoint.connection(handle) else { return };
        if stream.is_none() {
            *stream = connection.open_stream();
        }
        let Some(id) = *stream else { return };
        while *written < content.bytes {
            let left = usize::try_from(content.bytes - *written).unwrap_or(usize::MAX);
            let room = connection.send_capacity(id);
            if room == 0 {
                return;
            }
            let piece = content.pattern.piece(*written, left.min(room));
            *written += piece.len() as u64;
            connection.write(id, piece).expect("a stream in use accepts its window");
            if *written == content.bytes {
                connection.finish(id).expect("a stream is finished once");
            }
        }
    }

    fn read(&mut self, now: Time, handle: ConnectionHandle, id: StreamId) {
        let FlowRole::Receives(verifier) = &mut self.part else { return };
        let Some(connection) = self.endpoint.connection(handle) else { return };
        loop {
            match connection.read(now, id) {
                Ok(Read::Slice(chunk)) => verifier.take(&chunk),
                Ok(Read::Finished) => {
                    assert!(verifier.is_complete(), "the stream ended early");
                    self.complete = true;
                    return;
                }
                Ok(Read::Blocked) => return,
                Err(error) => panic!("reading {id}: {error}"),
            }
        }
    }
}

impl Host for WraithHost {
    fn start(&mut self, now: Time) {
        let FlowRole::Sends { to, peer, .. } = &self.part else { return };
        let connection = self.endpoint.connect(now, *to, *peer, &AccessKey::public(*peer));
        self.connection = Some(connection.expect("the receiver's NodeId is valid"));
    }

    fn receive(&mut self, now: Time, mut datagram: Datagram) {
        self.endpoint.handle_datagram(now, datagram.from, None, &mut datagram.bytes);
    }

    fn wake(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
    }

    fn transmit(&mut self, now: Time, out: &mut Vec<Datagram>) {
        loop {
            let before = out.len();
            let mut events = 0;
            while let Some((handle, event)) = self.endpoint.poll_event() {
                events += 1;
                self.on_event(now, handle, &event);
            }
            while let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.buffer) {
                for bytes in self.buffer[..transmit.len].chunks(transmit.segment) {
                    let from = self.address;
                    let to = transmit.to.ip().expect("every node of the grid has an IP address");
                    out.push(Datagram::new(from, to, bytes.to_vec()));
                }
            }
            if out.len() == before && events == 0 {
                return;
            }
        }
    }

    fn next(&mut self) -> Option<Time> {
        self.endpoint.poll_timeout()
    }

    fn ended(&self) -> bool {
        self.complete || self.last.aborted.is_some()
    }

    fn progress(&mut self) -> Progress {
        if let FlowRole::Receives(verifier) = &self.part {
            self.last.delivered = verifier.delivered();
        }
        let connection = self.connection.and_then(|handle| self.endpoint.connection(handle));
        if let Some(stats) = connection.map(|connection| connection.stats()) {
            self.last.packets_sent = stats.packets_sent;
            self.last.packets_lost = stats.packets_lost;
        }
        self.last.clone()
    }
}
