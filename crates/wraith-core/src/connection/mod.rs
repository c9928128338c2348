//! One connection: the protocol after (and, for the initiator, during) the handshake.
//!
//! # How it is used
//!
//! A connection belongs to an [`Endpoint`](crate::Endpoint), which feeds it datagrams and time. The application
//! mutates it through [`Endpoint::connection`](crate::Endpoint::connection): open, write, finish, read, close. After
//! any mutation (a datagram, a timeout, a call) the outputs are drained in this order until each is empty:
//! datagrams ([`Endpoint::poll_transmit`](crate::Endpoint::poll_transmit)), events, then the next timeout; then one
//! sleeps until a datagram or that timeout. `now` never goes backwards.
//!
//! # What must stay true
//!
//! - State changes only after a packet authenticated. A frame that breaks the protocol closes the connection.
//! - Packet numbers are used once, in order; every sent packet is either in `recovery` or settled.
//! - Steady state allocates nothing per packet.

mod blocked;
mod candidates;
mod handshake;
mod moves;
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
use wraith_noise::{DatagramName, Opener, Sealer};

use crate::acks::Acks;
use crate::config::TransportConfig;
use crate::event::{ConnectionStats, Event};
use crate::frame::SentFrames;
use crate::path::{Candidate, Path, Response};
use crate::qlog::{self, Recorder, Start};
use crate::recovery::{Recovery, RecoveryConfig, Settled};
use crate::secret_rng::SecretRng;
use crate::streams::{Read, Role, StreamConfig, StreamId, Streams};
use crate::{BlockPool, CloseReason, PathAddr, StreamError, Time, Violation};

use blocked::Blocked;
use candidates::Candidates;
pub use candidates::Exporter;
use handshake::Handshake;
pub(crate) use handshake::{Dial, Proof, parameters};
use moves::Settling;
use ratchet::Ratcheting;

/// RTT assumed before the first sample (RFC 9002 §6.2.2 says 333 ms; most of our paths are far shorter, and a PTO
/// too early costs one packet).
const INITIAL_RTT: Duration = Duration::from_millis(100);
/// Longest we hold back an ACK when nothing else calls for it.
pub(crate) const ACK_DELAY_MAX: Duration = Duration::from_millis(25);
/// The lowest cap on the rate, in bytes per second: below it, timers that expect answers would run out.
const RATE_LIMIT_MIN: u64 = 1024;
/// The first packet number that is left out comes after so many packets, and within as many more. A gap asks for an ACK at once,
/// which disturbs what a sender measures while it still starts.
const SKIP_RANGE_FIRST: u64 = 1 << 10;
/// Unsent DATAGRAM frames held; further ones push out the oldest.
const DATAGRAMS_MAX: usize = 64;

/// Keys and counters of the sealed phase of a connection.
struct Sealed {
    suite: Suite,
    sealer: Sealer,
    opener: Opener,
    /// When the current sending phase began, and its first packet number.
    phase_since: Time,
    phase_first_pn: u64,
    /// When the previous receiving keys are forgotten.
    forget_at: Option<Time>,
}

/// H3, repeated until the responder proves that it has it (SPEC §3.4).
#[derive(Debug)]
struct Confirming {
    h3: Vec<u8>,
    next: Time,
    interval: Duration,
}

#[derive(Debug)]
enum State {
    /// Initiator, before H2.
    Handshake(Box<Handshake>),
    Established,
    /// We closed: CLOSE is (re)sent when `due`, until `until`.
    Closing {
        code: u64,
        reason: String,
        due: bool,
        next: Time,
        until: Time,
    },
    /// The peer closed: it is told once that we know, then late packets are ignored until `until`.
    Draining {
        answer_due: bool,
        until: Time,
    },
    Drained,
}

/// What we told the peer about acknowledging our packets (SPEC §5, ACK_FREQUENCY).
#[derive(Debug)]
struct AckFrequency {
    sequence: u64,
    packets: u64,
    delay: Duration,
    pending: bool,
}

