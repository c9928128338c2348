//! Faster growth of a probe that found everything it sent.
//!
//! - The draft: ProbeBW_UP sends a quarter faster for its whole duration.
//! - Ours: once the probe found a fifth more, it paces as Startup does, while there is neither a
//!   queue nor a plateau.
//! - Why: the path has changed. Doubling finds in a few rounds the bandwidth for which a quarter
//!   per round needs seventeen.
//! - Grid: the cells with the rate × 10 up; not measured alone.

use crate::congestion::bbr::{Bbr, BbrState, Phase};

impl Bbr {
    /// Returns true while a probe grows as Startup does.
    pub(in super::super) fn is_doubling(&self) -> bool {
        self.state == BbrState::ProbeBw(Phase::Up)
            && self.early_probes.is_fruitful(self.max_bw.get())
            && self.full_bw.count == 0
            && !self.is_queueing()
    }
}
