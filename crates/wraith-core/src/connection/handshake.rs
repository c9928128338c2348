//! How a connection begins (SPEC §3): the initiator drives H1 → H2 → H3 here; a responder's connection is made from
//! a half-open handshake of the endpoint once H3 authenticated.
//!
//! Invariant: nothing that arrives before H2 authenticates changes this state, so injected garbage cannot end an
//! attempt.

use std::fmt;
use std::time::Duration;

use wraith_crypto::aead::{Suite, aes_hardware};
use wraith_crypto::identity::{InvalidNodeId, SecretIdentity};
use wraith_noise::{
    DatagramName, DoorKey, EphemeralKey, FinalHello, Gated, Initiator, InitiatorHello, Opener,
    Parameters, ResponderHello, Sealer, SessionKeys,
};

use super::{ACK_DELAY_MAX, Confirming, Connection, INITIAL_RTT, Parts, Sealed, State};
use crate::Time;
use crate::config::TransportConfig;

/// First repeat of H1 and H3; doubles each time (SPEC §3.4).
const REPEAT_FIRST: Duration = Duration::from_millis(250);
/// An attempt ends after this long without H2 (SPEC §3.4).
const ATTEMPT_MAX: Duration = Duration::from_secs(10);

/// Cookies that are taken between two repeats of H1: whoever forges some must have the true one's time, and each is answered
/// with an H1 to the same address.
const COOKIES_MAX: u8 = 3;
/// Longer than over a geostationary satellite, with a queue.
const RTT_PLAUSIBLE: Duration = Duration::from_secs(1);
/// Longest the peer may say it delays ACKs; a longer one would only slow our own probes.
const PEER_ACK_DELAY_MAX: Duration = Duration::from_millis(200);

/// An initiator waiting for H2.
pub(crate) struct Handshake {
    initiator: Initiator,
    pub(super) h1: [Vec<u8>; 2],
    /// Of the two, the one to be sent now.
    pub(super) due: Option<usize>,
    pub(super) next: Time,
    pub(super) interval: Duration,
    pub(super) deadline: Time,
    /// H1 has a new mac2, and goes out at once.
    pub(super) has_new_cookie: bool,
    /// Cookies taken since H1 was last repeated.
    pub(super) cookies: u8,
    began: Time,
    /// When H1 was last sent.
    pub(super) sent: Time,
}

impl Handshake {
    /// Takes what a responder under load answers H1 with.
    fn take_cookie(&mut self, datagram: &[u8]) -> bool {
        if self.cookies >= COOKIES_MAX {
            return false;
        }
        let Some(h1) = self.initiator.read_cookie(datagram) else { return false };
        self.h1 = h1;
        self.cookies += 1;
        self.has_new_cookie = true;
        true
    }

    /// The round trip, if H2 came now. After a repeat it is unknown which H1 was answered. Paths are shorter than
    /// [`RTT_PLAUSIBLE`], and the longest are those on which the first H1 is repeated before its answer can come; after
    /// a longer time the peer came late, and answered one of the last.
    fn round_trip(&self, now: Time) -> Duration {
        let since_first = now - self.began;
        if since_first <= RTT_PLAUSIBLE { since_first } else { (now - self.sent).max(INITIAL_RTT) }
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake").field("next", &self.next).finish_non_exhaustive()
    }
}

/// What an authentic H3 told the responder.
pub(crate) struct Proof<'a> {
    pub(crate) suite: Suite,
    pub(crate) last: &'a FinalHello,
    pub(crate) keys: &'a SessionKeys,
    pub(crate) h3: DatagramName,
    /// From our H2 to their H3.
    pub(crate) rtt: Duration,
}

/// How somebody is dialled.
pub(crate) struct Dial<'a> {
    pub(crate) identity: &'a SecretIdentity,
    pub(crate) door: &'a DoorKey,
    pub(crate) ephemeral: Box<EphemeralKey>,
    pub(crate) unix_seconds: u64,
}

/// Our transport parameters (SPEC §3.3).
pub(crate) fn parameters(config: &TransportConfig) -> Parameters {
    Parameters {
        max_idle_timeout_ms: config.idle_timeout.as_millis() as u64,
        initial_max_data: config.connection_window_initial,
        initial_max_stream_data: config.stream_window_initial,
        initial_max_streams: config.streams_max,
        max_datagram_frame_size: u64::from(u16::MAX),
        max_udp_payload: u64::from(config.max_mtu),
        max_ack_delay_us: ACK_DELAY_MAX.as_micros() as u64,
    }
}

