//! Startup (draft §5.3.1): doubles the rate each round until a plateau of the delivery rate or loss
//! shows that the pipe is full.
//!
//! [`startup_loss`](super::extensions::startup_loss) defines how much loss ends Startup.
//! [`fast_startup`](super::extensions::fast_startup) and
//! [`jump_start`](super::extensions::jump_start) make Startup faster.

use super::{Bbr, BbrState, Phase};
use crate::congestion::controller::{Acked, Lost};

/// Draft: StartupFullLossCnt, the number of runs of lost packets from which a round is treated as
/// lossy.
const STARTUP_FULL_LOSS_CNT: u32 = 6;

/// Losses of the current round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartupLoss {
    runs: u32,
    newest: Option<u64>,
}

impl Bbr {
    /// EnterStartup.
    pub(super) fn enter_startup(&mut self) {
        self.state = BbrState::Startup;
    }

    /// Counts runs of lost packets.
    pub(super) fn note_startup_losses(&mut self, lost: &Lost<'_>) {
        for packet in lost.packets {
            let continued = self.startup_loss.newest.is_some_and(|newest| newest + 1 == packet.pn);
            self.startup_loss.runs += u32::from(!continued);
            self.startup_loss.newest = Some(packet.pn);
        }
    }

    /// CheckStartupDone.
    pub(super) fn check_startup_done(&mut self, acked: &Acked) {
        self.check_startup_high_loss(acked);
        if self.state == BbrState::Startup && self.full_bw.reached {
            self.enter_drain();
        }
    }

    /// CheckStartupHighLoss.
    fn check_startup_high_loss(&mut self, acked: &Acked) {
        if !self.short_term.loss_round_start {
            return;
        }
        let runs = std::mem::take(&mut self.startup_loss.runs);
        if self.state != BbrState::Startup || self.full_bw.reached || runs < STARTUP_FULL_LOSS_CNT {
            return;
        }
        if self.is_after_failed_jump() {
            return;
        }
        let rate = &acked.rate;
        let lost = rate.lost as f64 / rate.in_flight_at_send.max(1) as f64;
        if lost <= self.startup_loss_thresh(rate) {
            return;
        }
        self.undo.state = Some(BbrState::Startup);
        self.end_startup_by_congestion();
    }

    /// Marks the pipe as full, and bounds the bytes in flight by the last delivery.
    pub(super) fn end_startup_by_congestion(&mut self) {
        self.full_bw.now = true;
        self.full_bw.reached = true;
        self.rough_bound.set();
        self.long_term.inflight_longterm =
            self.bdp_multiple(1.0).max(self.short_term.inflight_latest);
    }

    /// Returns true in ProbeBW_UP, to which undo returns with a new probe.
    pub(super) fn is_up(&self) -> bool {
        self.state == BbrState::ProbeBw(Phase::Up)
    }
}
