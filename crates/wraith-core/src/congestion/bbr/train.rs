//! Packet trains (deviation): what the narrowest link carries, read from the distances at which a burst's ACKs come.
//!
//! Packets that leave together queue up at the narrowest link and leave it one after the other, at its rate. Where the ACKs
//! of such a train come further apart than its packets left, bytes over time is that rate: known after one round trip,
//! where doubling needs ten. It is a hint and no more: other traffic makes it low, ACKs that bunch up make it high, and
//! a policer lets a first burst pass at the rate of the wire. So it never enters the model. It lets Startup *jump*:
//! open the window toward what the hint says, by [`JUMP_MAX`] at most in one round, and only as long as what was
//! delivered keeps up, no queue stands, and little is lost.
//!
//! Invariants: a jump is bounded by what the path delivered in the last round trip (or the first window), whatever the
//! hint says; after a jump that lost too much, window and rate are the model's again, and there is no other.

use std::time::Duration;

use super::{Bbr, State};
use crate::Time;
use crate::congestion::controller::Acked;

/// A train's ACKs come over so many times the time in which it left.
const SPREAD: f64 = 1.5;
/// Packets after the first ACK, and ACKs, that make a rate: of a first burst of ten, most.
const PACKETS_MIN: u64 = 4;
const ACKS_MIN: u32 = 2;
/// A train is no longer than this part of a round trip.
const LENGTH_DIVISOR: u32 = 2;

/// What a round delivered, times this, may be in flight after a jump. Tripling reaches that in two and a half rounds.
const JUMP_MAX: f64 = 12.0;
/// Times this, where a jump was delivered: that was a train of a hundred packets and more.
const JUMP_PROVEN: f64 = 2.0;
/// Delivered windows, of the size of the first, that prove a jump.
const PROVEN_WINDOWS: u64 = 4;
/// On longer round trips a jump may be longer in proportion: the round trips in which tripling would get there
/// are what makes them slow.
const JUMP_RTT: Duration = Duration::from_millis(100);
/// A little less than the hint.
const PACE: f64 = 0.95;
/// The hint and the bandwidth that was found agree within this part.
const AGREE: f64 = 0.15;
/// Rounds in which what a jump sent may still be found lost.
const AFTERMATH_ROUNDS: u64 = 2;

/// The newest train.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Train {
    /// When its first ACK came, and when the newest packet of that had left.
    first: Option<(Time, Time)>,
    /// Acknowledged after the first ACK.
    bytes: u64,
    acks: u32,
    rate: Option<u64>,
}

impl Train {
    /// Takes an ACK.
    fn update(&mut self, acked: &Acked, mtu: u16) {
        let longest = acked.smoothed_rtt / LENGTH_DIVISOR;
        if let Some((came, left)) = self.first {
            let spread = acked.now.since(came);
            let sending = acked.newest_sent_at.since(left);
            if !spread.is_zero() && spread < longest && sending.mul_f64(SPREAD) <= spread {
                self.bytes += acked.bytes;
                self.acks += 1;
                if self.acks >= ACKS_MIN && self.bytes >= PACKETS_MIN * u64::from(mtu) {
                    self.rate = Some((self.bytes as f64 / spread.as_secs_f64()) as u64);
                }
                return;
            }
        }
        let first = Some((acked.now, acked.newest_sent_at));
        *self = Self { first, bytes: 0, acks: 0, rate: self.rate };
    }
}

/// Where Startup is with jumping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// None yet.
    Ready,
    /// The window was opened toward the hint, the last time in this round.
    Jumped { in_round: u64 },
    /// A queue, a plateau or losses ended it.
    Over,
    /// What was sent was largely lost, as this round showed.
    Failed { in_round: u64 },
}

/// The jump of Startup.
#[derive(Clone, Copy, Debug)]
pub(super) struct Jump {
    train: Train,
    stage: Stage,
    /// The window was opened toward the hint, whatever came of it.
    made: bool,
}

impl Default for Jump {
    fn default() -> Self {
        Self { train: Train::default(), stage: Stage::Ready, made: false }
    }
}

impl Bbr {
    /// Takes what an ACK says about trains.
    pub(super) fn update_train(&mut self, acked: &Acked) {
        if self.state == State::Startup {
            self.jump.train.update(acked, self.mtu);
        }
    }