impl Connection {
    /// Starts an attempt to reach `parts.peer`.
    pub(crate) fn initiate(
        now: Time,
        mut parts: Parts,
        dial: &Dial<'_>,
    ) -> Result<Self, InvalidNodeId> {
        let Dial { identity, door, ephemeral, unix_seconds } = dial;
        let hello = InitiatorHello {
            suites: parts.config.suites,
            aes_hardware: aes_hardware(),
            unix_seconds: *unix_seconds,
        };
        let mut secrets = parts.secrets.draw();
        let (initiator, h1) =
            Initiator::start(identity, parts.peer, door, ephemeral, &hello, &mut *secrets)?;
        let handshake = Handshake {
            initiator,
            h1,
            due: None,
            next: now,
            interval: REPEAT_FIRST,
            deadline: now + ATTEMPT_MAX,
            has_new_cookie: false,
            cookies: 0,
            began: now,
            sent: now,
        };
        Ok(Self::new(now, parts, State::Handshake(Box::new(handshake))))
    }

    /// A connection whose initiator proved itself with H3.
    pub(crate) fn accepted(now: Time, parts: Parts, proof: &Proof<'_>) -> Self {
        let Proof { suite, last, keys, h3, rtt } = *proof;
        let mut connection = Self::new(now, parts, State::Established);
        connection.h3 = Some(h3);
        connection.seal(now, suite, keys);
        connection.adopt(now, &last.parameters, rtt);
        // The first packet tells the initiator that H3 arrived.
        connection.ping = true;
        connection.announce_start(now);
        connection
    }

    /// Tries a datagram as H2, or as a cookie. False if it is not an authentic one.
    pub(crate) fn handle_answer(
        &mut self,
        now: Time,
        identity: &SecretIdentity,
        datagram: &[u8],
    ) -> bool {
        let State::Handshake(handshake) = &mut self.state else { return false };
        let hello = match handshake.initiator.read_h2(datagram) {
            Ok(Some(hello)) => hello,
            Ok(None) => return true,
            Err(_) => return handshake.take_cookie(datagram),
        };
        let rtt = handshake.round_trip(now);
        let last = FinalHello { node_id: identity.node_id(), parameters: parameters(&self.config) };
        // In its place: the handshake is wiped where it lies when the state changes.
        let (h3, keys) = handshake.initiator.write_h3(&last, &mut self.rng);
        self.establish(now, &hello, h3, &keys, rtt);
        true
    }

    /// A repeat of the H3 that made this connection: the initiator has not heard from us yet.
    pub(crate) fn handle_repeated_h3(&mut self, datagram: &Gated<'_>) -> bool {
        if self.h3 != Some(datagram.name()) {
            return false;
        }
        self.ping = true;
        true
    }

    fn establish(
        &mut self,
        now: Time,
        hello: &ResponderHello,
        h3: Vec<u8>,
        keys: &SessionKeys,
        rtt: Duration,
    ) {
        self.seal(now, hello.suite, keys);
        self.confirming = Some(Confirming { h3, next: now, interval: REPEAT_FIRST });
        self.state = State::Established;
        self.adopt(now, &hello.parameters, rtt);
        self.announce_start(now);
        // H2 said where the responder sees us; it hears the same of itself from us.
        self.on_observed_address(hello.observed);
        self.observed_due = true;
    }

    fn seal(&mut self, now: Time, suite: Suite, keys: &SessionKeys) {
        self.set_exporter(&keys.exporter);
        self.sealed = Some(Sealed {
            suite,
            sealer: Sealer::new(suite, &keys.send),
            opener: Opener::new(suite, &keys.recv),
            phase_since: now,
            phase_first_pn: 0,
            forget_at: None,
        });
    }

    /// Takes over what the peer told us about itself. `rtt` is the handshake's round trip.
    fn adopt(&mut self, now: Time, peer: &Parameters, rtt: Duration) {
        self.streams.set_peer_limits(
            peer.initial_max_data,
            peer.initial_max_stream_data,
            peer.initial_max_streams,
        );
        self.datagram_max = peer.max_datagram_frame_size;
        if peer.max_idle_timeout_ms > 0 {
            let theirs = Duration::from_millis(peer.max_idle_timeout_ms);
            self.idle_timeout = self.idle_timeout.min(theirs).max(Duration::from_millis(100));
        }
        self.recovery.set_idle_timeout(self.idle_timeout);
        self.path.mtud.limit(u16::try_from(peer.max_udp_payload).unwrap_or(u16::MAX));
        let ack_delay = Duration::from_micros(peer.max_ack_delay_us).min(PEER_ACK_DELAY_MAX);
        self.recovery.set_max_ack_delay(ack_delay);
        self.recovery.assume_rtt(now, rtt);
        self.restart_idle_timer(now);
    }
}
