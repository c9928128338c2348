//! Response to ECN CE marks.
//!
//! - The draft: specifies no response, but requires that marks count as congestion.
//! - Ours: a mark is treated as a round with loss beyond the threshold, once per round trip, and is
//!   never undone. A mark ends Startup, fails a probe, and lowers the short-term model towards the
//!   last delivery.
//! - Why: RFC 9002 §7.1 and RFC 3168 §5 require the response to a loss. A queue that marks has
//!   formed already, so Startup has filled the pipe.
//! - Grid: none, as its queues do not mark. `wraith-sim` has scenarios with a marking queue.

use crate::congestion::bbr::{Bbr, BbrState};
use crate::congestion::controller::Marked;

impl Bbr {
    /// Responds to the first mark of an episode.
    pub(in super::super) fn respond_to_marks(&mut self, marked: &Marked) {
        if !marked.new_episode {
            return;
        }
        self.undo.forget();
        self.short_term.congested = true;
        self.handle_inflight_too_high(marked.now, self.target_inflight(), false);
        if self.state == BbrState::Startup && !self.full_bw.reached {
            self.end_startup_by_congestion();
        }
    }
}
