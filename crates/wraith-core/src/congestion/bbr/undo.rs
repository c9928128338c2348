//! State of a recovery episode, and its undo when every loss was reordering (draft §5.5.11).

use super::{Bbr, BbrState, Phase, StartupLoss, UNLIMITED};

/// State saved at the first loss of an episode.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The state that the loss ended.
    pub(super) state: Option<BbrState>,
    saved: Option<Saved>,
}

#[derive(Clone, Copy, Debug)]
struct Saved {
    bw_shortterm: u64,
    inflight_shortterm: u64,
    inflight_longterm: u64,
}

impl Undo {
    #[cfg(test)]
    pub(super) fn has_saved(&self) -> bool {
        self.saved.is_some()
    }

    /// Discards the saved state: a CE mark confirmed the congestion.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Bbr {
    /// SaveStateUponLoss.
    pub(super) fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        let saved = Saved {
            bw_shortterm: self.short_term.bw_shortterm,
            inflight_shortterm: self.short_term.inflight_shortterm,
            inflight_longterm: self.long_term.inflight_longterm,
        };
        self.undo = Undo { state: None, saved: Some(saved) };
    }

    /// HandleSpuriousLossDetection.
    pub(super) fn handle_spurious_loss_detection(&mut self) {
        let Undo { state, saved: Some(saved) } = std::mem::take(&mut self.undo) else { return };
        self.restore_cwnd();
        self.in_recovery = false;
        self.short_term.forgive();
        self.startup_loss = StartupLoss::default();
        self.full_bw.reset(0);
        self.short_term.bw_shortterm = self.short_term.bw_shortterm.max(saved.bw_shortterm);
        self.short_term.inflight_shortterm =
            self.short_term.inflight_shortterm.max(saved.inflight_shortterm);
        self.long_term.inflight_longterm =
            self.long_term.inflight_longterm.max(saved.inflight_longterm);
        match state {
            Some(BbrState::Startup) if self.state != BbrState::Startup => {
                self.full_bw.reached = false;
                if self.state != BbrState::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(BbrState::ProbeBw(Phase::Up))
                if !self.is_up() && self.state != BbrState::ProbeRtt =>
            {
                self.start_probe_bw_refill(self.short_term.delivered);
            }
            _ => {}
        }
        self.bound_bw_for_model();
    }

    /// SaveCwnd.
    pub(super) fn save_cwnd(&mut self) {
        self.prior_cwnd = if self.in_recovery || self.state == BbrState::ProbeRtt {
            self.prior_cwnd.max(self.cwnd)
        } else {
            self.cwnd
        };
    }

    /// RestoreCwnd; the model bounds the window again at the end of the ACK.
    pub(super) fn restore_cwnd(&mut self) {
        debug_assert!(self.prior_cwnd != UNLIMITED);
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}
