//! One punch: two sides with a shared secret probe each other until a pair of addresses works (SPEC
//! §14.3).
//!
//! ```text
//!   A ── probe ──▶ B's NAT drops it; A's NAT lets B in from now on
//!   A ◀── probe ── B
//!   A ── answer, which asks too ──▶ B      B knows that both ways work
//!   A ◀── answer ── B                      A knows
//! ```
//!
//! An answer from exactly the probed address proves to the receiving side that this pair of
//! addresses works. Invariants:
//!
//! - A packet has an effect once, however often and from wherever it is replayed.
//! - The constants below bound everything that is sent and kept. [`UnprovenBudget`] bounds the
//!   packets to unproven addresses.

use std::collections::{HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use rand_core::Rng;

use super::packet::{Keys, Message, Salt};
use super::port_guessing::SPACING;
use super::prediction::predict;
use super::target::is_target;
use super::unproven_budget::UnprovenBudget;
use super::{PunchCounts, PunchEvent};
use crate::frame::CANDIDATES_MAX;
use crate::{PathAddr, Time};

/// Probe times of a target, in milliseconds after it was added. They are dense at first, when both
/// sides begin together; the last ones serve a side that is some seconds late. Eight packets open a
/// NAT for as long as its mapping lasts, and are few for a third party.
const PROBES_MS: [u64; 8] = [0, 200, 400, 800, 1400, 2200, 3200, 4400];
/// Probe times of a predicted port, which works at once or never.
const PREDICTED_MS: [u64; 3] = [0, 200, 1400];
/// Maximum duration of a punch without an answer.
const ATTEMPT_MAX: Duration = Duration::from_millis(5500);
/// Probe times of a guessed port, which works at once or never. With fewer packets for each, more
/// ports can be probed.
const MANY_MS: [u64; 1] = [0];
/// Packets to each guessed port: a probe, and an answer that probes too.
const OF_MANY: u8 = 2;
/// Duration of an attempt with guessed ports. The other side begins some seconds earlier or later.
const MANY_LASTS: Duration = Duration::from_secs(7);
/// Probe times for a peer that begins later: as many packets, over a minute. After each, this
/// side's NAT admits the peer for 30 s or more.
const WAITING_PROBES_MS: [u64; 8] = [0, 200, 600, 1400, 14_000, 27_000, 40_000, 53_000];
const WAITING_MAX: Duration = Duration::from_secs(60);
/// Time to wait for better answers after the first one. A better path is rarely much slower.
const CHOICE_WAIT: Duration = Duration::from_millis(250);
/// Time after the end during which the peer's probes are still answered, as it may not have
/// finished.
const LINGER: Duration = Duration::from_secs(3);
/// Maximum number of targets: candidates, predicted ports, and sources of probes.
const TARGETS_MAX: usize = 48;
/// Maximum number of authentic packets accepted: more than both sides together ever send.
const RECEIVED_MAX: usize = 512;
/// Maximum number of packets sent.
const SENT_MAX: u64 = 512;

#[derive(Debug)]
struct Target {
    address: PathAddr,
    /// Probe times, from `since` on.
    schedule: &'static [u64],
    since: Time,
    /// Scheduled probes that were sent.
    done: usize,
    /// For a guessed port: remaining packets outside the budget of unproven addresses, for the
    /// scheduled probe and an answer.
    of_many: Option<u8>,
    /// Salts and times of the probes sent.
    asked: Vec<(Salt, Time)>,
    rtt: Option<Duration>,
}

/// Address reported to the peer if this side reaches the peer at no IP address. Peers ignore it.
const NO_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Returns true if packets may go to `address`. The caller answers for addresses that it numbered
/// itself.
fn may_be_asked(address: PathAddr) -> bool {
    address.ip().is_none_or(is_target)
}

impl Target {
    fn new(address: PathAddr, schedule: &'static [u64], since: Time) -> Self {
        let (asked, rtt) = (Vec::new(), None);
        Self { address, schedule, since, done: 0, of_many: None, asked, rtt }
    }

    /// Returns true, and counts a packet, if one may be sent to this target while it is unproven.
    fn may_be_sent(&mut self, now: Time, unproved: &mut UnprovenBudget) -> bool {
        if let Some(left) = self.of_many.as_mut().filter(|left| **left > 0) {
            *left -= 1;
            return true;
        }
        unproved.take(now, self.address)
    }

    fn next(&self) -> Option<Time> {
        let at = self.schedule.get(self.done)?;
        self.rtt.is_none().then(|| self.since + Duration::from_millis(*at))
    }
}

/// Start time of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerStart {
    /// At the same time, within some seconds.
    Now,
    /// Within a minute.
    WithinAMinute,
}

