//! Loss detection and the sending budget of one connection (RFC 9002; SPEC §7).
//!
//! [`Recovery`] keeps every packet from its sending until it is acknowledged or lost, and hands its frames back then,
//! exactly once. What the packets say about the path goes to `path`, which owns congestion control and pacing.
//! Loss is decided by time alone (`reordering`); late ACKs of packets declared lost are noticed and undone.
//!
//! Invariants: bytes in flight are the sum of the sizes of outstanding ack-eliciting packets of the current path; the
//! timer a driver is given lies in the future once it was served; nothing here reads a clock.

mod acknowledgement;
mod bounds;
mod config;
mod ecn;
mod loss;
mod pacer;
mod packet;
mod path;
mod persistent_congestion;
mod reordering;
mod sent_packets;
mod skipped;
#[cfg(test)]
pub(crate) mod tests;
mod timers;

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::Time;
use crate::congestion::Controller;
use crate::frame::EcnCounts;
use crate::measure::Snapshot;
use bounds::OUTSTANDING_MAX;
use ecn::{AckedMarks, PeerCounts};
use packet::Outstanding;
use path::Path;
use reordering::LatePackets;
use sent_packets::SentPackets;
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
    /// How long packets of earlier paths are waited for, where that is longer than on the path in use.
    left_loss_delay: Duration,
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
            left_loss_delay: Duration::ZERO,
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
        if self.sent.len() >= OUTSTANDING_MAX || self.is_waiting_for_an_answer() {
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
        self.left_loss_delay = Duration::ZERO;
        self.late.clear();
        self.pto_count = 0;
        self.last_change = now;
    }

    /// As [`reset_path`](Self::reset_path), from a path that still works: what is in flight there is waited for as long as it was
    /// before, however much shorter the new path is.
    pub fn leave_path(&mut self, now: Time, mtu: u16) {
        let left_loss_delay = self.loss_delay().max(self.left_loss_delay);
        self.reset_path(now, mtu);
        self.left_loss_delay = left_loss_delay;
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
