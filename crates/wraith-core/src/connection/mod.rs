//! One connection: the protocol after the handshake and, on the initiator's side, during it.
//!
//! # Usage
//!
//! A connection belongs to an [`Endpoint`](crate::Endpoint), which passes it datagrams and time.
//! The application gets it from [`Endpoint::connection`](crate::Endpoint::connection) to open,
//! write, finish, read and close. After any mutation (a datagram, a timeout, a call), the caller
//! drains the outputs in this order:
//!
//! 1. datagrams ([`Endpoint::poll_transmit`](crate::Endpoint::poll_transmit)), until there are
//!    none;
//! 2. events, until there are none;
//! 3. the next timeout.
//!
//! It then sleeps until a datagram arrives or the timeout expires. `now` never goes backwards.
//!
//! # Invariants
//!
//! - State changes only after a packet authenticated. A frame that breaks the protocol closes the
//!   connection.
//! - Packet numbers are used once, in order. Every sent packet is either in `recovery` or settled
//!   (acknowledged or lost, with its frames handled).
//! - The steady state allocates nothing per packet.

mod blocked;
mod candidates;
mod drawn_sizes;
mod handshake;
mod migration;
mod paths;
mod ratchet;
mod receive;
mod timers;
mod transmit;

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use tracing::{Span, info, info_span};
use wraith_crypto::Suite;
use wraith_crypto::identity::NodeId;
use wraith_noise::{DatagramFingerprint, Opener, Sealer};

use crate::acks::Acks;
use crate::config::TransportConfig;
use crate::event::{ConnectionStats, Event};
use crate::frame::SentFrames;
use crate::path::Path;
use crate::qlog::{self, LogStart, Recorder};
use crate::recovery::{Recovery, RecoveryConfig, Settled};
use crate::secret_rng::SecretRng;
use crate::streams::{Read, Role, StreamConfig, StreamId, Streams};
use crate::{BlockPool, CloseReason, PathAddr, StreamError, Time, Violation};

use blocked::Blocked;
use candidates::Candidates;
pub use candidates::Exporter;
use handshake::Handshake;
pub(crate) use handshake::{AuthenticatedH3, DialArgs, parameters};
use paths::Paths;
use ratchet::RatchetState;

/// RTT assumed before the first sample. RFC 9002 §6.2.2 recommends 333 ms. Most of our paths are
/// far shorter, and a PTO that fires too early costs one packet.
const INITIAL_RTT: Duration = Duration::from_millis(100);
/// Maximum delay of the ACKs that this side sends.
pub(crate) const ACK_DELAY_MAX: Duration = Duration::from_millis(25);
/// Lowest rate limit, in bytes per second. Below it, timers that expect answers would expire.
const RATE_LIMIT_MIN: u64 = 1024;
/// The first skipped packet number comes after this many packets, and within as many more. A gap
/// triggers an immediate ACK, which disturbs a sender's measurements during startup.
const SKIP_RANGE_FIRST: u64 = 1 << 10;
/// Maximum number of queued DATAGRAM frames. Beyond it, the oldest is dropped.
const DATAGRAMS_MAX: usize = 64;

/// Keys and counters of an established connection.
struct ConnectionKeys {
    suite: Suite,
    sealer: Sealer,
    opener: Opener,
    /// Start time and first packet number of the current sending key phase.
    phase_since: Time,
    phase_first_pn: u64,
    /// Time at which the previous receiving keys are discarded.
    forget_at: Option<Time>,
}

/// H3, retransmitted until a packet proves that the responder has it (SPEC §3.4).
#[derive(Debug)]
struct H3Retransmission {
    h3: Vec<u8>,
    next: Time,
    interval: Duration,
}

#[derive(Debug)]
enum ConnectionState {
    /// Initiator that waits for H2.
    Handshake(Box<Handshake>),
    Established,
    /// This side closed the connection. CLOSE is sent or retransmitted while `due`, until `until`.
    Closing {
        code: u64,
        reason: String,
        due: bool,
        next: Time,
        until: Time,
    },
    /// The peer closed the connection. It gets one CLOSE in answer; late packets are ignored until
    /// `until`.
    Draining {
        answer_due: bool,
        until: Time,
    },
    Drained,
}

/// The acknowledgement frequency requested from the peer (SPEC §5, ACK_FREQUENCY).
#[derive(Debug)]
struct AckFrequency {
    sequence: u64,
    packets: u64,
    delay: Duration,
    pending: bool,
}

