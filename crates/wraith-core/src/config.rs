//! What an endpoint and its connections are allowed to use. Every limit has a default with its reason.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use wraith_crypto::Policy;
use wraith_crypto::identity::{NodeId, SecretIdentity};
use wraith_noise::DoorKey;

use crate::congestion::{Algorithm, ControllerFactory};
use crate::qlog::SinkFactory;
use crate::secret_rng::Entropy;

/// The defaults of [`TransportConfig::ratchet_interval`] and [`TransportConfig::ratchet_bytes`].
const RATCHET_INTERVAL: Duration = Duration::from_secs(8 * 60);
const RATCHET_BYTES: u64 = 1 << 35;
// SPEC §4.6: one in 10 minutes of use, and before 2^36 bytes.
const _: () = assert!(RATCHET_INTERVAL.as_secs() < 10 * 60 && RATCHET_BYTES < 1 << 36);

/// Configuration of an [`Endpoint`](crate::Endpoint).
#[derive(Debug)]
pub struct EndpointConfig {
    /// Who we are.
    pub identity: SecretIdentity,
    /// Limits and tuning of each connection.
    pub transport: TransportConfig,
    /// Who may begin a connection with us: who has one of these (SPEC §3.1). Everybody else gets silence.
    pub doors: Vec<DoorKey>,
    /// If set, a connection is made only with these. H3 tells who somebody is (SPEC §3); anybody else's is not answered,
    /// so that it looks lost.
    pub admitted: Option<HashSet<NodeId>>,
    /// Unix time, in seconds, at [`Time::ZERO`](crate::Time::ZERO): the ±90 s check of SPEC §3.4 needs a wall clock.
    pub unix_time_at_zero: u64,
    /// The system's randomness, which goes into every secret. Without it everything follows from the endpoint's seed, and who reads that
    /// knows all secrets to come.
    pub entropy: Entropy,
    /// Established connections at once; further H1s get silence.
    pub connections_max: usize,
    /// Handshakes between H2 and H3 at once. Half of the places are for who has shown a cookie (SPEC §3.6), and of these the
    /// oldest of the source that has most gives way.
    pub half_open_max: usize,
}

impl EndpointConfig {
    /// Dials as `identity`, with default limits, and lets nobody in.
    pub fn new(identity: SecretIdentity) -> Self {
        Self {
            identity,
            transport: TransportConfig::default(),
            doors: Vec::new(),
            admitted: None,
            unix_time_at_zero: 0,
            entropy: Entropy::default(),
            connections_max: 1024,
            half_open_max: 256,
        }
    }

    /// As [`new`](Self::new), with a door for everybody who knows the NodeId.
    pub fn open(identity: SecretIdentity) -> Self {
        let doors = vec![DoorKey::of_everybody(identity.node_id())];
        Self { doors, ..Self::new(identity) }
    }
}

/// Limits and tuning of a connection.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// Silence after which a connection ends; the smaller of both sides counts.
    pub idle_timeout: Duration,
    /// Whether to send PING at a third of the idle timeout.
    pub keep_alive: bool,
    /// Receive window a connection starts with, in bytes.
    pub connection_window_initial: u64,
    /// Ceiling of the connection's receive window: the memory a peer can make us hold.
    pub connection_window_max: u64,
    /// Receive window a stream starts with, in bytes.
    pub stream_window_initial: u64,
    /// Ceiling of one stream's receive window.
    pub stream_window_max: u64,
    /// Bytes one stream may hold that are not acknowledged yet.
    pub send_buffer_max: u64,
    /// Streams the peer may have open at once.
    pub streams_max: u64,
    /// Congestion control: [`Algorithm::default`] unless a controller of one's own is plugged in.
    pub congestion: Arc<dyn ControllerFactory>,
    /// Makes the event log of each connection; `None`: nothing is logged.
    pub qlog: Option<Arc<dyn SinkFactory>>,
    /// UDP payload that every path is assumed to carry.
    pub initial_mtu: u16,
    /// Largest UDP payload to probe for, and to accept.
    pub max_mtu: u16,
    /// What packets may be sealed with, SPEC §3.3 bits ([`Policy::packet_suites`]).
    pub suites: u8,
    /// Packets sealed under one key before the next phase (SPEC §4.5).
    pub phase_packets: u64,
    /// The initiator asks for a ratchet this long after the last one (SPEC §4.6), while the connection is in use.
    pub ratchet_interval: Duration,
    /// And before that, once so many bytes went over the connection, both ways together.
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
