//! Jump start: Startup jumps to the rate of the first packet train.
//!
//! - The draft: Startup multiplies the rate by at most 2.77 per round.
//! - Ours: Startup opens the window towards the rate of the newest [`super::packet_train`] at once.
//!   Such a jump requires that delivery keeps up, without a queue and with little loss.
//! - Why: multiplying takes five round trips to fill 500 Mbit/s × 100 ms, and twelve for 10 Gbit/s
//!   × 600 ms.
//! - Grid: of 672 cells, the number below 0.95 × quinn's rate fell from 97 to 9, together with
//!   [`super::probe_losses`]. Most of these cells are fast and long paths.
//!
//! Invariants: the delivery of the last round trip (or the initial window) bounds a jump, even if
//! the train shows more. After a jump with too much loss, window and rate return to the model, and
//! no other jump follows.

use std::time::Duration;

use super::packet_train::PacketTrain;
use crate::congestion::bbr::{Bbr, BbrState};
use crate::congestion::controller::Acked;

/// Maximum bytes in flight after a jump, as a multiple of a round's delivery. Tripling reaches that
/// in two and a half rounds.
const JUMP_MAX: f64 = 12.0;
/// Factor on that multiple once a jump was delivered: a train of a hundred packets or more.
const JUMP_PROVEN: f64 = 2.0;
/// Number of delivered initial windows that prove a jump.
const PROVEN_WINDOWS: u64 = 4;
/// Round trip above which a jump may be longer in proportion. On long paths, the round trips of
/// tripling are the reason for slow transfers.
const JUMP_RTT: Duration = Duration::from_millis(100);
/// Fraction of the train's rate at which packets are paced.
const PACING_PART: f64 = 0.95;
/// Maximum relative difference at which the train's rate and the measured bandwidth agree.
const AGREE: f64 = 0.15;
/// Rounds after a jump in which its losses may still be detected.
const AFTERMATH_ROUNDS: u64 = 2;

/// Progress of the jump start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No jump yet.
    Ready,
    /// The window was opened towards the train's rate, most recently in this round.
    Jumped { in_round: u64 },
    /// A queue, a plateau or losses ended jumping.
    Over,
    /// Most of a jump was lost, as detected in this round.
    Failed { in_round: u64 },
}

/// The jumps of one Startup.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct JumpStart {
    train: PacketTrain,
    stage: Stage,
    /// A jump was made, with any result.
    made: bool,
}

impl Default for JumpStart {
    fn default() -> Self {
        Self { train: PacketTrain::default(), stage: Stage::Ready, made: false }
    }
}

impl Bbr {
    /// Updates the packet train with an ACK.
    pub(in super::super) fn update_train(&mut self, acked: &Acked) {
        if self.state == BbrState::Startup {
            self.jump_start.train.update(acked, self.mtu);
        }
    }

    /// Ends jumping at the first sign that the pipe may be full.
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

    /// Returns true during a jump, when feedback should come soon.
    pub(in super::super) fn is_jumping(&self) -> bool {
        self.state == BbrState::Startup
            && matches!(self.jump_start.stage, Stage::Jumped { in_round }
                if self.round.round_count <= in_round + AFTERMATH_ROUNDS)
    }

    /// Returns true if a jump lost too much, so that its rate was wrong.
    pub(in super::super) fn has_failed_to_jump(&self) -> bool {
        matches!(self.jump_start.stage, Stage::Failed { .. })
    }

    /// Returns true while losses may belong to a failed jump. They do not reflect the rate since
    /// then.
    pub(in super::super) fn is_after_failed_jump(&self) -> bool {
        matches!(self.jump_start.stage, Stage::Failed { in_round }
            if self.round.round_count <= in_round + AFTERMATH_ROUNDS)
    }

    /// Returns true if Startup jumped and reached the train's bandwidth. It then only needs to
    /// probe.
    pub(in super::super) fn is_at_train_rate(&self) -> bool {
        let Some(rate) = self.jump_start.train.rate() else { return false };
        let difference = (self.max_bw.get() as f64 / rate as f64 - 1.0).abs();
        self.state == BbrState::Startup
            && self.jump_start.made
            && !self.has_failed_to_jump()
            && difference < AGREE
    }

    /// Opens the window towards the train's rate.
    pub(in super::super) fn open_toward_train(&mut self, acked: &Acked) {
        let Some(rate) = self.jump_start.train.rate() else { return };
        if self.state != BbrState::Startup || !self.may_jump() {
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
