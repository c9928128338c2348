//! quinn-proto as a contender: a well-maintained QUIC in Rust, tuned for bulk transfer.
//!
//! The tuning: windows that do not limit, full datagrams from the first packet without MTU
//! discovery, full GSO batches, and no idle timeout that an outage could trigger.
//!
//! Its encryption is a null one of the same lengths ([`null_crypto`]). Simulated time does not
//! include the cost of sealing, and the randomness of TLS would make a run unrepeatable. One random
//! choice remains: the phase at which its BBR starts the gain cycle.

mod null_crypto;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use quinn_proto::congestion::{BbrConfig, CubicConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, IdleTimeout, MtuDiscoveryConfig, ReadError, ServerConfig, StreamEvent, StreamId,
    TransportConfig, VarInt, WriteError,
};
use wraith_core::Time;
use wraith_sim::Rng;
use wraith_sim::link::Datagram;

use crate::host::{Content, FULL_DATAGRAM, Host, Progress, Verifier};

/// Datagrams of one batch: as many full ones as the kernel accepts at once.
const BATCH_DATAGRAMS: usize = 65_536 / FULL_DATAGRAM as usize;
/// Longer than any transfer, so that the grid's rules end it.
const IDLE_TIMEOUT_MILLIS: u32 = 3_600_000;
/// Random streams of the flows' hosts, two each.
const HOST_STREAM: u64 = 2 << 32;

/// quinn's congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Its default.
    Cubic,
    /// Its BBR, which it calls experimental.
    Bbr,
}

/// One end of a flow between two quinn endpoints.
pub struct QuinnHost {
    endpoint: Endpoint,
    address: SocketAddr,
    connection: Option<(ConnectionHandle, Connection)>,
    part: FlowRole,
    /// quinn's time at [`Time::ZERO`]; only differences from it matter.
    epoch: Instant,
    responses: Vec<Datagram>,
    buffer: Vec<u8>,
    aborted: Option<String>,
    complete: bool,
}

enum FlowRole {
    Sends {
        to: SocketAddr,
        config: ClientConfig,
        content: Content,
        written: u64,
        stream: Option<StreamId>,
    },
    Receives {
        verifier: Verifier,
        stream: Option<StreamId>,
    },
}

/// Creates sender and receiver of one flow of `content` between two `addresses`, with windows of
/// `windows` bytes.
pub fn pair(
    control: Control,
    windows: u64,
    seed: u64,
    flow: u64,
    addresses: (SocketAddr, SocketAddr),
    content: Content,
) -> (QuinnHost, QuinnHost) {
    let transport = Arc::new(transport(control, windows));
    let mut client = ClientConfig::new(Arc::new(null_crypto::NullCrypto));
    client.transport_config(transport.clone());
    let token_key = Arc::new(null_crypto::NullCrypto);
    let mut server = ServerConfig::new(Arc::new(null_crypto::NullCrypto), token_key);
    server.transport_config(transport);
    let (from, to) = addresses;
    let sends = FlowRole::Sends { to, config: client, content, written: 0, stream: None };
    let receives = FlowRole::Receives { verifier: Verifier::new(content), stream: None };
    let number = HOST_STREAM + 2 * flow;
    let sender = QuinnHost::new(from, None, Rng::new(seed, number), sends);
    let receiver = QuinnHost::new(to, Some(server), Rng::new(seed, number + 1), receives);
    (sender, receiver)
}

fn transport(control: Control, windows: u64) -> TransportConfig {
    let mut config = TransportConfig::default();
    let window = VarInt::from_u64(windows).expect("a window is far below 2^62");
    config
        .stream_receive_window(window)
        .receive_window(window)
        .send_window(windows)
        .initial_mtu(FULL_DATAGRAM)
        .mtu_discovery_config(None::<MtuDiscoveryConfig>)
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_TIMEOUT_MILLIS))));
    match control {
        Control::Cubic => config.congestion_controller_factory(Arc::new(CubicConfig::default())),
        Control::Bbr => config.congestion_controller_factory(Arc::new(BbrConfig::default())),
    };
    config
}

impl QuinnHost {
    fn new(
        address: SocketAddr,
        server: Option<ServerConfig>,
        mut rng: Rng,
        part: FlowRole,
    ) -> Self {
        let mut config = EndpointConfig::new(Arc::new(null_crypto::NullCrypto));
        config
            .rng_seed(Some(rng.seed()))
            .max_udp_payload_size(FULL_DATAGRAM)
            .expect("more than the smallest datagram of QUIC");
        Self {
            endpoint: Endpoint::new(Arc::new(config), server.map(Arc::new), false, None),
            address,
            connection: None,
            part,
            epoch: Instant::now(),
            responses: Vec::new(),
            buffer: Vec::new(),
            aborted: None,
            complete: false,
        }
    }

    fn instant(&self, now: Time) -> Instant {
        self.epoch + now.since(Time::ZERO)
    }

    /// Passes events of the connection to the endpoint, and its answers back.
    fn exchange_events(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
    }