/// One punch (see the module head).
#[derive(Debug)]
pub(super) struct Attempt {
    keys: Keys,
    targets: Vec<Target>,
    /// Probe times of candidates.
    probes: &'static [u64],
    seen: HashSet<Salt>,
    outgoing: VecDeque<(PathAddr, Vec<u8>)>,
    /// This side's address as last reported by the peer.
    observed: Option<SocketAddr>,
    /// Time at which the punch ends, with or without a result.
    ends_at: Time,
    ended: bool,
    counts: PunchCounts,
}

impl Attempt {
    pub(super) fn new(now: Time, keys: Keys, peer: PeerStart, candidates: &[SocketAddr]) -> Self {
        let (probes, lasts): (&'static [u64], _) = match peer {
            PeerStart::Now => (&PROBES_MS, ATTEMPT_MAX),
            PeerStart::WithinAMinute => (&WAITING_PROBES_MS, WAITING_MAX),
        };
        let mut attempt = Self::empty(keys, probes, now + lasts);
        attempt.add_candidates(now, candidates);
        attempt
    }

    /// Creates an attempt with guessed ports.
    pub(super) fn port_guessing(now: Time, keys: Keys, targets: Vec<PathAddr>) -> Self {
        let mut attempt = Self::empty(keys, &PROBES_MS, now + MANY_LASTS);
        let mut since = now;
        attempt.targets = targets
            .into_iter()
            .map(|address| {
                since += SPACING;
                Target { of_many: Some(OF_MANY), ..Target::new(address, &MANY_MS, since) }
            })
            .collect();
        attempt
    }

    fn empty(keys: Keys, probes: &'static [u64], ends_at: Time) -> Self {
        Self {
            keys,
            targets: Vec::new(),
            probes,
            seen: HashSet::new(),
            outgoing: VecDeque::new(),
            observed: None,
            ends_at,
            ended: false,
            counts: PunchCounts::default(),
        }
    }

    /// Adds candidates of the other side. Known ones are unaffected.
    pub(super) fn add_candidates(&mut self, now: Time, candidates: &[SocketAddr]) {
        let candidates = &candidates[..candidates.len().min(CANDIDATES_MAX)];
        for address in candidates {
            self.add_target(now, (*address).into(), self.probes);
        }
        for address in predict(candidates) {
            self.add_target(now, address.into(), &PREDICTED_MS);
        }
    }

    fn add_target(&mut self, now: Time, address: PathAddr, schedule: &'static [u64]) {
        let known = self.targets.iter().any(|target| target.address == address);
        let listed = self.targets.iter().filter(|target| target.of_many.is_none()).count();
        if !known && listed < TARGETS_MAX && may_be_asked(address) {
            self.targets.push(Target::new(address, schedule, now));
        }
    }

    /// Handles a datagram of the other side. Returns `None`, at the cost of one hash, if it is not
    /// one.
    pub(super) fn handle(
        &mut self,
        now: Time,
        from: PathAddr,
        datagram: &[u8],
        unproved: &mut UnprovenBudget,
        rng: &mut impl Rng,
        events: &mut Vec<PunchEvent>,
    ) -> Option<()> {
        let (salt, message) = self.keys.open(datagram)?;
        if self.seen.len() >= RECEIVED_MAX || !may_be_asked(from) || !self.seen.insert(salt) {
            return Some(());
        }
        self.counts.received += 1;
        if let Some((answered, seen_at)) = message.answers {
            self.on_answer(now, from, answered, unproved, events);
            if self.observed != Some(seen_at) && is_target(seen_at) {
                self.observed = Some(seen_at);
                events.push(PunchEvent::Observed(seen_at));
            }
        }
        if message.asks {
            self.add_target(now, from, &PROBES_MS);
            self.answer(now, from, salt, datagram.len(), unproved, rng);
        }
        Some(())
    }

