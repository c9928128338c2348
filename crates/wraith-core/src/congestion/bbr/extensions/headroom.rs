//! Headroom is left in the queue, not in the pipe.
//!
//! - The draft: 15 % of the long-term bound stay free while cruising (InflightWithHeadroom).
//! - Ours: not less than the bandwidth-delay product with what ACKs and sends hold back, as far as the bound allows.
//! - Why: what fits into the pipe delays nobody, so leaving it free is given away.
//! - Grid: shallow queues up to 100 Mbit/s; see [`super::early_probes`].

use crate::congestion::bbr::Bbr;
use crate::congestion::window::send_quantum;

impl Bbr {
    /// The draft's bound with headroom, `bound`, raised to the pipe.
    pub(in super::super) fn keep_pipe_full(&self, bound: u64) -> u64 {
        let pipe =
            self.bdp_multiple(1.0) + self.ack_batch + send_quantum(self.pacing_rate, self.mtu);
        bound.max(pipe.min(self.long_term.inflight_longterm))
    }
}
