//! What must hold for every endpoint at every moment, whatever the network does.
//!
//! - A timer that is due is gone once it was served: an endpoint does not ask to be woken at the same moment for ever.
//!   (A datagram may make a timer overdue, by changing the round-trip estimate; serving it must settle that.)
//! - No datagram is larger than the endpoint's MTU setting, nor empty.
//! - To an address that has not proven that it receives, at most three times what came from it is sent; before any
//!   handshake completed, at most what came from it (H2 ≤ H1).
//! - To an address from which nothing authentic ever came, at most what came from it is sent.
//! - An address at which nobody receives never counts as one that has proven it.
//! - An endpoint that looks for paths sends to an address that has proved nothing 12 packets of 160 bytes at most beside that, and to all
//!   ports of an IP address 64.
//! - To a stranger, nothing is sent.
//! - Every poll loop ends.
//! - Who wants to send has a timer running, besides that of its end for idleness: two sides never wait for each other.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use wraith_core::{PathAddr, Time, Transmit};

/// Outputs of one kind in one drain; an endpoint that has more is in an endless loop. A 24 MiB window in the smallest
/// datagrams is 20,000.
pub(crate) const OUTPUTS_MAX: usize = 100_000;
/// Times a due timer may be served, nothing else happening, until none is due any more: one for each kind.
const SERVED_MAX: u32 = 10;
/// Bytes that may go to an unvalidated address per byte received from it.
const AMPLIFICATION_MAX: u64 = 3;

/// What an address, and all ports of an IP address, may get of somebody who looks for paths (SPEC §14.3), and the largest packet.
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
    /// It looks for paths.
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

    /// Nothing may ever be sent to `address`.
    pub(crate) fn on_stranger(&mut self, address: PathAddr) {
        self.strangers.insert(address);
    }

    /// Peers will name `address` as theirs, but nobody receives there.
    pub(crate) fn on_forged(&mut self, address: PathAddr) {
        self.forged.insert(address);
    }

    /// Nothing but handshakes that nobody means to complete comes from `address`.
    pub(crate) fn on_flooded(&mut self, address: PathAddr) {
        self.forged.insert(address);
        self.flooded.insert(address);
    }

    /// `address` proved that it receives, or we chose it ourselves.
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

    /// From now on it looks for paths.
    pub(crate) fn on_punch(&mut self) {
        self.punches = true;
    }

    /// Whether it may be one of the few packets that an address may get unasked; they are counted.
    fn is_probe(&mut self, transmit: &Transmit) -> bool {
        let (to, small) = (transmit.to, transmit.len <= PROBE_BYTES_MAX);
        let Some(address) = to.ip().filter(|_| small) else { return false };
        let sent = self.probes.entry(to).or_default();
        let of_ip = self.probes_of_ip.entry(address.ip()).or_default();
        (*sent, *of_ip) = (*sent + 1, *of_ip + 1);
        *sent <= PROBES_MAX && *of_ip <= PROBES_OF_IP_MAX
    }

    /// A connection was drained at `now`; `live`: it has a timer if it wants to send.
    pub(crate) fn on_connection(&self, now: Time, live: bool) {
        let name = self.name;
        assert!(live, "{name}: wants to send at {now:?}, and no timer of its own runs");
    }

    /// The endpoint was drained at `now` and wants to be woken at `next`.
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
