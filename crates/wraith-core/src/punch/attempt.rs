//! One punch: two sides that share a secret send each other probes from many sides until a pair of addresses answers (SPEC §14.3).
//!
//! ```text
//!   A ── probe ──▶ B's NAT drops it; A's NAT lets B in from now on
//!   A ◀── probe ── B
//!   A ── answer, which asks too ──▶ B      B knows that both ways work
//!   A ◀── answer ── B                      A knows
//! ```
//!
//! A pair is proved to us when an answer to a probe comes from exactly where the probe went. Invariants: a packet counts once, however
//! often it is replayed and from wherever; what is sent and kept is bounded by the constants below and, to addresses that have proved
//! nothing, by [`Unproved`].

use std::collections::{HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use rand_core::Rng;

use super::many::SPACING;
use super::packet::{Keys, Message, Salt};
use super::prediction::predict;
use super::target::is_target;
use super::unproved::Unproved;
use super::{PunchCounts, PunchEvent};
use crate::frame::CANDIDATES_MAX;
use crate::{PathAddr, Time};

/// When a target is probed, after it became one. Close at first, when both sides begin together; the last are for a side that is some
/// seconds late. Eight packets open a NAT for as long as it lasts, and are few to a third party.
const PROBES_MS: [u64; 8] = [0, 200, 400, 800, 1400, 2200, 3200, 4400];
/// The same of a predicted port: right at once or not at all.
const PREDICTED_MS: [u64; 3] = [0, 200, 1400];
/// A punch without an answer ends.
const ATTEMPT_MAX: Duration = Duration::from_millis(5500);
/// The same of one of many: what is right is so at once, and with few packets for each there can be more of them.
const MANY_MS: [u64; 1] = [0];
/// A question, and an answer that asks.
const OF_MANY: u8 = 2;
/// An attempt with many ports ends. Its other side begins some seconds earlier or later.
const MANY_LASTS: Duration = Duration::from_secs(7);
/// For a peer that begins later, the same number of packets over a minute: our NAT lets it in for 30 s and more after each.
const WAITING_PROBES_MS: [u64; 8] = [0, 200, 600, 1400, 14_000, 27_000, 40_000, 53_000];
const WAITING_MAX: Duration = Duration::from_secs(60);
/// After the first answer, others are waited for: what is better is rarely much slower.
const CHOICE_WAIT: Duration = Duration::from_millis(250);
/// After the end the other side's probes are still answered: it may know nothing yet.
const LINGER: Duration = Duration::from_secs(3);
/// Targets at once: candidates, predicted ports, and where probes came from.
const TARGETS_MAX: usize = 48;
/// Authentic packets taken: more than both sides together ever send.
const RECEIVED_MAX: usize = 512;
/// Packets sent.
const SENT_MAX: u64 = 512;

#[derive(Debug)]
struct Target {
    address: PathAddr,
    /// When it is probed, from `since` on.
    schedule: &'static [u64],
    since: Time,
    /// Scheduled probes that have left.
    done: usize,
    /// One of many: packets left that do not count as unproved, for what is scheduled and an answer to what comes from there.
    of_many: Option<u8>,
    /// What was asked there, and when.
    asked: Vec<(Salt, Time)>,
    rtt: Option<Duration>,
}

/// What the other side is told of an address that is no IP address; nobody believes it.
const UNTOLD: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Whether packets may go there; a mover knows where its own addresses lead.
fn may_be_asked(address: PathAddr) -> bool {
    address.ip().is_none_or(is_target)
}

impl Target {
    fn new(address: PathAddr, schedule: &'static [u64], since: Time) -> Self {
        let (asked, rtt) = (Vec::new(), None);
        Self { address, schedule, since, done: 0, of_many: None, asked, rtt }
    }

    /// Whether a packet may go there although nothing is proved; it is counted then.
    fn may_be_sent(&mut self, now: Time, unproved: &mut Unproved) -> bool {
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

/// When the other side begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// When we do, but for some seconds.
    BeginsNow,
    /// Within a minute.
    BeginsLater,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Attempt {
    keys: Keys,
    targets: Vec<Target>,
    /// When candidates are probed.
    probes: &'static [u64],
    seen: HashSet<Salt>,
    outgoing: VecDeque<(PathAddr, Vec<u8>)>,
    /// Where the other side sees us, as it said last.
    observed: Option<SocketAddr>,
    /// The choice is made, or the punch given up.
    ends_at: Time,
    ended: bool,
    counts: PunchCounts,
}

impl Attempt {
    pub(super) fn new(now: Time, keys: Keys, peer: Peer, candidates: &[SocketAddr]) -> Self {
        let (probes, lasts): (&'static [u64], _) = match peer {
            Peer::BeginsNow => (&PROBES_MS, ATTEMPT_MAX),
            Peer::BeginsLater => (&WAITING_PROBES_MS, WAITING_MAX),
        };
        let mut attempt = Self::empty(keys, probes, now + lasts);
        attempt.add_candidates(now, candidates);
        attempt
    }

    /// One with many ports.
    pub(super) fn many(now: Time, keys: Keys, targets: Vec<PathAddr>) -> Self {
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

    /// Further addresses of the other side. Those that are known already go on as they do.
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

    /// Takes a datagram if it is of the other side. `None` if not, for one hash.
    pub(super) fn handle(
        &mut self,
        now: Time,
        from: PathAddr,
        datagram: &[u8],
        unproved: &mut Unproved,
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
        unproved: &mut Unproved,
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
        // Nothing is better than the same network.
        let wait = if Class::of(from) == Class::Lan { Duration::ZERO } else { CHOICE_WAIT };
        self.ends_at = self.ends_at.min(now + wait);
    }

    /// Answers a packet of `len` bytes from `to`, and asks there too as long as nothing has proved that it receives.
    fn answer(
        &mut self,
        now: Time,
        to: PathAddr,
        salt: Salt,
        len: usize,
        unproved: &mut Unproved,
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
        let message = Message { asks, answers: Some((salt, to.ip().unwrap_or(UNTOLD))) };
        let (own, packet) = self.keys.answer(&message, len, rng);
        if let Some(target) = target.filter(|_| asks) {
            target.asked.push((own, now));
        }
        self.counts.sent += 1;
        self.outgoing.push_back((to, packet));
    }

    /// The next packet to send. Call until `None`.
    pub(super) fn poll_transmit(
        &mut self,
        now: Time,
        unproved: &mut Unproved,
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

    /// Does what is due by `now`. True if nothing more comes of it.
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

    /// The proved address of the best class, and of those the nearest.
    fn best(&self) -> Option<SocketAddr> {
        let proved = self.targets.iter().filter_map(|t| Some((t.address.ip()?, t.rtt?)));
        let best = proved.min_by_key(|(address, rtt)| (Class::of((*address).into()), *rtt));
        best.map(|(address, _)| address)
    }
}

/// What is preferred: the same network, then IPv6, where no NAT forgets.
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
