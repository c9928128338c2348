//! How much loss ends Startup.
//!
//! - The draft: more than 2 % of a round, in at least 6 runs of lost packets (§5.3.1.3).
//! - Ours: that many runs too, and a part of the round that depends on what else it shows, beside the path's own loss:
//!
//! | the round | loss that ends Startup | because |
//! |---|---|---|
//! | is limited by the application | 8 % | there is no plateau to see |
//! | found no quarter more, with a queue | 2 % (draft) | the pipe is full |
//! | found no quarter more, without a queue | 15 % | chance loses that much, a full pipe would show a queue |
//! | found a quarter more | 25 % | an overflowing queue loses that much, chance rarely |
//!
//!   What is lost in the two rounds after a jump that failed was sent in it and does not count.
//! - Why: on a path that loses two percent anyway the draft's Startup ends at a fraction of the bandwidth.
//! - Grid: every cell with 2 % and 10 % of random loss; not measured alone.

use crate::congestion::bbr::{Bbr, LOSS_THRESH};
use crate::measure::RateSample;

/// See the table: what an overflowing queue loses.
const LOSS_CERTAIN: f64 = 0.25;
/// See the table: no growth, no queue.
const LOSS_WITHOUT_QUEUE: f64 = 0.15;
/// See the table: limited by the application.
const LOSS_APP_LIMITED: f64 = 0.08;

impl Bbr {
    /// The part of a round that may be lost without ending Startup.
    pub(in super::super) fn startup_loss_thresh(&self, rate: &RateSample) -> f64 {
        let by_round = if rate.app_limited {
            LOSS_APP_LIMITED
        } else if self.full_bw.count > 0 && self.is_queueing() {
            LOSS_THRESH
        } else if self.full_bw.count > 0 {
            LOSS_WITHOUT_QUEUE
        } else {
            LOSS_CERTAIN
        };
        by_round + self.random_loss.rate()
    }
}