/// A connection. The module documentation gives the order of calls.
pub struct Connection {
    role: Role,
    config: TransportConfig,
    peer: NodeId,
    state: ConnectionState,
    sealed: Option<ConnectionKeys>,
    confirming: Option<H3Retransmission>,
    /// Responder: name of the accepted H3, to recognise its retransmissions.
    h3: Option<DatagramFingerprint>,
    paths: Paths,
    recovery: Recovery<SentFrames>,
    settled: Settled<SentFrames>,
    streams: Streams,
    acks: Acks,
    frequency: AckFrequency,
    datagrams: VecDeque<Bytes>,
    datagram_max: u64,
    /// This side's address as last reported by the peer.
    observed: Option<SocketAddr>,
    /// OBSERVED_ADDRESS is due in the next ack-eliciting packet.
    observed_due: bool,
    next_pn: u64,
    /// The next packet number to skip, and the range from which the one after it is drawn.
    skip_pn: u64,
    skip_range: u64,
    /// Number of ack-eliciting packets that go out before the next MTU probe.
    packets_before_mtu_probe: u64,
    /// Probe packets to send regardless of congestion control.
    probes: u8,
    ping: bool,
    idle_timeout: Duration,
    /// Time of the last authentic packet, or of the first ack-eliciting packet sent after it.
    idle_since: Time,
    /// Time of the last keep-alive PING since then.
    kept_alive_at: Option<Time>,
    /// Time at which the pacer releases the next packets, as of the last `poll_transmit`.
    pace_at: Option<Time>,
    candidates: Candidates,
    /// Source of [`Self::export_secret`].
    exporter: Option<Exporter>,
    ratchet: RatchetState,
    blocked: Blocked,
    events: VecDeque<Event>,
    qlog: Option<Box<Recorder>>,
    /// Tracing span of this connection. It contains neither keys nor NodeIds.
    span: Span,
    stats: ConnectionStats,
    /// Random numbers for values that are not secret.
    rng: ChaCha20Rng,
    secrets: SecretRng,
}

/// Arguments of [`Connection::new`].
pub(crate) struct ConnectionArgs {
    pub(crate) role: Role,
    pub(crate) config: TransportConfig,
    pub(crate) pool: BlockPool,
    pub(crate) peer: NodeId,
    pub(crate) remote: PathAddr,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) secrets: SecretRng,
}

impl Connection {
    fn new(now: Time, parts: ConnectionArgs, state: ConnectionState) -> Self {
        let ConnectionArgs { role, mut config, pool, peer, remote, mut rng, secrets } = parts;
        config.initial_mtu =
            drawn_sizes::draw_initial_mtu(config.initial_mtu, config.max_mtu, &mut rng);
        let recovery = Recovery::new(now, &recovery_config(&config, rng.next_u64()));
        let start = LogStart::new(now, role, remote);
        let qlog = config.qlog.as_deref().and_then(|factory| Recorder::new(factory, &start));
        let streams = Streams::new(role, &stream_config(&config), pool);
        Self {
            role,
            peer,
            state,
            sealed: None,
            confirming: None,
            h3: None,
            paths: Paths::new(Path::new(remote, config.initial_mtu, config.max_mtu)),
            recovery,
            settled: Settled::default(),
            streams,
            acks: Acks::new(ACK_DELAY_MAX),
            frequency: AckFrequency {
                sequence: 0,
                packets: 2,
                delay: ACK_DELAY_MAX,
                pending: false,
            },
            datagrams: VecDeque::new(),
            datagram_max: 0,
            observed: None,
            observed_due: false,
            next_pn: 0,
            skip_pn: SKIP_RANGE_FIRST + rng.next_u64() % SKIP_RANGE_FIRST,
            skip_range: SKIP_RANGE_FIRST,
            packets_before_mtu_probe: drawn_sizes::draw_first_mtu_probe(&mut rng),
            probes: 0,
            ping: false,
            idle_timeout: config.idle_timeout,
            idle_since: now,
            kept_alive_at: None,
            pace_at: None,
            candidates: Candidates::default(),
            exporter: None,
            ratchet: RatchetState::new(now, role),
            blocked: Blocked::default(),
            events: VecDeque::new(),
            qlog,
            span: info_span!("connection", ?role, %remote),
            stats: ConnectionStats::default(),
            rng,
            secrets,
            config,
        }
    }

    /// Opens a stream. Returns `None` during the handshake and while the peer's stream limit is
    /// reached.
    pub fn open_stream(&mut self) -> Option<StreamId> {
        if self.sealed.is_none() { None } else { self.streams.open() }
    }

