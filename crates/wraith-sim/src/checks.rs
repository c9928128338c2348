//! Invariants of every endpoint at every moment, for any network behaviour.
//!
//! - After a due timer was handled, the next timer is later: an endpoint does not request a wake-up
//!   at the same moment for ever. (A datagram may make a timer overdue, because it changes the
//!   round-trip estimate. After that timer was handled, the next timer must be later, too.)
//! - No datagram is larger than the endpoint's MTU setting, or empty.
//! - Amplification limit: an unvalidated address gets at most three times the bytes received from
//!   it. Before any handshake has completed, it gets at most as many bytes as were received from
//!   it: the second handshake message (H2) is never longer than the first (H1).
//! - An address that has sent nothing authentic gets at most as many bytes as were received from
//!   it.
//! - An endpoint never treats an address without a receiver as validated.
//! - An endpoint that punches may in addition send at most 12 packets of 160 bytes to an
//!   unvalidated address, and at most 64 such packets to all ports of an IP address.
//! - A stranger gets no answer.
//! - Every poll loop ends.
//! - A connection with data to send has a running timer in addition to its idle timeout: two sides
//!   never wait for each other.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use wraith_core::{PathAddr, Time, Transmit};

/// Maximum outputs of one kind in one drain. An endpoint with more is in an endless loop: a 24 MiB
/// window in the smallest datagrams is 20,000.
pub(crate) const OUTPUTS_MAX: usize = 100_000;
/// Maximum number of times that a due timer may be served without another event: one for each kind
/// of timer.
const SERVED_MAX: u32 = 10;
/// Amplification limit: bytes sent to an unvalidated address per byte received from it.
const AMPLIFICATION_MAX: u64 = 3;

/// Probe budget per address and per IP address (SPEC §14.3), and the largest probe.
const PROBES_MAX: u32 = 12;
const PROBES_OF_IP_MAX: u32 = 64;
const PROBE_BYTES_MAX: usize = 160;

#[derive(Debug, Default)]
pub(crate) struct Checks {
    name: &'static str,
    payload_max: usize,
    peers: HashMap<PathAddr, Traffic>,
    validated: HashSet<PathAddr>,
    strangers: HashSet<PathAddr>,
    forged: HashSet<PathAddr>,
    flooded: HashSet<PathAddr>,
    /// Whether the endpoint punches.
    punches: bool,
    probes: HashMap<PathAddr, u32>,
    probes_of_ip: HashMap<IpAddr, u32>,
    served: u32,
}

#[derive(Debug, Default)]
struct Traffic {
    received: u64,
    sent: u64,
}

impl Checks {
    pub(crate) fn new(name: &'static str, payload_max: usize) -> Self {
        Self { name, payload_max, ..Self::default() }
    }

    /// Forbids any datagram to `address`.
    pub(crate) fn on_stranger(&mut self, address: PathAddr) {
        self.strangers.insert(address);
    }

    /// Marks `address` as forged: peers will name it as theirs, but have no receiver there.
    pub(crate) fn on_forged(&mut self, address: PathAddr) {
        self.forged.insert(address);
    }

    /// Marks `address` as the source of a flood: only handshakes that will not be completed come
    /// from it.
    pub(crate) fn on_flooded(&mut self, address: PathAddr) {
        self.forged.insert(address);
        self.flooded.insert(address);
    }

    /// Marks `address` as validated: the peer proved that it receives there, or this endpoint chose
    /// the address itself.
    pub(crate) fn on_validated(&mut self, address: PathAddr) {
        let name = self.name;
        assert!(!self.forged.contains(&address), "{name}: took {address} for the peer's own");
        self.validated.insert(address);
    }

    pub(crate) fn is_validated(&self, address: PathAddr) -> bool {
        self.validated.contains(&address)
    }

    pub(crate) fn on_received(&mut self, from: PathAddr, bytes: usize) {
        self.peers.entry(from).or_default().received += bytes as u64;
        self.served = 0;
    }