/// A connection; see the module documentation for the order of calls.
pub struct Connection {
    role: Role,
    config: TransportConfig,
    peer: NodeId,
    state: State,
    sealed: Option<Sealed>,
    confirming: Option<Confirming>,
    /// Responder: the H3 that was accepted, to know a repeat.
    h3: Option<DatagramName>,
    path: Path,
    candidate: Option<Candidate>,
    /// The address that the peer has moved away from, until it is known whether it is still there.
    left: Option<Candidate>,
    /// That address from then on, and how many more times it may be asked when the path in use falls silent.
    retreat: Option<(PathAddr, u8)>,
    /// The address that our own side wants to move to.
    chosen: Option<Candidate>,
    /// Where our own side wants to move as soon as the peer has H3: before that it would drop what asks about a path.
    early_move: Option<PathAddr>,
    /// We have just moved of our own accord.
    settling: Option<Settling>,
    /// The last PATH_CHALLENGE of the packet at work.
    challenged: Option<[u8; 8]>,
    responses: VecDeque<Response>,
    recovery: Recovery<SentFrames>,
    settled: Settled<SentFrames>,
    streams: Streams,
    acks: Acks,
    frequency: AckFrequency,
    datagrams: VecDeque<Bytes>,
    datagram_max: u64,
    /// Where the peer sees us, as it said last.
    observed: Option<SocketAddr>,
    /// The peer is to be told where we see it, in the next packet that elicits an ACK.
    observed_due: bool,
    next_pn: u64,
    /// The next packet number to leave out, and within how many the one after it is drawn.
    skip_pn: u64,
    skip_range: u64,
    /// Packets that must go out whatever congestion control says.
    probes: u8,
    ping: bool,
    idle_timeout: Duration,
    /// The peer was last heard then, or we sent the first packet since it was.
    idle_since: Time,
    /// When we last sent a PING since then to keep the connection alive.
    kept_alive_at: Option<Time>,
    /// When the pacer lets the next packets go, as of the last `poll_transmit`.
    pace_at: Option<Time>,
    candidates: Candidates,
    /// What [`Self::export_secret`] is made from.
    exporter: Option<Exporter>,
    ratchet: Ratcheting,
    blocked: Blocked,
    events: VecDeque<Event>,
    qlog: Option<Box<Recorder>>,
    /// What is traced of this connection belongs to it. It names neither keys nor NodeIds.
    span: Span,
    stats: ConnectionStats,
    /// Of what is no secret.
    rng: ChaCha20Rng,
    secrets: SecretRng,
}

/// What a connection is made from.
pub(crate) struct Parts {
    pub(crate) role: Role,
    pub(crate) config: TransportConfig,
    pub(crate) pool: BlockPool,
    pub(crate) peer: NodeId,
    pub(crate) remote: PathAddr,
    pub(crate) rng: ChaCha20Rng,
    pub(crate) secrets: SecretRng,
}

impl Connection {
    fn new(now: Time, parts: Parts, state: State) -> Self {
        let Parts { role, config, pool, peer, remote, mut rng, secrets } = parts;
        let recovery = Recovery::new(now, &recovery_config(&config, rng.next_u64()));
        let start = Start::new(now, role, remote);
        let qlog = config.qlog.as_deref().and_then(|factory| Recorder::new(factory, &start));
        let streams = Streams::new(role, &stream_config(&config), pool);
        Self {
            role,
            peer,
            state,
            sealed: None,
            confirming: None,
            h3: None,
            path: Path::new(remote, config.initial_mtu, config.max_mtu),
            candidate: None,
            left: None,
            retreat: None,
            chosen: None,
            early_move: None,
            settling: None,
            challenged: None,
            responses: VecDeque::new(),
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
            probes: 0,
            ping: false,
            idle_timeout: config.idle_timeout,
            idle_since: now,
            kept_alive_at: None,
            pace_at: None,
            candidates: Candidates::default(),
            exporter: None,
            ratchet: Ratcheting::new(now, role),
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

    /// Opens a stream; `None` while the peer's limit is reached or the handshake runs.
    pub fn open_stream(&mut self) -> Option<StreamId> {
        if self.sealed.is_none() { None } else { self.streams.open() }
    }

    /// Queues `bytes` on a stream. The caller respects [`Self::send_capacity`].
    pub fn write(&mut self, id: StreamId, bytes: Bytes) -> Result<(), StreamError> {
        self.streams.write(id, bytes)
    }

    /// Bytes that the stream takes now; [`Event::Writable`] says when it is more than zero again.
    pub fn send_capacity(&mut self, id: StreamId) -> usize {
        self.streams.send_capacity(id)
    }

    /// Ends our side of a stream after what was written.
    pub fn finish(&mut self, id: StreamId) -> Result<(), StreamError> {
        self.streams.finish(id)
    }

    /// Gives up sending on a stream.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        self.streams.reset(id, code)
    }

    /// Tells the peer that we will not read more of a stream.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        self.streams.stop(id, code)
    }

    /// The next bytes of a stream, in order.
    pub fn read(&mut self, now: Time, id: StreamId) -> Result<Read, StreamError> {
        // The shortest one: a window that grew with its own queue would grow for ever.
        let rtt = self.recovery.rtt().min();
        self.streams.read(now, rtt, id)
    }