    fn on_answer(
        &mut self,
        now: Time,
        from: PathAddr,
        answered: Salt,
        unproved: &mut UnprovenBudget,
        events: &mut Vec<PunchEvent>,
    ) {
        let Some(target) = self.targets.iter_mut().find(|target| target.address == from) else {
            return;
        };
        let asked = target.asked.iter().find(|(salt, _)| *salt == answered);
        let Some((_, at)) = asked.filter(|_| target.rtt.is_none()) else { return };
        let rtt = now - *at;
        target.rtt = Some(rtt);
        target.asked.clear();
        unproved.on_proved(from);
        if self.ended {
            return;
        }
        if let PathAddr::Ip(remote) = from {
            events.push(PunchEvent::Punched { remote, rtt });
        }
        // The local network is the best class, so there is no need to wait.
        let wait = if Class::of(from) == Class::Lan { Duration::ZERO } else { CHOICE_WAIT };
        self.ends_at = self.ends_at.min(now + wait);
    }

    /// Answers a packet of `len` bytes from `to`. The answer also probes while that address is an
    /// unproven target.
    fn answer(
        &mut self,
        now: Time,
        to: PathAddr,
        salt: Salt,
        len: usize,
        unproved: &mut UnprovenBudget,
        rng: &mut impl Rng,
    ) {
        let mut target = self.targets.iter_mut().find(|target| target.address == to);
        let proved = target.as_ref().is_some_and(|target| target.rtt.is_some());
        let asks = target.is_some() && !proved;
        if self.counts.sent >= SENT_MAX {
            return;
        }
        let allowed = proved
            || match &mut target {
                Some(target) => target.may_be_sent(now, unproved),
                None => unproved.take(now, to),
            };
        if !allowed {
            return;
        }
        let message = Message { asks, answers: Some((salt, to.ip().unwrap_or(NO_ADDRESS))) };
        let (own, packet) = self.keys.answer(&message, len, rng);
        if let Some(target) = target.filter(|_| asks) {
            target.asked.push((own, now));
        }
        self.counts.sent += 1;
        self.outgoing.push_back((to, packet));
    }

    /// Returns the next packet to send. The caller repeats until `None`.
    pub(super) fn poll_transmit(
        &mut self,
        now: Time,
        unproved: &mut UnprovenBudget,
        rng: &mut impl Rng,
    ) -> Option<(PathAddr, Vec<u8>)> {
        if let Some(packet) = self.outgoing.pop_front() {
            return Some(packet);
        }
        if self.ended {
            return None;
        }
        while let Some(target) =
            self.targets.iter_mut().find(|target| target.next().is_some_and(|at| at <= now))
        {
            target.done += 1;
            if self.counts.sent >= SENT_MAX || !target.may_be_sent(now, unproved) {
                self.counts.withheld += 1;
                continue;
            }
            let message = Message { asks: true, answers: None };
            let (salt, packet) = self.keys.question(&message, rng);
            target.asked.push((salt, now));
            self.counts.sent += 1;
            return Some((target.address, packet));
        }
        None
    }

    /// Handles all timers due by `now`. Returns true once the attempt can be removed.
    pub(super) fn handle_timeout(&mut self, now: Time, events: &mut Vec<PunchEvent>) -> bool {
        if !self.ended && self.ends_at <= now {
            self.ended = true;
            events.push(PunchEvent::Ended { best: self.best(), counts: self.counts });
        }
        self.ended && self.ends_at + LINGER <= now
    }

    pub(super) fn timeout(&self) -> Time {
        if self.ended {
            return self.ends_at + LINGER;
        }
        let probes = self.targets.iter().filter_map(Target::next);
        probes.fold(self.ends_at, Time::min)
    }

    /// Returns the proven address of the best class and, within it, of the lowest RTT.
    fn best(&self) -> Option<SocketAddr> {
        let proved = self.targets.iter().filter_map(|t| Some((t.address.ip()?, t.rtt?)));
        let best = proved.min_by_key(|(address, rtt)| (Class::of((*address).into()), *rtt));
        best.map(|(address, _)| address)
    }
}

/// Preference of an address: the local network, then IPv6, where no NAT mapping expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Lan,
    V6,
    V4,
}

impl Class {
    fn of(address: PathAddr) -> Self {
        let PathAddr::Ip(address) = address else { return Self::V4 };
        match address.ip().to_canonical() {
            IpAddr::V4(ip) if ip.is_private() || ip.is_link_local() || ip.is_loopback() => {
                Self::Lan
            }
            IpAddr::V6(ip)
                if ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_loopback() =>
            {
                Self::Lan
            }
            IpAddr::V6(_) => Self::V6,
            IpAddr::V4(_) => Self::V4,
        }
    }
}
