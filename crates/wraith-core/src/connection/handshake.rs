//! The handshake of a connection (SPEC §3). This module is the initiator's side of its three
//! messages: it sends H1, reads H2 and sends H3. The endpoint creates the responder's connection
//! from a half-open handshake once H3 has authenticated.
//!
//! Invariant: only an authentic H2 or cookie changes this state, so injected garbage cannot end an
//! attempt.

use std::fmt;
use std::time::Duration;

use wraith_crypto::aead::{Suite, aes_hardware};
use wraith_crypto::identity::{InvalidNodeId, SecretIdentity};
use wraith_noise::{
    AccessKey, DatagramFingerprint, EphemeralKey, FinalHello, H1_BYTES_SHORT, Initiator,
    InitiatorHello, Mac1Datagram, Opener, Parameters, ResponderHello, Sealer, SessionKeys,
};

use super::{
    ACK_DELAY_MAX, Connection, ConnectionArgs, ConnectionKeys, ConnectionState, H3Retransmission,
    INITIAL_RTT,
};
use crate::Time;
use crate::config::TransportConfig;
use crate::mtud::MTU_MIN;

/// First retransmission interval of H1 and H3; doubles each time (SPEC §3.4).
const REPEAT_FIRST: Duration = Duration::from_millis(250);
/// Number of times that the ordinary H1 is sent. Then a short one takes its place: the path may
/// drop longer datagrams (SPEC §3.4).
const ORDINARY_H1S: u8 = 3;
/// Interval before the short H1 is retransmitted; doubles each time.
const REPEAT_SHORT: Duration = Duration::from_secs(1);
/// Maximum duration of an attempt without H2 (SPEC §3.4).
const ATTEMPT_MAX: Duration = Duration::from_secs(10);

/// Maximum number of cookies accepted between two retransmissions of H1. Each one is answered with
/// an H1 to the same address.
const COOKIES_MAX: u8 = 3;
/// Largest plausible round trip: a geostationary satellite link with a queue stays below it.
const RTT_PLAUSIBLE: Duration = Duration::from_secs(1);
/// Maximum ACK delay accepted from the peer. A longer one would only slow this side's probes.
const PEER_ACK_DELAY_MAX: Duration = Duration::from_millis(200);

/// State of an initiator that waits for H2.
pub(crate) struct Handshake {
    initiator: Initiator,
    /// The ordinary handshake, once a short one has taken its place. A late H2 may still answer it.
    ordinary: Option<Initiator>,
    access_key: AccessKey,
    /// Times that H1 was sent, not counting answers to cookies.
    pub(super) sent_count: u8,
    pub(super) h1: [Vec<u8>; 2],
    /// Index of the H1 datagram to send now.
    pub(super) due: Option<usize>,
    pub(super) next: Time,
    pub(super) interval: Duration,
    pub(super) deadline: Time,
    /// H1 has a new mac2 and is sent at once.
    pub(super) has_new_cookie: bool,
    /// Cookies accepted since the last retransmission of H1.
    pub(super) cookies: u8,
    began: Time,
    /// Time of the last H1.
    pub(super) sent: Time,
}

impl Handshake {
    /// Handles a cookie, the answer to H1 of a responder under load.
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

    /// Reads a datagram as part of H2, for the short or the ordinary H1. Returns `None` if it is
    /// neither, `Some(None)` after the first part, and `Some(Some(_))` once H2 is complete.
    fn take_h2(&mut self, datagram: &[u8]) -> Option<Option<(&mut Initiator, ResponderHello)>> {
        let initiators = [Some(&mut self.initiator), self.ordinary.as_mut()];
        initiators.into_iter().flatten().find_map(|initiator| {
            let hello = initiator.read_h2(datagram).ok()?;
            Some(hello.map(|hello| (initiator, hello)))
        })
    }

    /// Returns the round trip, if H2 came now. After a retransmission, it is ambiguous which H1 was
    /// answered. Up to [`RTT_PLAUSIBLE`], the time is measured from the first H1: on the longest
    /// paths, H1 is retransmitted before its answer can arrive. Beyond that, the peer was late and
    /// answered one of the last H1s.
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

/// Content of an authentic H3, for the responder's connection.
pub(crate) struct AuthenticatedH3<'a> {
    pub(crate) suite: Suite,
    pub(crate) last: &'a FinalHello,
    pub(crate) keys: &'a SessionKeys,
    pub(crate) h3: DatagramFingerprint,
    /// Time from the responder's H2 to the peer's H3.
    pub(crate) rtt: Duration,
    /// Length of the longest datagram of H1.
    pub(crate) h1_bytes_max: usize,
}

/// Arguments of an outgoing connection attempt.
pub(crate) struct DialArgs<'a> {
    pub(crate) identity: &'a SecretIdentity,
    pub(crate) access_key: &'a AccessKey,
    pub(crate) ephemeral: Box<EphemeralKey>,
    pub(crate) unix_seconds: u64,
}

