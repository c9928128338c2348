//! Random loss, independent of the sending rate: radio, bad cables, overloaded middleboxes.
//!
//! - The draft: more than 2 % of loss in a probe, and any loss outside of one, means that too much
//!   is in flight.
//! - Ours: loss that remains after slowing down is random, and only loss beyond it means
//!   congestion. The same threshold holds inside and outside of probes, with an allowance for
//!   statistical variation.
//! - Why: on a path with three percent of random loss, every probe fails and every cruise slows
//!   down, to a standstill. A tenth of a percent costs a fifth of the bandwidth of a long path.
//! - Grid: median of 89 % of the capacity in the cells with 2 % of random loss, and 80 % in those
//!   with 10 %; CUBIC has 2 % and 0.6 %. A trial also after a failed probe improved 1 Mbit/s × 600
//!   ms with 10 % of loss: 59.4 → 67.9 % of the capacity.
//!
//! A trial tests the path at a lower rate and with an empty queue (no longer round trips). If at
//! least [`STAYS`] of the loss remains, it is random. The estimate falls as the path loses less.
//! Startup tests without slowing down: losses at half the rate that the path turned out to carry
//! are random too.
//!
//! The loss of a policer or a shallow queue disappears when the rate is low enough. A deep queue
//! shows in the round trip. Loss beyond [`RANDOM_LOSS_MAX`] always means congestion.

use std::time::Duration;

use super::host_delay::HOST_RTT;
use crate::Time;
use crate::congestion::bbr::LOSS_THRESH;
use crate::congestion::controller::{Acked, Lost};

/// Fraction of the loss that must remain after slowing down.
const STAYS: f64 = 0.5;
/// Random loss beyond which the sender is treated as overloading the path.
const RANDOM_LOSS_MAX: f64 = 0.2;
/// Minimum number of packets in a measurement: three losses in sixty are then rarely chance on a
/// path that loses one in a hundred.
const PACKETS_MIN: u64 = 60;
/// Minimum number of loss rounds in a trial, because the loss of a round is detected in the next.
const TRIAL_ROUNDS: u32 = 2;
/// Minimum duration of a trial. A loss is detected a reordering delay after the round trip, and on
/// short paths that delay is the longer of the two.
const TRIAL_TIME: Duration = Duration::from_millis(5);
/// Growth factor of the bandwidth that proves earlier loss to be random.
const STARTUP_GROWTH: u64 = 2;
/// Rounds after which a trial with fewer than [`PACKETS_MIN`] packets is abandoned.
const TRIAL_ROUNDS_MAX: u32 = 16;
/// Lost packets in a round that are ignored: with fewer than fifty in flight, a single one exceeds
/// the threshold.
const NOISE_PACKETS: f64 = 2.0;
/// Divisor: a round trip longer than the minimum by more than this fraction has waited in a queue.
const QUEUE_DIVISOR: u32 = 4;

/// The estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct RandomLoss {
    /// Fraction of the bytes that are lost.
    rate: f64,
    trial: Option<LossTrial>,
    /// Bytes of this cycle outside of probes.
    acked: u64,
    lost: u64,
    startup: Option<StartupRound>,
}

/// State of Startup at the beginning of a round: bandwidth, bytes acknowledged and lost.
#[derive(Clone, Copy, Debug)]
struct StartupRound {
    bandwidth: u64,
    acked: u64,
    lost: u64,
}

#[derive(Clone, Copy, Debug)]
struct LossTrial {
    /// Packets sent when at least this much was delivered belong to the trial.
    since: u64,
    /// Times at which its first and its newest packet were acknowledged.
    began: Option<Time>,
    newest: Time,
    /// Loss rate before the trial.
    before: f64,
    acked: u64,
    lost: u64,
    rounds: u32,
    queued: bool,
    shortest: Option<Duration>,
}

impl RandomLoss {
    /// Returns the fraction of the bytes that are lost at random.
    pub(in super::super) fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the loss rate from which loss means congestion.
    pub(in super::super) fn threshold(&self) -> f64 {
        LOSS_THRESH + self.rate
    }

    /// Returns how many of `bytes` may be lost without counting as congestion: the threshold plus
    /// statistical variation.
    pub(in super::super) fn tolerated(&self, bytes: u64, mtu: u16) -> u64 {
        let (bytes, mtu) = (bytes as f64, f64::from(mtu));
        // Two standard deviations of the random losses among these packets.
        let scatter = 2.0 * (self.rate * bytes * mtu).sqrt();
        (self.threshold() * bytes + scatter.max(NOISE_PACKETS * mtu)) as u64
    }

