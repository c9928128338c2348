//! Loss detection and the sending budget of one connection (RFC 9002; SPEC §7).
//!
//! [`Recovery`] keeps every packet from its sending until it is acknowledged or lost, and hands its frames back then,
//! exactly once. What the packets say about the path goes to `path`, which owns congestion control and pacing.
//! Loss is decided by time alone (`reordering`); late ACKs of packets declared lost are noticed and undone.
//!
//! Invariants: bytes in flight are the sum of the sizes of outstanding ack-eliciting packets of the current path; the
//! timer a driver is given lies in the future once it was served; nothing here reads a clock.

mod bounds;
mod config;
mod ecn;
mod pacer;
mod packet;
mod path;
mod persistent_congestion;
mod reordering;
mod sent_packets;
mod skipped;
#[cfg(test)]
pub(crate) mod tests;

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::congestion::Controller;
use crate::frame::EcnCounts;
use crate::measure::Snapshot;
use crate::{Time, Violation};
use bounds::OUTSTANDING_MAX;
use ecn::{AckedMarks, PeerCounts};
use packet::Outstanding;
use path::{AckSum, LossSum, Path};
use persistent_congestion::LostRun;
use reordering::{LatePacket, LatePackets};
use sent_packets::{NeverSent, SentPackets};
use skipped::Skipped;

pub use crate::measure::{RateSample, Rtt};
pub use config::RecoveryConfig;
pub use packet::{SentPacket, Settled, SettledPacket};

/// RFC 9002 §6.1.2: timers finer than this fire on the scheduler's jitter.
const GRANULARITY: Duration = Duration::from_millis(1);
/// Backed-off probes come at least this often (unless the path is slower), so that a path that comes back after an
/// outage is noticed soon, and a burst of losses counted in packets ends before the idle timeout does.
const PTO_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// The longest wait for an acknowledgement, or for a loss to be certain, is this part of the idle timeout (or
/// [`PTO_INTERVAL_MAX`]): a round trip that was long once must not end a connection for idleness.
const IDLE_TIMEOUT_PART: u32 = 4;

/// How much may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// That many bytes: at least one full packet, a whole number of them.
    Bytes(u64),
    /// Nothing before then: pacing.
    At(Time),
    /// Nothing before an ACK, a loss or a probe timeout: the window is full.
    Blocked,
}

/// What a timeout meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutOutcome {
    /// It was early or is moot.
    Nothing,
    /// Packets were declared lost.
    Lost,
    /// Send one or two ack-eliciting packets now, whatever the budget says.
    Probe,
}

/// Loss detection of a connection, and congestion control of its current path. `F` is what the owner wants back when
/// a packet is settled.
///
/// The owner calls [`budget`](Self::budget) before it builds data packets, [`on_sent`](Self::on_sent) for every packet,
/// [`on_ack`](Self::on_ack) for every ACK frame and [`on_timeout`](Self::on_timeout) when [`timeout`](Self::timeout)
/// has come; after each of the last two it handles everything in [`Settled`]. Whenever it runs out of things to send
/// while the budget would allow more, flow control included, it says so with
/// [`set_app_limited`](Self::set_app_limited).
#[derive(Debug)]
pub struct Recovery<F> {
    config: RecoveryConfig,
    sent: SentPackets<Outstanding<F>>,
    late: LatePackets,
    skipped: Skipped,
    /// Longest wait for an acknowledgement, whatever the round trip was.
    wait_max: Duration,
    path: Path,
    /// Outstanding ack-eliciting packets of all paths.
    eliciting: u64,
    largest_acked: Option<u64>,
    largest_acked_sent_at: Time,
    /// The probe timeout runs from here.
    pto_from: Time,
    pto_count: u32,
    /// When the estimates that timers derive from last changed.
    last_change: Time,
    peer_counts: PeerCounts,
    /// Of the ACK in progress.
    acked_marks: AckedMarks,
    packets_lost: u64,
    spurious_losses: u64,
    probe_timeouts: u64,
    /// Ranges of the ACK in progress; kept for its memory.
    ranges: Vec<RangeInclusive<u64>>,
}