    pub(crate) fn on_transmit(&mut self, transmit: &Transmit) {
        let Transmit { to, len, segment, .. } = *transmit;
        let name = self.name;
        assert!(len > 0 && segment > 0 && segment <= len, "{name}: malformed {transmit:?}");
        assert!(segment <= self.payload_max, "{name}: larger than the MTU setting: {transmit:?}");
        assert!(!self.strangers.contains(&to), "{name}: answered a stranger: {transmit:?}");
        if self.validated.contains(&to) {
            return;
        }
        if self.punches && self.is_probe(transmit) {
            return;
        }
        let established = !self.validated.is_empty() && !self.flooded.contains(&to);
        let traffic = self.peers.entry(to).or_default();
        traffic.sent += len as u64;
        let times = if established { AMPLIFICATION_MAX } else { 1 };
        let Traffic { received, sent } = *traffic;
        assert!(
            sent <= times * received,
            "{name}: sent {sent} bytes to the unvalidated {to}, which sent {received}"
        );
    }

    /// Allows the endpoint to punch from now on.
    pub(crate) fn on_punch(&mut self) {
        self.punches = true;
    }

    /// Counts a packet to an unvalidated address. Returns whether it is within the probe budget.
    fn is_probe(&mut self, transmit: &Transmit) -> bool {
        let (to, small) = (transmit.to, transmit.len <= PROBE_BYTES_MAX);
        let Some(address) = to.ip().filter(|_| small) else { return false };
        let sent = self.probes.entry(to).or_default();
        let of_ip = self.probes_of_ip.entry(address.ip()).or_default();
        (*sent, *of_ip) = (*sent + 1, *of_ip + 1);
        *sent <= PROBES_MAX && *of_ip <= PROBES_OF_IP_MAX
    }

    /// Checks a drained connection. `live` is false if it has data to send without a timer.
    pub(crate) fn on_connection(&self, now: Time, live: bool) {
        let name = self.name;
        assert!(live, "{name}: wants to send at {now:?}, and no timer of its own runs");
    }

    /// Checks a drained endpoint, which requests its next wake-up at `next`.
    pub(crate) fn on_drained(&mut self, now: Time, next: Option<Time>) {
        let due = next.is_some_and(|next| next <= now);
        self.served = if due { self.served + 1 } else { 0 };
        let name = self.name;
        assert!(
            self.served < SERVED_MAX,
            "{name}: still due at {now:?} after being served: {next:?}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: PathAddr = PathAddr::Ip(crate::link::tests::OUTSIDE);

    fn transmit(len: usize, segment: usize) -> Transmit {
        Transmit { to: PEER, ecn: None, len, segment }
    }

    fn checks() -> Checks {
        let mut checks = Checks::new("test", 1200);
        checks.on_received(PEER, 1000);
        checks
    }

    #[test]
    fn a_handshake_answer_up_to_the_length_of_the_question_is_fine() {
        checks().on_transmit(&transmit(1000, 1000));
    }

    #[test]
    #[should_panic(expected = "unvalidated")]
    fn a_longer_one_is_amplification() {
        checks().on_transmit(&transmit(1001, 1001));
    }

    #[test]
    #[should_panic(expected = "unvalidated")]
    fn one_to_a_forged_address_is_amplification_also_when_others_are_connected() {
        let mut checks = checks();
        checks.on_validated(PathAddr::Via(std::num::NonZeroU32::MIN));
        checks.on_flooded(PEER);
        checks.on_transmit(&transmit(1001, 1001));
    }

    #[test]
    #[should_panic(expected = "stranger")]
    fn an_answer_to_a_stranger_is_noticed() {
        let mut checks = checks();
        checks.on_stranger(PEER);
        checks.on_transmit(&transmit(1, 1));
    }

    #[test]
    #[should_panic(expected = "took")]
    fn a_forged_address_that_is_believed_is_noticed() {
        let mut checks = checks();
        checks.on_forged(PEER);
        checks.on_validated(PEER);
    }

    #[test]
    #[should_panic(expected = "larger than the MTU")]
    fn a_segment_above_the_setting_is_noticed() {
        checks().on_transmit(&transmit(2402, 1201));
    }

    #[test]
    #[should_panic(expected = "still due")]
    fn a_timer_that_never_advances_is_noticed() {
        let mut checks = checks();
        for _ in 0..SERVED_MAX {
            checks.on_drained(Time::from_nanos(2), Some(Time::from_nanos(1)));
        }
    }
}
