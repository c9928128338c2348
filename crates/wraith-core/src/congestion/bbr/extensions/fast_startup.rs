//! Tripling in Startup on long round trips.
//!
//! - The draft: Startup doubles the rate each round (§5.3.1).
//! - Ours: from 40 ms on, it triples the rate until the first sign of a queue, of heavy loss or of
//!   a plateau. Then it returns to the gains of doubling and, after a queue or a failed jump, to
//!   the window of doubling.
//! - Why: on long round trips, Startup is most of a transfer.
//! - Grid: with [`super::first_window`] 20 Mbit/s × 600 ms 70 → 77 % of the capacity, 100 Mbit/s ×
//!   600 ms with 2 % of loss 56 → 62 Mbit/s.

use std::time::Duration;

use crate::congestion::bbr::{Bbr, BbrState};
use crate::congestion::controller::Acked;

/// Pacing gain that triples the rate each round.
pub(in super::super) const TRIPLING_PACING_GAIN: f64 = 4.16;
/// Window gain that triples the rate each round.
pub(in super::super) const TRIPLING_CWND_GAIN: f64 = 3.0;
/// Minimum round trip for tripling. On shorter ones, doubling is over soon.
const RTT_MIN: Duration = Duration::from_millis(40);
/// Fraction of a round that may be lost without ending tripling, in addition to the path's random
/// loss.
const LOSS_MAX: f64 = 0.15;
/// Lost packets that are ignored, as few are in flight at first.
const LOSS_NOISE_PACKETS: u64 = 3;
/// Multiple of the random loss that is tolerated, as random loss varies.
const RANDOM_LOSS_MARGIN: f64 = 2.0;

/// True while Startup may triple.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct FastStartup(bool);

impl Default for FastStartup {
    fn default() -> Self {
        Self(true)
    }
}

impl Bbr {
    /// Ends tripling and jumping at the first sign that the pipe may be full.
    pub(in super::super) fn check_fast_startup(&mut self, acked: &Acked) {
        let rate = &acked.rate;
        let expected = LOSS_MAX + RANDOM_LOSS_MARGIN * self.random_loss.rate();
        let noise = LOSS_NOISE_PACKETS * u64::from(self.mtu);
        let lossy =
            rate.lost.saturating_sub(noise) as f64 > expected * rate.in_flight_at_send as f64;
        let long = self.min_rtt.get().is_none_or(|rtt| rtt >= RTT_MIN);
        let calm = !lossy && !self.is_queueing() && self.full_bw.count == 0;
        self.fast_startup.0 &= long && calm;
        self.check_jump(calm, lossy);
    }

    /// Returns true while Startup triples.
    pub(in super::super) fn is_tripling(&self) -> bool {
        self.state == BbrState::Startup && self.fast_startup.0
    }
}