impl<F> Recovery<F> {
    /// Nothing sent yet.
    pub fn new(now: Time, config: &RecoveryConfig) -> Self {
        Self {
            config: config.clone(),
            sent: SentPackets::new(),
            late: LatePackets::default(),
            skipped: Skipped::default(),
            wait_max: Duration::MAX,
            path: config.path(now, 0, config.mtu),
            eliciting: 0,
            largest_acked: None,
            largest_acked_sent_at: Time::ZERO,
            pto_from: now,
            pto_count: 0,
            last_change: now,
            peer_counts: PeerCounts::default(),
            acked_marks: AckedMarks::default(),
            packets_lost: 0,
            spurious_losses: 0,
            probe_timeouts: 0,
            ranges: Vec::new(),
        }
    }

    /// A packet leaves at `now`. Panics if `pn` was used before.
    pub fn on_sent(&mut self, now: Time, pn: u64, packet: SentPacket<F>) {
        let mut snapshot = Snapshot::default();
        if packet.ack_eliciting {
            snapshot = self.path.on_sent(now, packet.size);
            self.eliciting += 1;
            self.pto_from = now;
        }
        if packet.ect0 {
            self.path.ecn.on_sent(now, packet.ack_eliciting);
            self.peer_counts.on_sent();
        }
        let generation = self.path.generation;
        let eliciting = packet.ack_eliciting;
        self.sent.push(pn, Outstanding { sent_at: now, generation, snapshot, packet });
        if !eliciting {
            self.forget_oldest_acks();
        }
    }

    /// `pn` is left out: the next packet has a higher number. Who acknowledges it is a violator.
    pub fn on_skipped(&mut self, pn: u64) {
        self.skipped.push(pn);
    }

    /// An ACK frame arrived: `largest` packet number, `ranges` of all it acknowledges from the largest down, `delay`
    /// the peer says it waited. Fills `out`. The ACK of a packet never sent is a violation.
    pub fn on_ack(
        &mut self,
        now: Time,
        largest: u64,
        ranges: impl Iterator<Item = RangeInclusive<u64>>,
        delay: Duration,
        out: &mut Settled<F>,
    ) -> Result<(), Violation> {
        out.clear();
        self.acked_marks = AckedMarks::default();
        if largest >= self.sent.next() {
            return Err(Violation::protocol("ACK of a packet that was never sent"));
        }
        let prior_in_flight = self.path.in_flight;
        self.take_ranges(now, ranges, out)?;
        let mut ack = self.settle_acked(now, largest, out)?;
        if out.acked.is_empty() && out.spurious == 0 {
            return Ok(());
        }
        self.pto_count = 0;
        self.last_change = now;
        ack.marks.is_newest = self.largest_acked < Some(largest);
        self.acked_marks = ack.marks;
        self.largest_acked = self.largest_acked.max(Some(largest));
        let rtt = ack.rtt_sent_at.map(|sent_at| now.since(sent_at));
        if let Some(sample) = rtt {
            self.path.sample_rtt(now, sample, delay.min(self.config.max_ack_delay));
        }
        self.detect_lost(now, out);
        self.path.on_acked(now, &ack.sum, prior_in_flight, rtt);
        self.path.refresh(now);
        Ok(())
    }

    /// Keeps the ranges that concern outstanding packets, and notices late ones of lost packets.
    fn take_ranges(
        &mut self,
        now: Time,
        ranges: impl Iterator<Item = RangeInclusive<u64>>,
        out: &mut Settled<F>,
    ) -> Result<(), Violation> {
        self.ranges.clear();
        let base = self.sent.base();
        let mut walk = self.late.walk();
        let mut skipped = self.skipped.walk();
        for range in ranges {
            if self.skipped.is_hit(&mut skipped, &range) {
                return Err(Violation::protocol("ACK of a packet number that was skipped"));
            }
            if *range.end() >= base {
                self.ranges.push(range.clone());
            }
            if *range.start() < base {
                while let Some(late) = self.late.take(&mut walk, &range) {
                    out.spurious += 1;
                    self.path.on_late(now, late.episode, now.since(late.sent_at));
                }
            }
        }
        self.spurious_losses += u64::from(out.spurious);
        Ok(())
    }

