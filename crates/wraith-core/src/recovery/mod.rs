//! Loss detection and the sending budget of one connection (RFC 9002; SPEC §7).
//!
//! [`Recovery`] keeps every packet from its sending until it is acknowledged or lost, and then
//! returns its frames exactly once. `path` measures the path and owns congestion control and
//! pacing. Loss is detected by time alone (`reordering`). Late ACKs of packets declared lost are
//! detected, and their effects are undone.
//!
//! Invariants:
//!
//! - Bytes in flight are the sum of the sizes of outstanding ack-eliciting packets of the current
//!   path.
//! - After the caller has handled a timeout, the next timeout lies in the future.
//! - The module reads no clock.

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

/// Timer granularity (RFC 9002 §6.1.2). Finer timers would fire on the scheduler's jitter.
const GRANULARITY: Duration = Duration::from_millis(1);
/// Maximum interval between backed-off probes, unless the path is slower. So the end of an outage
/// is detected soon, and a burst of losses counted in packets ends before the idle timeout.
const PTO_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// Divisor: the maximum wait for an acknowledgement or a loss is this fraction of the idle timeout,
/// but at least [`PTO_INTERVAL_MAX`]. A round trip that was long once must not end a connection by
/// idle timeout.
const IDLE_TIMEOUT_PART: u32 = 4;

/// Sending budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// This many bytes: a whole number of full packets, at least one.
    Bytes(u64),
    /// Blocked by pacing until this time.
    At(Time),
    /// Blocked by a full window until an ACK, a loss or a probe timeout.
    Blocked,
}

/// Result of a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutOutcome {
    /// The timeout was early or is obsolete.
    Nothing,
    /// Packets were declared lost.
    Lost,
    /// One or two ack-eliciting packets must be sent now, regardless of the budget.
    Probe,
}

/// Loss detection of a connection, and congestion control of its current path. `F` is the owner's
/// data of a packet, returned when the packet is settled.
///
/// The owner calls:
///
/// - [`budget`](Self::budget) before it builds data packets;
/// - [`on_sent`](Self::on_sent) for every packet;
/// - [`on_ack`](Self::on_ack) for every ACK frame, and [`on_timeout`](Self::on_timeout) at the time
///   of [`timeout`](Self::timeout); after each of these it handles everything in [`Settled`];
/// - [`set_app_limited`](Self::set_app_limited) whenever it has nothing to send, flow control
///   included, while the budget allows more.
#[derive(Debug)]
pub struct Recovery<F> {
    config: RecoveryConfig,
    sent: SentPackets<Outstanding<F>>,
    late: LatePackets,
    skipped: Skipped,
    /// Maximum wait for an acknowledgement, independent of the round trip.
    wait_max: Duration,
    path: Path,
    /// Loss delay of packets of earlier paths, if longer than that of the current path.
    left_loss_delay: Duration,
    /// Number of outstanding ack-eliciting packets of all paths.
    eliciting: u64,
    largest_acked: Option<u64>,
    largest_acked_sent_at: Time,
    /// Start of the current probe timeout.
    pto_from: Time,
    pto_count: u32,
    /// Time of the last change to the estimates behind the timers.
    last_change: Time,
    peer_counts: PeerCounts,
    /// Marked packets acknowledged by the current ACK.
    acked_marks: AckedMarks,
    packets_lost: u64,
    spurious_losses: u64,
    probe_timeouts: u64,
    /// Ranges of the current ACK; kept to reuse its memory.
    ranges: Vec<RangeInclusive<u64>>,
}

impl<F> Recovery<F> {
    /// Creates a recovery with nothing sent.
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

    /// Records a packet sent at `now`. Panics if `pn` was used before.
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

    /// Delays later packets by the PADDING of a packet that is not ack-eliciting. The window does
    /// not count such a packet, because nothing acknowledges it.
    pub fn on_padding_sent(&mut self, bytes: u32) {
        self.path.on_padding_sent(bytes);
    }

    /// Skips packet number `pn`: the next packet has a higher one. A peer that acknowledges `pn`
    /// violates the protocol.
    pub fn on_skipped(&mut self, pn: u64) {
        self.skipped.push(pn);
    }

    /// Returns the number of probe timeouts since the last acknowledgement. From the second on,
    /// probes should be small, because only large datagrams may be lost.
    pub fn pto_count(&self) -> u32 {
        self.pto_count
    }

    /// Returns true if an ack-eliciting packet is outstanding, so that a probe timeout or a loss is
    /// due some time.
    pub fn has_eliciting(&self) -> bool {
        self.eliciting > 0
    }

    /// Returns the frames of the oldest outstanding ack-eliciting packet, for a probe to
    /// retransmit.
    pub fn oldest_unacked(&self) -> Option<&F> {
        let packets = self.sent.iter().map(|outstanding| &outstanding.packet);
        packets.filter(|packet| packet.ack_eliciting).map(|packet| &packet.frames).next()
    }

