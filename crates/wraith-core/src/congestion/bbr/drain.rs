//! Drain (draft §5.3.2): sends at half the rate until the queue of Startup is gone, for at most
//! three rounds.

use super::{Bbr, BbrState};
use crate::congestion::controller::Acked;

/// Maximum number of rounds. If more than the estimate is still in flight, the estimate was wrong.
const ROUNDS_MAX: u64 = 3;

impl Bbr {
    pub(super) fn enter_drain(&mut self) {
        self.state = BbrState::Drain;
        self.probe_losses.end_probe(self.short_term.delivered);
        self.drain_start_round = self.round.round_count;
    }

    /// CheckDrainDone.
    pub(super) fn check_drain_done(&mut self, acked: &Acked) {
        if self.state == BbrState::Drain
            && (acked.in_flight <= self.inflight(self.bw, 1.0)
                || self.round.round_count > self.drain_start_round + ROUNDS_MAX)
        {
            self.start_probe_bw_down(acked.now, acked.delivered);
        }
    }
}