    fn settle_acked(
        &mut self,
        now: Time,
        largest: u64,
        out: &mut Settled<F>,
    ) -> Result<AckSettled, Violation> {
        let mut ack = AckSettled::default();
        let mut any_eliciting = false;
        let Self { sent, path, eliciting, largest_acked_sent_at, ranges, .. } = self;
        // From the lowest up, so that every consumer sees packets in the order they were sent.
        for range in ranges.iter().rev() {
            let settled = sent.acknowledge(range.clone(), |pn, outstanding| {
                let current = outstanding.generation == path.generation;
                let SentPacket { size, ack_eliciting, ect0, .. } = outstanding.packet;
                let sent_at = outstanding.sent_at;
                ack.marks.all += u64::from(ect0);
                ack.marks.here += u64::from(ect0 && current);
                if ack_eliciting {
                    *eliciting -= 1;
                    any_eliciting = true;
                    if current {
                        path.on_packet_acked(now, sent_at, size, &outstanding.snapshot);
                        ack.sum.bytes += u64::from(size);
                        ack.sum.newest_sent_at = sent_at;
                    }
                }
                if pn == largest {
                    *largest_acked_sent_at = sent_at;
                    ack.rtt_sent_at = current.then_some(sent_at);
                }
                out.acked.push(outstanding.settle(pn));
            });
            settled.map_err(|NeverSent| {
                Violation::protocol("ACK of a packet number that was skipped")
            })?;
        }
        if !any_eliciting {
            // RFC 9002 §5.1: the peer may have sat on the ACK of packets that do not elicit one.
            ack.rtt_sent_at = None;
        }
        Ok(ack)
    }

    /// Declares lost what newer packets overtook long enough ago. Losses are a prefix of the outstanding packets,
    /// because both number and sending time ascend.
    fn detect_lost(&mut self, now: Time, out: &mut Settled<F>) {
        let mut sum = LossSum::default();
        let mut run = LostRun::default();
        while let Some((pn, oldest)) = self.sent.front() {
            let overtaken = self.largest_acked.is_some_and(|largest| pn < largest);
            // Asked each time: an episode that begins here may end the wider reordering window.
            let lost_at = oldest.sent_at + self.loss_delay();
            let due = !oldest.packet.ack_eliciting || lost_at <= now;
            let is_lost = overtaken && due;
            if !is_lost && !self.is_excessive() {
                break;
            }
            let (pn, lost) = self.sent.pop_front().expect("there is a front");
            let counts = self.take_lost(now, pn, &lost, &mut sum);
            run.extend(pn, counts.then_some(lost.sent_at), self.path.first_sample_at());
            if lost.packet.ack_eliciting {
                out.lost.push(lost.settle(pn));
            }
        }
        if sum.packets == 0 {
            return;
        }
        let limit = self.path.persistent_congestion_duration(self.config.max_ack_delay);
        sum.persistent_congestion = run.longest > limit;
        out.persistent_congestion = sum.persistent_congestion;
        self.packets_lost += sum.packets;
        self.path.on_lost(now, &sum);
    }

    /// Accounts for one lost packet. True if it says something about congestion on the current path.
    fn take_lost(&mut self, now: Time, pn: u64, lost: &Outstanding<F>, sum: &mut LossSum) -> bool {
        let SentPacket { size, ack_eliciting, mtu_probe, ect0, .. } = lost.packet;
        self.eliciting -= u64::from(ack_eliciting);
        if !ack_eliciting || lost.generation != self.path.generation {
            return false;
        }
        self.path.in_flight -= u64::from(size);
        if ect0 {
            self.path.ecn.on_lost();
        }
        if mtu_probe {
            return false;
        }
        let episode = self.path.on_packet_lost(now, pn, lost.sent_at, size, &lost.snapshot, sum);
        self.late.push(LatePacket { pn, sent_at: lost.sent_at, episode });
        true
    }