    /// Returns the budget that window and pacing allow now. ACK-only packets, probes after
    /// [`TimeoutOutcome::Probe`] and CLOSE need no budget.
    pub fn budget(&mut self, now: Time) -> Budget {
        if self.sent.len() >= OUTSTANDING_MAX || self.is_waiting_for_an_answer() {
            return Budget::Blocked;
        }
        self.path.budget(now)
    }

    /// Records that there is budget left but nothing to send.
    pub fn set_app_limited(&mut self, now: Time) {
        self.path.set_app_limited(now);
    }

    /// Records this side's request to the peer: an ACK after `packets` packets or `delay`.
    pub fn set_ack_request(&mut self, packets: u64, delay: Duration) {
        self.path.ack_request = (packets, delay);
    }

    /// Returns true while the controller measures the round trip of an empty path and needs
    /// immediate ACKs.
    pub fn wants_prompt_acks(&self) -> bool {
        self.path.control.measuring_round_trip
    }

    /// Returns true if packets built now must be marked ECT(0) and have [`SentPacket::ect0`] set.
    /// To be called once for all datagrams of one send.
    pub fn marks_ecn(&mut self, now: Time) -> bool {
        let pto = self.pto();
        self.path.ecn.marks(now, pto)
    }

    /// Handles the ECN counts of an ACK frame, if any. To be called after [`on_ack`](Self::on_ack)
    /// for every frame.
    pub fn on_ecn(&mut self, now: Time, counts: Option<EcnCounts>) {
        let acked = std::mem::take(&mut self.acked_marks);
        let marks = self.peer_counts.on_ack(&mut self.path.ecn, acked, counts);
        if marks > 0 {
            self.path.on_congestion_experienced(now, marks, self.largest_acked_sent_at);
        }
    }

    /// Returns true if the current path carries ECN marks, so that packets are marked ECT(0).
    pub fn is_ecn_capable(&self) -> bool {
        self.path.ecn.is_capable()
    }

    /// Returns the number of packets that arrived marked CE, as reported by the peer.
    pub fn ecn_ce(&self) -> u64 {
        self.peer_counts.ce()
    }

    /// Sets the UDP payload size of full datagrams, in bytes.
    pub fn set_mtu(&mut self, mtu: u16) {
        self.path.set_mtu(mtu);
    }

    /// Limits the sending rate on this path and all later ones.
    pub fn set_rate_limit(&mut self, now: Time, bytes_per_second: u64) {
        self.last_change = now;
        self.path.set_rate_limit(now, bytes_per_second);
    }

    /// Sets the peer's maximum ACK delay.
    pub fn set_max_ack_delay(&mut self, max_ack_delay: Duration) {
        self.config.max_ack_delay = max_ack_delay;
    }

    /// Sets the idle timeout of the connection.
    pub fn set_idle_timeout(&mut self, idle_timeout: Duration) {
        self.wait_max = (idle_timeout / IDLE_TIMEOUT_PART).max(PTO_INTERVAL_MAX);
    }

    /// Assumes the handshake's round trip `rtt` until there is a sample.
    pub fn assume_rtt(&mut self, now: Time, rtt: Duration) {
        self.last_change = now;
        self.path.assume_rtt(now, rtt);
    }

    /// Switches to another path: round trip, congestion control and pacing restart. Losses of older
    /// packets are still detected, and their frames returned.
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

    /// Like [`reset_path`](Self::reset_path), for leaving a path that still works. Packets in
    /// flight there keep their loss delay, however much shorter the new path is.
    pub fn leave_path(&mut self, now: Time, mtu: u16) {
        let left_loss_delay = self.loss_delay().max(self.left_loss_delay);
        self.reset_path(now, mtu);
        self.left_loss_delay = left_loss_delay;
    }

    /// Returns the controller of the current path, for its state and metrics.
    pub fn controller(&self) -> &dyn Controller {
        self.path.controller()
    }

    /// Returns the round-trip estimates of the current path.
    pub fn rtt(&self) -> &Rtt {
        &self.path.rtt
    }

    /// Returns the bytes of outstanding ack-eliciting packets of the current path.
    pub fn bytes_in_flight(&self) -> u64 {
        self.path.in_flight
    }

    /// Returns the congestion window, in bytes.
    pub fn window(&self) -> u64 {
        self.path.control.window
    }

    /// Returns the pacing rate, in bytes per second.
    pub fn pacing_rate(&self) -> u64 {
        self.path.control.pacing_rate
    }

    /// Returns the send quantum at the current rate, in bytes.
    pub fn send_quantum(&self) -> u64 {
        self.path.control.send_quantum
    }

    /// Returns [`Control::acks_per_window`](crate::congestion::Control::acks_per_window).
    pub fn acks_per_window(&self) -> u64 {
        self.path.control.acks_per_window
    }

    /// Returns the largest acknowledged packet number.
    pub fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// Returns the number of packets declared lost, without MTU probes.
    pub fn packets_lost(&self) -> u64 {
        self.packets_lost
    }

    /// Returns the number of these that were acknowledged later.
    pub fn spurious_losses(&self) -> u64 {
        self.spurious_losses
    }

    /// Returns the number of probe timeouts so far.
    pub fn probe_timeouts(&self) -> u64 {
        self.probe_timeouts
    }
}
