//! Headroom in the queue instead of in the pipe.
//!
//! - The draft: 15 % of the long-term bound stay free during the cruise (InflightWithHeadroom).
//! - Ours: at least the bandwidth-delay product, plus the bytes that ACKs and sends hold back,
//!   within the bound.
//! - Why: bytes that fit into the pipe delay no other flow, so free capacity there is wasted.
//! - Grid: shallow queues up to 100 Mbit/s; see [`super::early_probes`].

use crate::congestion::bbr::Bbr;
use crate::congestion::window::send_quantum;

impl Bbr {
    /// Raises `bound`, the draft's bound with headroom, to fill the pipe.
    pub(in super::super) fn keep_pipe_full(&self, bound: u64) -> u64 {
        let pipe =
            self.bdp_multiple(1.0) + self.ack_batch + send_quantum(self.pacing_rate, self.mtu);
        bound.max(pipe.min(self.long_term.inflight_longterm))
    }
}
