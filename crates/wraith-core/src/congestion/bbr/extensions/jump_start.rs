//! Startup jumps toward what the first packet train showed.
//!
//! - The draft: Startup multiplies the rate by at most 2.77 a round.
//! - Ours: it opens the window toward the rate of the newest [`super::packet_train`] at once, as long as what was delivered
//!   keeps up, no queue stands, and little is lost.
//! - Why: multiplying takes five round trips to fill 500 Mbit/s × 100 ms, and twelve for 10 Gbit/s × 600 ms.
//! - Grid: with [`super::probe_losses`] 97 → 9 of 672 cells behind 0.95 × quinn, most of them fast and long.
//!
//! Invariants: a jump is bounded by what the path delivered in the last round trip (or the first window), whatever the
//! train says. After a jump that lost too much, window and rate are the model's again, and there is no other.

use std::time::Duration;

use super::packet_train::PacketTrain;
use crate::congestion::bbr::{Bbr, State};
use crate::congestion::controller::Acked;

/// What may be in flight after a jump, as a multiple of what a round delivered. Tripling reaches that in two and a half
/// rounds.
const JUMP_MAX: f64 = 12.0;
/// The multiple grows by this factor where a jump was delivered: that was a train of a hundred packets and more.
const JUMP_PROVEN: f64 = 2.0;
/// Delivered windows, of the size of the first, that prove a jump.
const PROVEN_WINDOWS: u64 = 4;
/// Above this round trip a jump may be longer in proportion: the round trips in which tripling would get there are what
/// makes long paths slow.
const JUMP_RTT: Duration = Duration::from_millis(100);
/// Part of the train's rate that is paced at.
const PACING_PART: f64 = 0.95;
/// The train's rate and the bandwidth that was found agree within this part.
const AGREE: f64 = 0.15;
/// Rounds in which what a jump sent may still be found lost.
const AFTERMATH_ROUNDS: u64 = 2;

/// Where Startup is with jumping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No jump yet.
    Ready,
    /// The window was opened toward the train's rate, the last time in this round.
    Jumped { in_round: u64 },
    /// A queue, a plateau or losses ended it.
    Over,
    /// What was sent was largely lost, as this round showed.
    Failed { in_round: u64 },
}

/// The jumps of one Startup.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct JumpStart {
    train: PacketTrain,
    stage: Stage,
    /// The window was opened toward the train's rate, whatever came of it.
    made: bool,
}

impl Default for JumpStart {
    fn default() -> Self {
        Self { train: PacketTrain::default(), stage: Stage::Ready, made: false }
    }
}

impl Bbr {
    /// Takes what an ACK says about trains.
    pub(in super::super) fn update_train(&mut self, acked: &Acked) {
        if self.state == State::Startup {
            self.jump_start.train.update(acked, self.mtu);
        }
    }

    /// Ends jumping at the first sign that the pipe might be full.
    pub(in super::super) fn check_jump(&mut self, calm: bool, lossy: bool) {
        if calm || !self.may_jump() {
            return;
        }
        let failed = lossy && self.is_jumping();
        self.jump_start.stage =
            if failed { Stage::Failed { in_round: self.round.round_count } } else { Stage::Over };
    }

    fn may_jump(&self) -> bool {
        matches!(self.jump_start.stage, Stage::Ready | Stage::Jumped { .. })
    }

    /// A jump is under way: feedback had better come soon.
    pub(in super::super) fn is_jumping(&self) -> bool {
        self.state == State::Startup
            && matches!(self.jump_start.stage, Stage::Jumped { in_round }
                if self.round.round_count <= in_round + AFTERMATH_ROUNDS)
    }

    /// A jump lost too much: the first rate was no guess but a mistake.
    pub(in super::super) fn has_failed_to_jump(&self) -> bool {
        matches!(self.jump_start.stage, Stage::Failed { .. })
    }

    /// What is lost now may have been sent in a jump that failed; it says nothing about the rate since.
    pub(in super::super) fn is_after_failed_jump(&self) -> bool {
        matches!(self.jump_start.stage, Stage::Failed { in_round }
            if self.round.round_count <= in_round + AFTERMATH_ROUNDS)
    }

    /// Startup jumped, and found the bandwidth that the train showed: from here it need only probe.
    pub(in super::super) fn is_at_train_rate(&self) -> bool {
        let Some(rate) = self.jump_start.train.rate() else { return false };
        let difference = (self.max_bw.get() as f64 / rate as f64 - 1.0).abs();
        self.state == State::Startup
            && self.jump_start.made
            && !self.has_failed_to_jump()
            && difference < AGREE
    }

    /// Opens the window toward what the train showed.
    pub(in super::super) fn open_toward_train(&mut self, acked: &Acked) {
        let Some(rate) = self.jump_start.train.rate() else { return };
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
        if pipe > self.cwnd {
            self.cwnd = pipe;
            self.jump_start.stage = Stage::Jumped { in_round: self.round.round_count };
            self.jump_start.made = true;
        }
        self.pacing_rate = self.pacing_rate.max((PACING_PART * rate as f64) as u64);
    }
}