    /// The time [`timeout`](Self::timeout) named has come. Fills `out`.
    pub fn on_timeout(&mut self, now: Time, out: &mut Settled<F>) -> TimeoutOutcome {
        out.clear();
        let Some(at) = self.timeout() else { return TimeoutOutcome::Nothing };
        if now < at {
            return TimeoutOutcome::Nothing;
        }
        self.last_change = now;
        if self.loss_time().is_none() {
            // Nothing is known to be lost, so neither RTT nor congestion state changes (RFC 9002 §6.2.4).
            self.pto_count += 1;
            self.pto_from = now;
            self.probe_timeouts += 1;
            return TimeoutOutcome::Probe;
        }
        self.detect_lost(now, out);
        self.path.refresh(now);
        self.forget_oldest_acks();
        // What was lost is sent again first; a probe is due only if that is not acknowledged either.
        self.pto_from = now;
        if out.lost.is_empty() { TimeoutOutcome::Nothing } else { TimeoutOutcome::Lost }
    }

    /// When to call [`on_timeout`](Self::on_timeout): the oldest overtaken packet is lost then, or a probe is due.
    /// Never before the last ACK or timeout, even if that one shortened the wait.
    pub fn timeout(&self) -> Option<Time> {
        let probe = || (self.eliciting > 0).then(|| self.pto_from + self.backed_off_pto());
        self.loss_time().or_else(probe).map(|at| at.max(self.last_change))
    }

    fn loss_time(&self) -> Option<Time> {
        let (pn, oldest) = self.sent.front()?;
        if self.is_excessive() {
            return Some(Time::ZERO);
        }
        (pn < self.largest_acked?).then(|| oldest.sent_at + self.loss_delay())
    }

    fn loss_delay(&self) -> Duration {
        let delay = self.path.loss_delay();
        // `wait_max` is a second or more: its whole seconds are compared first, for every packet and ACK.
        if delay.as_secs() < self.wait_max.as_secs() { delay } else { delay.min(self.wait_max) }
    }

