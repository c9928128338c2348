//! What a recovery episode changed, and taking it back when every loss in it was reordering (draft §5.5.11).

use super::{Bbr, Phase, StartupLoss, State, UNLIMITED};
use crate::Time;

/// Saved at the first loss of an episode.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The state that loss made us leave.
    pub(super) state: Option<State>,
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

    /// There is nothing to take back: the network itself said that it is congested.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Bbr {
    /// SaveStateUponLoss.
    pub(super) fn save_state_upon_loss(&mut self) {
        self.save_window();
        let saved = Saved {
            bw_shortterm: self.short_term.bw,
            inflight_shortterm: self.short_term.inflight,
            inflight_longterm: self.long_term.inflight,
        };
        self.undo = Undo { state: None, saved: Some(saved) };
    }

    /// HandleSpuriousLossDetection.
    pub(super) fn undo_spurious_losses(&mut self, now: Time) {
        let Undo { state, saved: Some(saved) } = std::mem::take(&mut self.undo) else { return };
        self.restore_window();
        self.in_recovery = false;
        self.short_term.forgive();
        self.startup_loss = StartupLoss::default();
        self.full_pipe.reset(0);
        self.short_term.bw = self.short_term.bw.max(saved.bw_shortterm);
        self.short_term.inflight = self.short_term.inflight.max(saved.inflight_shortterm);
        self.long_term.inflight = self.long_term.inflight.max(saved.inflight_longterm);
        match state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.reached = false;
                if self.state != State::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(State::ProbeBw(Phase::Up)) if !self.is_up() && self.state != State::ProbeRtt => {
                self.start_refill(now, self.short_term.delivered);
            }
            _ => {}
        }
        self.bound_bw();
    }

    /// SaveCwnd.
    pub(super) fn save_window(&mut self) {
        self.prior_window = if self.in_recovery || self.state == State::ProbeRtt {
            self.prior_window.max(self.window)
        } else {
            self.window
        };
    }

    /// RestoreCwnd; the model bounds it again at the end of the ACK.
    pub(super) fn restore_window(&mut self) {
        debug_assert!(self.prior_window != UNLIMITED);
        self.window = self.window.max(self.prior_window);
    }
}