    /// Lets the application act on events. Returns whether there were any.
    fn act(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.connection.as_mut().and_then(|(_, c)| c.poll()) {
            any = true;
            match event {
                Event::Connected | Event::Stream(StreamEvent::Writable { .. }) => self.write(),
                Event::Stream(StreamEvent::Available { .. }) => self.write(),
                Event::Stream(StreamEvent::Opened { .. } | StreamEvent::Readable { .. }) => {
                    self.read();
                }
                Event::ConnectionLost { reason } => self.aborted = Some(reason.to_string()),
                _ => {}
            }
        }
        any
    }

    fn write(&mut self) {
        let FlowRole::Sends { content, written, stream, .. } = &mut self.part else { return };
        let Some((_, connection)) = &mut self.connection else { return };
        if stream.is_none() {
            *stream = connection.streams().open(Dir::Uni);
        }
        let Some(id) = *stream else { return };
        let mut sending = connection.send_stream(id);
        while *written < content.bytes {
            let left = usize::try_from(content.bytes - *written).unwrap_or(usize::MAX);
            let piece = content.pattern.piece(*written, left);
            match sending.write_chunks(&mut [piece]) {
                Ok(taken) => *written += taken.bytes as u64,
                Err(WriteError::Blocked) => return,
                Err(error) => panic!("writing {id}: {error}"),
            }
            if *written == content.bytes {
                sending.finish().expect("a stream is finished once");
            }
        }
    }

    fn read(&mut self) {
        let FlowRole::Receives { verifier, stream } = &mut self.part else { return };
        let Some((_, connection)) = &mut self.connection else { return };
        if stream.is_none() {
            *stream = connection.streams().accept(Dir::Uni);
        }
        let Some(id) = *stream else { return };
        if self.complete {
            return;
        }
        let mut receiving = connection.recv_stream(id);
        let Ok(mut chunks) = receiving.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => verifier.take(&chunk.bytes),
                Ok(None) => {
                    assert!(verifier.is_complete(), "the stream ended early");
                    self.complete = true;
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(error) => panic!("reading {id}: {error}"),
            }
        }
        // Polling finds the frames to send.
        let _ = chunks.finalize();
    }

    fn respond(&mut self, transmit: &quinn_proto::Transmit) {
        let bytes = self.buffer[..transmit.size].to_vec();
        self.responses.push(Datagram::new(self.address, transmit.destination, bytes));
    }
}

impl Host for QuinnHost {
    fn start(&mut self, now: Time) {
        let now = self.instant(now);
        let FlowRole::Sends { to, config, .. } = &self.part else { return };
        let connected = self.endpoint.connect(now, config.clone(), *to, "grid");
        self.connection = Some(connected.expect("a valid address and configuration"));
    }

    fn receive(&mut self, now: Time, datagram: Datagram) {
        let now = self.instant(now);
        self.buffer.clear();
        let bytes = BytesMut::from(&datagram.bytes[..]);
        let event = self.endpoint.handle(now, datagram.from, None, None, bytes, &mut self.buffer);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                let accepted = self.endpoint.accept(incoming, now, &mut self.buffer, None);
                self.connection = Some(accepted.expect("the sender follows the protocol"));
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(transmit)) => self.respond(&transmit),
            None => {}
        }
    }

    fn wake(&mut self, now: Time) {
        let now = self.instant(now);
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(now);
        }
    }

    fn transmit(&mut self, now: Time, out: &mut Vec<Datagram>) {
        let now = self.instant(now);
        out.append(&mut self.responses);
        loop {
            self.exchange_events();
            let mut any = self.act();
            while let Some((_, connection)) = &mut self.connection {
                self.buffer.clear();
                let batch = connection.poll_transmit(now, BATCH_DATAGRAMS, &mut self.buffer);
                let Some(transmit) = batch else { break };
                any = true;
                let segment = transmit.segment_size.unwrap_or(transmit.size);
                for bytes in self.buffer[..transmit.size].chunks(segment) {
                    let (from, to) = (self.address, transmit.destination);
                    out.push(Datagram::new(from, to, bytes.to_vec()));
                }
            }
            if !any {
                return;
            }
        }
    }

    fn next(&mut self) -> Option<Time> {
        let (_, connection) = self.connection.as_mut()?;
        let since = connection.poll_timeout()?.saturating_duration_since(self.epoch);
        Some(Time::ZERO + since)
    }

    fn ended(&self) -> bool {
        self.complete || self.aborted.is_some()
    }

    fn progress(&mut self) -> Progress {
        let mut progress = Progress { aborted: self.aborted.clone(), ..Progress::default() };
        if let FlowRole::Receives { verifier, .. } = &self.part {
            progress.delivered = verifier.delivered();
        }
        if let Some((_, connection)) = &self.connection {
            let path = connection.stats().path;
            progress.packets_sent = path.sent_packets;
            progress.packets_lost = path.lost_packets;
        }
        progress
    }
}

impl fmt::Debug for QuinnHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuinnHost").field("address", &self.address).finish_non_exhaustive()
    }
}