    /// Largest unreliable datagram that goes out now, in bytes: what the path carries, and the peer takes. 0 if it takes
    /// none.
    pub fn max_datagram_len(&self) -> usize {
        let overhead = transmit::OVERHEAD + transmit::DATAGRAM_HEADER;
        let peer = usize::try_from(self.datagram_max).unwrap_or(usize::MAX);
        self.path.mtu().saturating_sub(overhead).min(peer)
    }

    /// Queues an unreliable datagram. False if it is larger than [`Self::max_datagram_len`].
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

    /// Sends no faster than `bytes_per_second` from now on (at least 1 KiB), on whatever path; `u64::MAX`: as fast as
    /// the path allows. Averaged over bursts of a few packets, and counted in packets, so the content is a little slower.
    pub fn set_rate_limit(&mut self, now: Time, bytes_per_second: u64) {
        self.recovery.set_rate_limit(now, bytes_per_second.max(RATE_LIMIT_MIN));
    }

    /// Nothing will get through any more on the path there is, as who carries it knows: ends now as it would when the idle timeout is
    /// over. Without effect before the handshake is done.
    pub fn give_up_path(&mut self, now: Time) {
        if matches!(self.state, State::Established) {
            self.fall_silent(now, CloseReason::IdleTimeout);
        }
    }

    /// Closes at once; unacknowledged data is given up. `code` from 0x100 up is the application's.
    pub fn close(&mut self, now: Time, code: u64, reason: &str) {
        self.close_with(now, code, reason, CloseReason::Local);
    }

    /// The authenticated peer, or, before [`Event::Connected`], the one we mean to reach.
    pub fn peer(&self) -> NodeId {
        self.peer
    }

    /// What packets are sealed with, once keys are there; they come from [`KEY_AGREEMENT`](crate::KEY_AGREEMENT), always.
    pub fn suite(&self) -> Option<Suite> {
        self.sealed.as_ref().map(|sealed| sealed.suite)
    }

    /// Where the peer is.
    pub fn remote(&self) -> PathAddr {
        self.path.remote
    }

    /// Where the peer sees us, if it has said so: what others may reach us at, if the NATs in between allow it.
    pub fn observed_address(&self) -> Option<SocketAddr> {
        self.observed
    }

    /// Whether the peer has shown that it receives at `address`.
    pub(crate) fn is_validated(&self, address: PathAddr) -> bool {
        let receives = |c: &Candidate| c.remote == address && c.receives();
        self.path.remote == address
            || [&self.candidate, &self.chosen].into_iter().flatten().any(receives)
    }

    /// Whether a datagram carries this connection's ID under its mask.
    pub(crate) fn recognises(&self, datagram: &[u8]) -> bool {
        self.sealed.as_ref().is_some_and(|sealed| sealed.opener.recognises(datagram))
    }

    /// True once the connection ended; only late packets are still answered.
    pub fn is_closed(&self) -> bool {
        !matches!(self.state, State::Handshake(_) | State::Established)
    }

    /// True when nothing is left to do and the connection can be forgotten.
    pub(crate) fn is_drained(&self) -> bool {
        matches!(self.state, State::Drained) && self.events.is_empty()
    }

    /// Counters and estimates.
    pub fn stats(&self) -> ConnectionStats {
        let rtt = self.recovery.rtt();
        ConnectionStats {
            packets_lost: self.recovery.packets_lost(),
            spurious_losses: self.recovery.spurious_losses(),
            rtt: rtt.smoothed(),
            min_rtt: rtt.min(),
            congestion_window: self.recovery.window(),
            bytes_in_flight: self.recovery.bytes_in_flight(),
            mtu: self.path.mtud.current(),
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
            State::Closing { code, reason: reason.to_owned(), due: true, next: now, until }
        } else {
            State::Drained
        };
        self.announce_end(now, why);
    }

    /// What happened on streams before the end is told before it.
    fn announce_end(&mut self, now: Time, why: CloseReason) {
        if let Some(qlog) = &mut self.qlog {
            qlog.closed(now, &why);
        }
        // The peer's words are its own business, and untrusted.
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

    /// Ends the connection without telling the peer.
    fn fall_silent(&mut self, now: Time, why: CloseReason) {
        if !self.is_closed() {
            self.state = State::Drained;
            self.announce_end(now, why);
        }
    }

    /// The handshake is complete.
    fn announce_start(&mut self, now: Time) {
        self.events.push_back(Event::Connected);
        let remote = self.path.remote;
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
            .field("remote", &self.path.remote)
            .field("closed", &self.is_closed())
            .field("next_pn", &self.next_pn)
            .finish_non_exhaustive()
    }
}