    /// Begins a trial: the flow has slowed down since `delivered` bytes. The round before had a
    /// loss rate of `before`. That round was selected for its losses, so the loss rate of the whole
    /// cycle is more reliable.
    pub(in super::super) fn begin_trial(&mut self, delivered: u64, before: f64, mtu: u16) {
        let total = self.acked + self.lost;
        let enough = total >= PACKETS_MIN * u64::from(mtu);
        let usual = self.lost as f64 / total.max(1) as f64;
        let before = if enough { before.min(usual) } else { before };
        self.trial.get_or_insert(LossTrial {
            since: delivered,
            began: None,
            newest: Time::ZERO,
            before,
            acked: 0,
            lost: 0,
            rounds: 0,
            queued: false,
            shortest: None,
        });
    }

    /// Ends the trial because the flow speeds up again.
    pub(in super::super) fn end_trial(&mut self) {
        self.trial = None;
    }

    pub(in super::super) fn on_acked(
        &mut self,
        acked: &Acked,
        min_rtt: Option<Duration>,
        round_started: bool,
    ) {
        self.acked += acked.bytes;
        let Some(trial) = &mut self.trial else { return };
        if acked.rate.delivered_at_send < trial.since {
            return;
        }
        trial.acked += acked.bytes;
        trial.began.get_or_insert(acked.now);
        trial.newest = acked.now;
        if let Some(rtt) = acked.rtt {
            trial.shortest = Some(trial.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
        }
        if round_started {
            trial.rounds += 1;
            let empty =
                min_rtt.map_or(Duration::MAX, |min| min + (min / QUEUE_DIVISOR).max(HOST_RTT));
            trial.queued |= trial.shortest.take().is_some_and(|shortest| shortest > empty);
        }
    }

    pub(in super::super) fn on_lost(&mut self, lost: &Lost<'_>) {
        self.lost += lost.bytes;
        let Some(trial) = &mut self.trial else { return };
        let after = lost.packets.iter().filter(|packet| packet.delivered_at_send >= trial.since);
        trial.lost += after.map(|packet| u64::from(packet.size)).sum::<u64>();
    }

    /// Ends a trial with enough packets. Returns true if it found loss that does not follow the
    /// rate.
    pub(in super::super) fn is_proven(&mut self, mtu: u16) -> bool {
        let enough = PACKETS_MIN * u64::from(mtu);
        let Some(trial) = self.trial else { return false };
        let total = trial.acked + trial.lost;
        let time = trial.newest.since(trial.began.unwrap_or(trial.newest));
        if trial.rounds < TRIAL_ROUNDS
            || time < TRIAL_TIME
            || (total < enough && trial.rounds < TRIAL_ROUNDS_MAX)
        {
            return false;
        }
        self.trial = None;
        if total < enough {
            return false;
        }
        let rate = trial.lost as f64 / total as f64;
        let stayed = !trial.queued && rate >= STAYS * trial.before && rate > self.rate;
        if stayed {
            self.rate = rate.min(RANDOM_LOSS_MAX);
        }
        stayed
    }

    /// Handles a round of Startup that begins with this bandwidth. Losses at no more than half of
    /// the bandwidth that the path turned out to carry are random.
    pub(in super::super) fn on_startup_round(&mut self, bandwidth: u64, mtu: u16) {
        if let Some(StartupRound { bandwidth: before, acked, lost }) = self.startup {
            if bandwidth < STARTUP_GROWTH * before {
                return;
            }
            let total = acked + lost;
            if total >= PACKETS_MIN * u64::from(mtu) {
                self.rate = (lost as f64 / total as f64).min(RANDOM_LOSS_MAX);
            }
        }
        self.startup = Some(StartupRound { bandwidth, acked: self.acked, lost: self.lost });
    }

    /// Ends a cycle. Its loss at or below the bandwidth moves the estimate halfway, but only up to
    /// the threshold. More must be proven by a trial.
    pub(in super::super) fn end_cycle(&mut self, mtu: u16) {
        let total = self.acked + self.lost;
        if total >= PACKETS_MIN * u64::from(mtu) {
            let measured = self.lost as f64 / total as f64;
            if measured < self.rate || measured <= LOSS_THRESH {
                self.rate = (self.rate + measured) / 2.0;
            }
        }
        self.begin_cycle();
    }

    /// Returns true during a trial, which a probe would spoil.
    pub(in super::super) fn in_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// Restarts the counters: a cycle begins, or a probe is over.
    pub(in super::super) fn begin_cycle(&mut self) {
        (self.acked, self.lost) = (0, 0);
    }
}
