//! A probe that found all it sent grows as Startup does.
//!
//! - The draft: ProbeBW_UP sends a quarter faster as long as it lasts.
//! - Ours: once it found a fifth more, and while there is neither a queue nor a plateau, it paces as Startup does.
//! - Why: the path has changed. Doubling finds in a few rounds what a quarter a round takes seventeen for.
//! - Grid: the cells with the rate × 10 up; not measured alone.

use crate::congestion::bbr::{Bbr, Phase, State};

impl Bbr {
    /// A probe grows as Startup does.
    pub(in super::super) fn is_doubling(&self) -> bool {
        self.state == State::ProbeBw(Phase::Up)
            && self.early_probes.is_fruitful(self.max_bw.get())
            && self.full_bw.count == 0
            && !self.is_queueing()
    }
}
