//! Configuration and resource limits of an endpoint and its connections. Each limit has a default.

use std::sync::Arc;
use std::time::Duration;

use wraith_crypto::Policy;
use wraith_crypto::identity::SecretIdentity;
use wraith_noise::AccessKey;

use crate::congestion::{Algorithm, ControllerFactory};
use crate::door::Door;
use crate::qlog::SinkFactory;
use crate::secret_rng::Entropy;
use crate::wall_clock::WallClock;

/// Defaults of [`TransportConfig::ratchet_interval`] and [`TransportConfig::ratchet_bytes`].
const RATCHET_INTERVAL: Duration = Duration::from_secs(8 * 60);
const RATCHET_BYTES: u64 = 1 << 35;
// SPEC §4.6 requires a ratchet within 10 minutes of use and before 2^36 bytes.
const _: () = assert!(RATCHET_INTERVAL.as_secs() < 10 * 60 && RATCHET_BYTES < 1 << 36);

/// Configuration of an [`Endpoint`](crate::Endpoint).
#[derive(Debug)]
pub struct EndpointConfig {
    /// The endpoint's long-term identity.
    pub identity: SecretIdentity,
    /// Limits and tuning of each connection.
    pub transport: TransportConfig,
    /// The accept rules of the first door ([`DoorId::FIRST`](crate::DoorId::FIRST)).
    pub door: Door,
    /// The wall clock for the time in H1 (SPEC §3.4).
    pub wall_clock: WallClock,
    /// The system's randomness, mixed into every secret. Without it, every secret follows from the
    /// endpoint's seed, and an attacker that reads the seed can compute all future secrets.
    pub entropy: Entropy,
    /// Maximum number of established connections of all doors. Beyond it, H1s get no answer.
    pub connections_max: usize,
    /// Maximum number of half-open handshakes, between H2 and H3. Half of them are reserved for
    /// initiators that returned a cookie (SPEC §3.6). When all places are taken, the oldest
    /// handshake of the source with the most is evicted, unproven initiators first.
    pub half_open_max: usize,
}

impl EndpointConfig {
    /// A client configuration for `identity`: default limits, and no incoming connections.
    pub fn new(identity: SecretIdentity) -> Self {
        Self {
            identity,
            transport: TransportConfig::default(),
            door: Door::default(),
            wall_clock: WallClock::default(),
            entropy: Entropy::default(),
            connections_max: 1024,
            half_open_max: 256,
        }
    }

    /// Like [`new`](Self::new), but accepts every initiator that has this endpoint's NodeId (public
    /// identity).
    pub fn open(identity: SecretIdentity) -> Self {
        let access_keys = vec![AccessKey::public(identity.node_id())];
        Self { door: Door { access_keys, ..Door::default() }, ..Self::new(identity) }
    }
}

/// Limits and tuning of a connection.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// Idle timeout. The smaller value of both sides applies.
    pub idle_timeout: Duration,
    /// Whether to send PING at a third of the idle timeout.
    pub keep_alive: bool,
    /// Initial receive window of a connection, in bytes.
    pub connection_window_initial: u64,
    /// Maximum receive window of a connection, in bytes. It bounds the memory that a peer can
    /// occupy.
    pub connection_window_max: u64,
    /// Initial receive window of a stream, in bytes.
    pub stream_window_initial: u64,
    /// Maximum receive window of a stream, in bytes.
    pub stream_window_max: u64,
    /// Maximum number of unacknowledged bytes that one stream buffers.
    pub send_buffer_max: u64,
    /// Maximum number of streams that the peer may have open at once.
    pub streams_max: u64,
    /// Congestion control: [`Algorithm::default`], or a controller of the application.
    pub congestion: Arc<dyn ControllerFactory>,
    /// Creates the event log of each connection. `None` turns logging off.
    pub qlog: Option<Arc<dyn SinkFactory>>,
    /// UDP payload that every path is assumed to carry.
    pub initial_mtu: u16,
    /// Largest UDP payload to probe for, and to accept.
    pub max_mtu: u16,
    /// Cipher suites allowed for packets, as the bits of SPEC §3.3 ([`Policy::packet_suites`]).
    pub suites: u8,
    /// Packets sealed under one key before the next phase (SPEC §4.5).
    pub phase_packets: u64,
    /// Time between two ratchets, while the connection is in use. The initiator requests them (SPEC
    /// §4.6).
    pub ratchet_interval: Duration,
    /// Bytes, of both directions together, after which the initiator requests a ratchet before the
    /// interval is over.
    pub ratchet_bytes: u64,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_secs(30),
            keep_alive: true,
            connection_window_initial: 3 << 20,
            connection_window_max: 32 << 20,
            stream_window_initial: 2 << 20,
            stream_window_max: 24 << 20,
            send_buffer_max: 24 << 20,
            streams_max: 128,
            congestion: Algorithm::default().into(),
            qlog: None,
            initial_mtu: 1200,
            max_mtu: 65_000,
            suites: Policy::Default.packet_suites(),
            phase_packets: 1 << 20,
            ratchet_interval: RATCHET_INTERVAL,
            ratchet_bytes: RATCHET_BYTES,
        }
    }
}