    /// Ends jumping at the first sign that the pipe might be full.
    pub(super) fn check_jump(&mut self, calm: bool, lossy: bool) {
        if calm || !self.may_jump() {
            return;
        }
        let failed = lossy && self.is_jumping();
        self.jump.stage =
            if failed { Stage::Failed { in_round: self.round.count } } else { Stage::Over };
    }

    fn may_jump(&self) -> bool {
        matches!(self.jump.stage, Stage::Ready | Stage::Jumped { .. })
    }

    /// A jump is under way: feedback had better come soon.
    pub(super) fn is_jumping(&self) -> bool {
        self.state == State::Startup
            && matches!(self.jump.stage, Stage::Jumped { in_round }
                if self.round.count <= in_round + AFTERMATH_ROUNDS)
    }

    /// A jump lost too much: the first rate was no guess but a mistake.
    pub(super) fn has_failed_to_jump(&self) -> bool {
        matches!(self.jump.stage, Stage::Failed { .. })
    }

    /// What is lost now may have been sent in a jump that failed; it says nothing about the rate since.
    pub(super) fn is_after_failed_jump(&self) -> bool {
        matches!(self.jump.stage, Stage::Failed { in_round }
            if self.round.count <= in_round + AFTERMATH_ROUNDS)
    }

    /// Startup jumped, and found the bandwidth that the train showed: from here it need only probe.
    pub(super) fn is_at_train_rate(&self) -> bool {
        let Some(rate) = self.jump.train.rate else { return false };
        let difference = (self.max_bw.get() as f64 / rate as f64 - 1.0).abs();
        self.state == State::Startup
            && self.jump.made
            && !self.has_failed_to_jump()
            && difference < AGREE
    }

    /// Opens the window toward what the train showed.
    pub(super) fn open_toward_train(&mut self, acked: &Acked) {
        let Some(rate) = self.jump.train.rate else { return };
        if self.state != State::Startup || !self.may_jump() {
            return;
        }
        let rtt = acked.smoothed_rtt;
        let first = self.first_window(rtt);
        let delivered = acked.rate.delivered.max(first);
        let proven = if delivered > PROVEN_WINDOWS * first { JUMP_PROVEN } else { 1.0 };
        let long = (rtt.as_secs_f64() / JUMP_RTT.as_secs_f64()).max(1.0);
        let most = (JUMP_MAX * proven * long * delivered as f64) as u64;
        let pipe = self.bdp_at(rate, 1.0).min(most);
        if pipe > self.window {
            self.window = pipe;
            self.jump.stage = Stage::Jumped { in_round: self.round.count };
            self.jump.made = true;
        }
        self.pacing_rate = self.pacing_rate.max((PACE * rate as f64) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 1200;

    fn us(micros: u64) -> Time {
        Time::ZERO + Duration::from_micros(micros)
    }

    /// An ACK of two packets that `came` and whose newest packet `left` then.
    fn ack(came: u64, left: u64) -> Acked {
        Acked {
            newest_sent_at: us(left),
            ..Acked::new(us(came), 2 * PACKET, Duration::from_millis(50))
        }
    }

    fn rate_of(acks: impl IntoIterator<Item = (u64, u64)>) -> Option<u64> {
        let mut train = Train::default();
        acks.into_iter().for_each(|(came, left)| train.update(&ack(came, left), PACKET as u16));
        train.rate
    }

    #[test]
    fn packets_that_left_together_show_the_rate_at_which_they_arrived() {
        // Two packets each 24 µs: 100 bytes a microsecond.
        assert_eq!(rate_of((0..5).map(|i| (50_000 + 24 * i, 0))), Some(100_000_000));
    }

    #[test]
    fn packets_that_arrive_as_they_left_show_nothing() {
        assert_eq!(rate_of((0..50).map(|i| (50_000 + 24 * i, 24 * i))), None);
    }

    #[test]
    fn acks_that_come_together_show_nothing() {
        assert_eq!(rate_of((0..50).map(|_| (50_000, 0))), None);
    }

    #[test]
    fn a_pair_of_acks_is_no_train() {
        assert_eq!(rate_of([(50_000, 0), (50_024, 0)]), None);
    }

    #[test]
    fn a_pause_begins_another_train() {
        let two = [(50_000, 0), (50_024, 0), (80_000, 1), (80_012, 1), (80_024, 1)];
        assert_eq!(rate_of(two), Some(200_000_000));
    }
}