    /// Returns this side's role, which is part of the ids of the streams that it opens.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the number of streams that this side has opened.
    pub fn streams_opened(&mut self) -> u64 {
        self.streams.opened()
    }

    /// Returns the number of streams that this side may open in total. After
    /// [`Event::StreamLimitRaised`] it is larger.
    pub fn stream_limit(&self) -> u64 {
        self.streams.limit()
    }

    /// Queues `bytes` on a stream. The caller must respect [`Self::send_capacity`].
    pub fn write(&mut self, id: StreamId, bytes: Bytes) -> Result<(), StreamError> {
        self.streams.write(id, bytes)
    }

    /// Returns the number of bytes that the stream accepts now. After 0, [`Event::Writable`]
    /// reports new room.
    pub fn send_capacity(&mut self, id: StreamId) -> usize {
        self.streams.send_capacity(id)
    }

    /// Ends this side's sending half of a stream after the bytes written so far.
    pub fn finish(&mut self, id: StreamId) -> Result<(), StreamError> {
        self.streams.finish(id)
    }

    /// Resets this side's sending half of a stream with `code`.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        self.streams.reset(id, code)
    }

    /// Stops reading a stream and sends STOP_SENDING with `code`.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        self.streams.stop(id, code)
    }

    /// Returns the next bytes of a stream, in order.
    pub fn read(&mut self, now: Time, id: StreamId) -> Result<Read, StreamError> {
        // The minimum RTT: a window that grew with its own queue would grow without end.
        let rtt = self.recovery.rtt().min();
        self.streams.read(now, rtt, id)
    }

    /// Returns the maximum length of an unreliable datagram now, in bytes, as limited by the path
    /// and the peer. Returns 0 if the peer accepts none. The path allows at least 627 bytes, on the
    /// narrowest one that is used.
    pub fn max_datagram_len(&self) -> usize {
        let overhead = transmit::OVERHEAD + transmit::DATAGRAM_HEADER;
        let peer = usize::try_from(self.datagram_max).unwrap_or(usize::MAX);
        self.paths.current().mtu().saturating_sub(overhead).min(peer)
    }

    /// Queues an unreliable datagram. Returns false if it exceeds [`Self::max_datagram_len`].
    pub fn send_datagram(&mut self, bytes: Bytes) -> bool {
        if bytes.len() > self.max_datagram_len() {
            return false;
        }
        if self.datagrams.len() == DATAGRAMS_MAX {
            self.datagrams.pop_front();
        }
        self.datagrams.push_back(bytes);
        true
    }

    /// Limits the sending rate to `bytes_per_second` (at least 1 KiB) on every path. `u64::MAX`
    /// removes the limit. The rate is averaged over bursts of a few packets and includes whole
    /// packets, so the payload is slightly slower.
    pub fn set_rate_limit(&mut self, now: Time, bytes_per_second: u64) {
        self.recovery.set_rate_limit(now, bytes_per_second.max(RATE_LIMIT_MIN));
    }

    /// Ends the connection as if its idle timeout had expired. For a caller that knows that the
    /// path carries nothing any more. No effect before the handshake is complete.
    pub fn report_path_dead(&mut self, now: Time) {
        if matches!(self.state, ConnectionState::Established) {
            self.close_silently(now, CloseReason::IdleTimeout);
        }
    }

    /// Closes the connection at once and abandons unacknowledged data. Codes from 0x100 up belong
    /// to the application.
    pub fn close(&mut self, now: Time, code: u64, reason: &str) {
        self.close_with(now, code, reason, CloseReason::Local);
    }

    /// Returns the identity of the authenticated peer or, before [`Event::Connected`], of the
    /// intended one.
    pub fn peer(&self) -> NodeId {
        self.peer
    }

    /// Returns the cipher suite of packets once keys exist. The keys always come from
    /// [`KEY_AGREEMENT`](crate::KEY_AGREEMENT).
    pub fn suite(&self) -> Option<Suite> {
        self.sealed.as_ref().map(|sealed| sealed.suite)
    }

    /// Returns the peer's current address.
    pub fn remote(&self) -> PathAddr {
        self.paths.remote()
    }

    /// Returns this side's address as reported by the peer, if any. Other hosts may reach this side
    /// at it if the NATs in between allow that.
    pub fn observed_address(&self) -> Option<SocketAddr> {
        self.observed
    }

    /// Returns true if the peer has proven that it receives at `address`.
    pub(crate) fn is_validated(&self, address: PathAddr) -> bool {
        self.paths.is_validated(address)
    }

    /// Returns true if a datagram carries this connection's masked connection ID.
    pub(crate) fn has_connection_id(&self, datagram: &[u8]) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| sealed.opener.has_connection_id(datagram))
    }

    /// Returns true once the connection ended. It then only answers late packets.
    pub fn is_closed(&self) -> bool {
        !matches!(self.state, ConnectionState::Handshake(_) | ConnectionState::Established)
    }

    /// Returns true when the connection can be removed.
    pub(crate) fn is_drained(&self) -> bool {
        matches!(self.state, ConnectionState::Drained) && self.events.is_empty()
    }

    /// Returns counters and estimates.
    pub fn stats(&self) -> ConnectionStats {
        let rtt = self.recovery.rtt();
        ConnectionStats {
            packets_lost: self.recovery.packets_lost(),
            spurious_losses: self.recovery.spurious_losses(),
            rtt: rtt.smoothed(),
            min_rtt: rtt.min(),
            congestion_window: self.recovery.window(),
            bytes_in_flight: self.recovery.bytes_in_flight(),
            mtu: self.paths.current().mtud.current(),
            ecn_capable: self.recovery.is_ecn_capable(),
            ecn_ce: self.recovery.ecn_ce(),
            ..self.stats
        }
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if self.is_closed() {
            return None;
        }
        self.streams.poll_event().map(Event::from).or_else(|| self.poll_candidates())
    }

    fn close_with(&mut self, now: Time, code: u64, reason: &str, why: CloseReason) {
        if self.is_closed() {
            return;
        }
        let until = now + self.recovery.pto() * 3;
        self.state = if self.sealed.is_some() {
            ConnectionState::Closing {
                code,
                reason: reason.to_owned(),
                due: true,
                next: now,
                until,
            }
        } else {
            ConnectionState::Drained
        };
        self.announce_end(now, why);
    }

    /// Reports the end, after the stream events that came before it.
    fn announce_end(&mut self, now: Time, why: CloseReason) {
        if let Some(qlog) = &mut self.qlog {
            qlog.closed(now, &why);
        }
        // The log omits the peer's reason, which is private and untrusted.
        let (how, code) = qlog::CloseKind::of(&why);
        let lost = self.recovery.packets_lost();
        let ConnectionStats { packets_sent, packets_received, .. } = self.stats;
        info!(parent: &self.span, ?how, code, packets_sent, packets_received, lost, "closed");
        while let Some(event) = self.streams.poll_event() {
            self.events.push_back(event.into());
        }
        self.events.push_back(Event::Closed(why));
    }

    fn close_for_violation(&mut self, now: Time, violation: Violation) {
        self.close_with(now, violation.code, violation.what, CloseReason::Violation(violation));
    }

    /// Ends the connection without sending CLOSE.
    fn close_silently(&mut self, now: Time, why: CloseReason) {
        if !self.is_closed() {
            self.state = ConnectionState::Drained;
            self.announce_end(now, why);
        }
    }

    /// Reports that the handshake is complete.
    fn announce_start(&mut self, now: Time) {
        self.events.push_back(Event::Connected);
        let remote = self.paths.remote();
        let (rtt, keys) = (self.recovery.rtt().smoothed(), wraith_noise::KEY_AGREEMENT);
        let cipher = self.suite().map_or("", Suite::name);
        info!(parent: &self.span, ?rtt, keys, cipher, "connected");
        if let Some(qlog) = &mut self.qlog {
            qlog.record(now, &qlog::Event::ConnectionStarted { remote });
            qlog.update(now, &self.recovery);
        }
    }
}

fn stream_config(config: &TransportConfig) -> StreamConfig {
    StreamConfig {
        connection_window: config.connection_window_initial,
        stream_window: config.stream_window_initial,
        streams_max: config.streams_max,
        connection_window_max: config.connection_window_max,
        stream_window_max: config.stream_window_max,
        send_buffer_max: config.send_buffer_max,
    }
}

fn recovery_config(config: &TransportConfig, seed: u64) -> RecoveryConfig {
    RecoveryConfig {
        congestion: config.congestion.clone(),
        initial_rtt: INITIAL_RTT,
        max_ack_delay: ACK_DELAY_MAX,
        mtu: config.initial_mtu,
        seed,
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("role", &self.role)
            .field("remote", &self.paths.remote())
            .field("closed", &self.is_closed())
            .field("next_pn", &self.next_pn)
            .finish_non_exhaustive()
    }
}