/// Returns this side's transport parameters (SPEC §3.3).
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
        mut parts: ConnectionArgs,
        dial: &DialArgs<'_>,
    ) -> Result<Self, InvalidNodeId> {
        let DialArgs { identity, access_key, ephemeral, unix_seconds } = dial;
        let hello = InitiatorHello {
            suites: parts.config.suites,
            aes_hardware: aes_hardware(),
            unix_seconds: *unix_seconds,
        };
        let mut secrets = parts.secrets.draw();
        let (initiator, h1) =
            Initiator::start(identity, parts.peer, access_key, ephemeral, &hello, &mut *secrets)?;
        let handshake = Handshake {
            initiator,
            ordinary: None,
            access_key: (*access_key).clone(),
            sent_count: 0,
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
        Ok(Self::new(now, parts, ConnectionState::Handshake(Box::new(handshake))))
    }

    /// Returns the access key of a dial whose ordinary H1s got no answer, if a short one is due.
    pub(crate) fn wants_short_h1(&self, now: Time) -> Option<AccessKey> {
        let ConnectionState::Handshake(handshake) = &self.state else { return None };
        let is_due = handshake.sent_count == ORDINARY_H1S
            && handshake.ordinary.is_none()
            && handshake.next <= now;
        is_due.then(|| handshake.access_key.clone())
    }

    /// Begins a handshake with a short H1 in place of the ordinary one.
    pub(crate) fn shorten_h1(&mut self, dial: &DialArgs<'_>) {
        let ConnectionState::Handshake(handshake) = &mut self.state else { return };
        let hello = InitiatorHello {
            suites: self.config.suites,
            aes_hardware: aes_hardware(),
            unix_seconds: dial.unix_seconds,
        };
        let mut secrets = self.secrets.draw();
        let DialArgs { identity, access_key, ephemeral, .. } = dial;
        let (initiator, h1) = Initiator::start_short(
            identity,
            self.peer,
            access_key,
            ephemeral,
            &hello,
            &mut *secrets,
        )
        .expect("the NodeId was valid for the ordinary H1");
        handshake.ordinary = Some(std::mem::replace(&mut handshake.initiator, initiator));
        handshake.h1 = h1;
        handshake.interval = REPEAT_SHORT;
    }

    /// Creates the connection of an initiator that authenticated with H3.
    pub(crate) fn accepted(now: Time, parts: ConnectionArgs, proof: &AuthenticatedH3<'_>) -> Self {
        let AuthenticatedH3 { suite, last, keys, h3, rtt, h1_bytes_max } = *proof;
        let mut connection = Self::new(now, parts, ConnectionState::Established);
        connection.h3 = Some(h3);
        connection.seal(now, suite, keys);
        connection.adopt(now, &last.parameters, rtt);
        connection.start_mtu(h1_bytes_max);
        // The first packet acknowledges H3.
        connection.ping = true;
        connection.announce_start(now);
        connection
    }

    /// Tries a datagram as H2 or as a cookie. Returns false if it is not authentic.
    pub(crate) fn handle_answer(
        &mut self,
        now: Time,
        identity: &SecretIdentity,
        datagram: &[u8],
    ) -> bool {
        let ConnectionState::Handshake(handshake) = &mut self.state else { return false };
        let rtt = handshake.round_trip(now);
        let (initiator, hello) = match handshake.take_h2(datagram) {
            Some(Some(completed)) => completed,
            Some(None) => return true,
            None => return handshake.take_cookie(datagram),
        };
        let last = FinalHello { node_id: identity.node_id(), parameters: parameters(&self.config) };
        // In place: the handshake is wiped where it lies when the state changes.
        let (h3, keys) = initiator.write_h3(&last, &mut self.rng);
        let h1_bytes_max = initiator.h1_bytes_max();
        self.establish(now, &hello, h3, &keys, rtt);
        self.start_mtu(h1_bytes_max);
        true
    }

    /// Handles a retransmission of the H3 that created this connection: the initiator has not
    /// received a packet yet.
    pub(crate) fn handle_repeated_h3(&mut self, datagram: &Mac1Datagram<'_>) -> bool {
        if self.h3 != Some(datagram.fingerprint()) {
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
        self.confirming = Some(H3Retransmission { h3, next: now, interval: REPEAT_FIRST });
        self.state = ConnectionState::Established;
        self.adopt(now, &hello.parameters, rtt);
        self.announce_start(now);
        // H2 contained the initiator's address as the responder sees it. The responder gets its own
        // address in return.
        self.on_observed_address(hello.observed);
        self.observed_due = true;
    }

    /// After a short H1, starts with the smallest datagrams: the path has dropped longer ones.
    fn start_mtu(&mut self, h1_bytes_max: usize) {
        if h1_bytes_max <= *H1_BYTES_SHORT.end() {
            self.paths.mtud().restart(MTU_MIN);
            self.recovery.set_mtu(self.paths.current().mtud.current());
        }
    }

    fn seal(&mut self, now: Time, suite: Suite, keys: &SessionKeys) {
        self.set_exporter(&keys.exporter);
        self.sealed = Some(ConnectionKeys {
            suite,
            sealer: Sealer::new(suite, &keys.send),
            opener: Opener::new(suite, &keys.recv),
            phase_since: now,
            phase_first_pn: 0,
            forget_at: None,
        });
    }

    /// Applies the peer's transport parameters. `rtt` is the handshake's round trip.
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
        self.paths.mtud().limit(u16::try_from(peer.max_udp_payload).unwrap_or(u16::MAX));
        let ack_delay = Duration::from_micros(peer.max_ack_delay_us).min(PEER_ACK_DELAY_MAX);
        self.recovery.set_max_ack_delay(ack_delay);
        self.recovery.assume_rtt(now, rtt);
        self.restart_idle_timer(now);
    }
}
