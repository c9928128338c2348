//! Loss that is there whatever we send: radio, bad cables, overloaded middleboxes.
//!
//! - The draft: more than 2 % of loss in a probe, and any loss outside of one, means that too much is in flight.
//! - Ours: loss that stays after slowing down is the path's own, and only loss beyond it counts. Outside probes the same
//!   threshold holds as in them, and chance is allowed for.
//! - Why: where a path loses three percent by chance every probe fails and every cruise slows down, to a standstill. A tenth of
//!   a percent costs a fifth of the bandwidth of a long path.
//! - Grid: the cells with 2 % of random loss have a median of 89 % of the capacity, those with 10 % one of 80 %; CUBIC has 2 %
//!   and 0.6 %. Asking after a failed probe too: 1 Mbit/s × 600 ms with 10 % 59.4 → 67.9 %.
//!
//! A trial asks the path. If at a lower rate and with an empty queue (no longer round trips) at least [`STAYS`] of the loss
//! remains, it is random. The estimate falls as the path loses less. Startup asks without slowing down: what was lost while
//! half as much was sent as the path turned out to carry is random too.
//!
//! A policer's or a shallow queue's loss goes away with the excess. A deep queue shows in the round trip. Loss beyond
//! [`RANDOM_LOSS_MAX`] always counts.

use std::time::Duration;

use super::host_delay::HOST_RTT;
use crate::Time;
use crate::congestion::bbr::LOSS_THRESH;
use crate::congestion::controller::{Acked, Lost};

/// The part of the loss that must remain after slowing down.
const STAYS: f64 = 0.5;
/// Random loss beyond which a path is treated as overloaded by us.
const RANDOM_LOSS_MAX: f64 = 0.2;
/// Packets a measurement needs: three in sixty are then rarely chance on a path that loses one in a hundred.
const PACKETS_MIN: u64 = 60;
/// Loss rounds a trial lasts at least, because the loss of one is seen in the next.
const TRIAL_ROUNDS: u32 = 2;
/// Least time of a trial. A loss is known a reordering time after the round trip, which is the longer of the two on short
/// paths.
const TRIAL_TIME: Duration = Duration::from_millis(5);
/// Growth of the bandwidth that proves a loss before it.
const STARTUP_GROWTH: u64 = 2;
/// A trial that has not seen [`PACKETS_MIN`] by then is given up.
const TRIAL_ROUNDS_MAX: u32 = 16;
/// Lost packets in a round that say nothing: a single one is over the threshold where fewer than fifty are in flight.
const NOISE_PACKETS: f64 = 2.0;
/// A round trip longer by more than this part of the shortest has waited in a queue.
const QUEUE_DIVISOR: u32 = 4;

/// The estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct RandomLoss {
    /// Part of the bytes that are lost.
    rate: f64,
    trial: Option<Trial>,
    /// This cycle, outside probes.
    acked: u64,
    lost: u64,
    startup: Option<StartupRound>,
}

/// How far Startup was at the beginning of a round: bandwidth found, bytes acknowledged and lost.
#[derive(Clone, Copy, Debug)]
struct StartupRound {
    bandwidth: u64,
    acked: u64,
    lost: u64,
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    /// Packets sent since this much was delivered belong to it.
    since: u64,
    /// When its first packet and the newest were acknowledged.
    began: Option<Time>,
    newest: Time,
    /// The loss rate before.
    before: f64,
    acked: u64,
    lost: u64,
    rounds: u32,
    queued: bool,
    shortest: Option<Duration>,
}

impl RandomLoss {
    /// Part of the bytes that are lost whatever we do.
    pub(in super::super) fn rate(&self) -> f64 {
        self.rate
    }

    /// The loss rate that counts.
    pub(in super::super) fn threshold(&self) -> f64 {
        LOSS_THRESH + self.rate
    }

    /// Of `bytes`, so many may be lost without meaning anything: the threshold, and what chance adds to it.
    pub(in super::super) fn tolerated(&self, bytes: u64, mtu: u16) -> u64 {
        let (bytes, mtu) = (bytes as f64, f64::from(mtu));
        // Twice the standard deviation of what chance takes from so many packets.
        let scatter = 2.0 * (self.rate * bytes * mtu).sqrt();
        (self.threshold() * bytes + scatter.max(NOISE_PACKETS * mtu)) as u64
    }

    /// We send more slowly since `delivered` bytes were; the round before lost `before`. That round was picked for its
    /// losses, so what the cycle lost so far says more.
    pub(in super::super) fn begin_trial(&mut self, delivered: u64, before: f64, mtu: u16) {
        let total = self.acked + self.lost;
        let enough = total >= PACKETS_MIN * u64::from(mtu);
        let usual = self.lost as f64 / total.max(1) as f64;
        let before = if enough { before.min(usual) } else { before };
        self.trial.get_or_insert(Trial {
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

    /// We send faster again.
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

    /// Ends a trial that has seen enough. True if it found loss that does not follow the rate.
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

    /// A round of Startup began, with so much bandwidth found. What a path loses when half as much is sent as it turned
    /// out to carry, it loses whatever we do.
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

    /// A cycle is over that lost a part of what it sent at no more than the bandwidth. The estimate goes half the way
    /// there, but only up to the threshold: more has to be proven.
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

    /// A trial is going on that a probe would spoil.
    pub(in super::super) fn in_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// A cycle begins, or a probe is over.
    pub(in super::super) fn begin_cycle(&mut self) {
        (self.acked, self.lost) = (0, 0);
    }
}
