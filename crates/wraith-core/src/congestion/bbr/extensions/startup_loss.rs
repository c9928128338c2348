//! The loss that ends Startup.
//!
//! - The draft: more than 2 % of a round, in at least 6 runs of lost packets (§5.3.1.3).
//! - Ours: as many runs, and in addition to random loss a fraction of the round that depends on the
//!   other signals of the round:
//!
//! | the round | loss that ends Startup | reason |
//! |---|---|---|
//! | is application-limited | 8 % | it cannot show a plateau |
//! | found no quarter more, with a queue | 2 % (draft) | the pipe is full |
//! | found no quarter more, without a queue | 15 % | random loss reaches that much; a full pipe would show a queue |
//! | found a quarter more | 25 % | an overflowing queue loses that much, random loss rarely does |
//!
//!   Losses in the two rounds after a failed jump belong to the jump and are ignored here.
//! - Why: on a path with two percent of random loss, the draft's Startup ends at a fraction of the
//!   bandwidth.
//! - Grid: every cell with 2 % and 10 % of random loss; not measured alone.

use crate::congestion::bbr::{Bbr, LOSS_THRESH};
use crate::measure::RateSample;

/// See the table: the round found a quarter more.
const LOSS_CERTAIN: f64 = 0.25;
/// See the table: no growth, no queue.
const LOSS_WITHOUT_QUEUE: f64 = 0.15;
/// See the table: application-limited.
const LOSS_APP_LIMITED: f64 = 0.08;

impl Bbr {
    /// Returns the fraction of a round that may be lost without ending Startup.
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
