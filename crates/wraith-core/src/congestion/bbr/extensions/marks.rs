//! What a mark of the network (ECN CE) does.
//!
//! - The draft: names no response, but wants marks treated as congestion.
//! - Ours: a mark is a round with loss beyond the threshold, once in a round trip, and is never taken back. It ends Startup,
//!   fails a probe, and pulls the short-term model towards what was just delivered.
//! - Why: RFC 9002 §7.1 and RFC 3168 §5 want the response to a loss. A queue that marks is one that has formed, so Startup
//!   has filled the pipe.
//! - Grid: none, as its queues do not mark. `wraith-sim` has scenarios with a queue that does.

use crate::congestion::bbr::{Bbr, State};
use crate::congestion::controller::Marked;

impl Bbr {
    /// See the module.
    pub(in super::super) fn respond_to_marks(&mut self, marked: &Marked) {
        if !marked.new_episode {
            return;
        }
        self.undo.forget();
        self.short_term.congested = true;
        self.handle_inflight_too_high(marked.now, self.target_inflight(), false);
        if self.state == State::Startup && !self.full_bw.reached {
            self.end_startup_by_congestion();
        }
    }
}