    fn backed_off_pto(&self) -> Duration {
        let (mut pto, mut patient) = (self.pto().min(self.wait_max), 0);
        if self.path.owes_ack() {
            let prompt = self.path.prompt_pto();
            patient = u32::try_from(pto.as_nanos() / prompt.as_nanos().max(1)).unwrap_or(0);
            pto = prompt;
        }
        let doublings = self.pto_count.saturating_sub(patient);
        pto.saturating_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX))
            .min(PTO_INTERVAL_MAX.max(pto))
    }

    /// Probe timeout without backoff (RFC 9002 §6.2.1); other timers are multiples of it.
    pub fn pto(&self) -> Duration {
        self.path.pto(self.config.max_ack_delay)
    }

    /// Probe timeouts since the last acknowledgement. From the second on, probes should be small: perhaps only
    /// large datagrams are lost.
    pub fn pto_count(&self) -> u32 {
        self.pto_count
    }

    /// An ack-eliciting packet is outstanding, so the probe timeout or a loss is due some time.
    pub fn has_eliciting(&self) -> bool {
        self.eliciting > 0
    }

    /// Frames of the oldest outstanding ack-eliciting packet: what a probe had best repeat.
    pub fn oldest_unacked(&self) -> Option<&F> {
        let packets = self.sent.iter().map(|outstanding| &outstanding.packet);
        packets.filter(|packet| packet.ack_eliciting).map(|packet| &packet.frames).next()
    }

    /// What window and pacing allow now. ACK-only packets, probes after [`TimeoutOutcome::Probe`] and CLOSE need no
    /// budget.
    pub fn budget(&mut self, now: Time) -> Budget {
        if self.sent.len() >= OUTSTANDING_MAX {
            return Budget::Blocked;
        }
        self.path.budget(now)
    }

    /// There is budget left and nothing to send.
    pub fn set_app_limited(&mut self, now: Time) {
        self.path.set_app_limited(now);
    }

    /// We asked the peer to acknowledge after `packets` packets or `delay`.
    pub fn set_ack_request(&mut self, packets: u64, delay: Duration) {
        self.path.ack_request = (packets, delay);
    }

    /// True while the controller measures the round trip of an empty path and wants ACKs at once.
    pub fn wants_prompt_acks(&self) -> bool {
        self.path.control.measuring_round_trip
    }

    /// Packets that are built now are to be marked ECT(0), and [`SentPacket::ect0`] with them. Asked once for all datagrams
    /// that leave in one send.
    pub fn marks_ecn(&mut self, now: Time) -> bool {
        let pto = self.pto();
        self.path.ecn.marks(now, pto)
    }

    /// What the ACK frame says of marks, if anything. Call after [`on_ack`](Self::on_ack) for every frame.
    pub fn on_ecn(&mut self, now: Time, counts: Option<EcnCounts>) {
        let acked = std::mem::take(&mut self.acked_marks);
        let marks = self.peer_counts.on_ack(&mut self.path.ecn, acked, counts);
        if marks > 0 {
            self.path.on_congestion_experienced(now, marks, self.largest_acked_sent_at);
        }
    }

    /// The current path carries ECN marks, so packets are marked ECT(0).
    pub fn is_ecn_capable(&self) -> bool {
        self.path.ecn.is_capable()
    }

    /// Packets that arrived marked CE, as the peer says.
    pub fn ecn_ce(&self) -> u64 {
        self.peer_counts.ce()
    }

    /// Full datagrams now have `mtu` bytes of UDP payload.
    pub fn set_mtu(&mut self, mtu: u16) {
        self.path.set_mtu(mtu);
    }

    /// Sends no faster than this from now on, on this path and those that follow.
    pub fn set_rate_limit(&mut self, now: Time, bytes_per_second: u64) {
        self.last_change = now;
        self.path.set_rate_limit(now, bytes_per_second);
    }

    /// The peer says it delays ACKs at most so long.
    pub fn set_max_ack_delay(&mut self, max_ack_delay: Duration) {
        self.config.max_ack_delay = max_ack_delay;
    }

    /// Silence for so long ends the connection.
    pub fn set_idle_timeout(&mut self, idle_timeout: Duration) {
        self.wait_max = (idle_timeout / IDLE_TIMEOUT_PART).max(PTO_INTERVAL_MAX);
    }

    /// The handshake took `rtt`: assume that until there is a sample.
    pub fn assume_rtt(&mut self, now: Time, rtt: Duration) {
        self.last_change = now;
        self.path.assume_rtt(now, rtt);
    }

    /// Packets take another path from now on: round trip, congestion and pacing start anew. Older packets are still
    /// detected as lost and handed back.
    pub fn reset_path(&mut self, now: Time, mtu: u16) {
        let generation = self.path.generation + 1;
        let ack_request = self.path.ack_request;
        let rate_limit = self.path.rate_limit();
        self.path = self.config.path(now, generation, mtu);
        self.path.set_rate_limit(now, rate_limit);
        self.path.ack_request = ack_request;
        self.late.clear();
        self.pto_count = 0;
        self.last_change = now;
    }

    /// The controller of the current path, for its state and metrics.
    pub fn controller(&self) -> &dyn Controller {
        self.path.controller()
    }

    /// Round-trip estimates of the current path.
    pub fn rtt(&self) -> &Rtt {
        &self.path.rtt
    }

    /// Bytes of outstanding ack-eliciting packets of the current path.
    pub fn bytes_in_flight(&self) -> u64 {
        self.path.in_flight
    }

    /// Congestion window, bytes.
    pub fn window(&self) -> u64 {
        self.path.control.window
    }

    /// Pacing rate, bytes per second.
    pub fn pacing_rate(&self) -> u64 {
        self.path.control.pacing_rate
    }

    /// Bytes best sent together at the current rate.
    pub fn send_quantum(&self) -> u64 {
        self.path.control.send_quantum
    }

    /// See [`Control::acks_per_window`](crate::congestion::Control::acks_per_window).
    pub fn acks_per_window(&self) -> u64 {
        self.path.control.acks_per_window
    }

    /// Largest packet number acknowledged.
    pub fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// Packets declared lost so far, MTU probes not counted.
    pub fn packets_lost(&self) -> u64 {
        self.packets_lost
    }

    /// Of these, packets acknowledged later.
    pub fn spurious_losses(&self) -> u64 {
        self.spurious_losses
    }

    /// Probe timeouts so far.
    pub fn probe_timeouts(&self) -> u64 {
        self.probe_timeouts
    }
}

#[derive(Default)]
struct AckSettled {
    sum: AckSum,
    marks: AckedMarks,
    /// When the largest acknowledged packet was sent, if that gives an RTT sample.
    rtt_sent_at: Option<Time>,
}
