//! Hurry (deviation): growing faster than the draft while the path shows no sign of a queue.
//!
//! Startup doubles the rate each round. Where round trips are long that is most of a transfer, so there it grows threefold
//! until the first sign of a standing queue, of heavy loss or of a plateau. ProbeBW_UP sends a quarter faster; where that
//! found nearly as much and still no queue, the path has changed, and doubling finds in a few rounds what otherwise takes
//! seventeen.

use std::time::Duration;

use super::{Bbr, Phase, State};
use crate::congestion::controller::Acked;

/// A round trip from which on Startup is in a hurry: doubling over less is over soon.
const RTT_LONG: Duration = Duration::from_millis(40);
/// The part of a round that may be lost without ending the hurry, beside what the path always loses.
const LOSS_MAX: f64 = 0.15;
/// Lost packets that say nothing, as few are in flight at first.
const LOSS_NOISE_PACKETS: u64 = 3;
/// Background loss varies: this many times of it are expected.
const BACKGROUND_MARGIN: f64 = 2.0;

/// Whether Startup is in a hurry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hurry(bool);

impl Default for Hurry {
    fn default() -> Self {
        Self(true)
    }
}

impl Bbr {
    /// Ends the hurry of Startup, and jumping, with the first sign that the pipe might be full.
    pub(super) fn check_hurry(&mut self, acked: &Acked) {
        let rate = &acked.rate;
        let expected = LOSS_MAX + BACKGROUND_MARGIN * self.background.rate();
        let noise = LOSS_NOISE_PACKETS * u64::from(self.mtu);
        let lossy =
            rate.lost.saturating_sub(noise) as f64 > expected * rate.in_flight_at_send as f64;
        let long = self.min_rtt.get().is_none_or(|rtt| rtt >= RTT_LONG);
        let calm = !lossy && !self.is_queueing() && self.full_pipe.count == 0;
        self.hurry.0 &= long && calm;
        self.check_jump(calm, lossy);
    }

    /// Startup grows threefold.
    pub(super) fn is_tripling(&self) -> bool {
        self.state == State::Startup && self.hurry.0
    }

    /// A probe grows as Startup does.
    pub(super) fn is_doubling(&self) -> bool {
        self.state == State::ProbeBw(Phase::Up)
            && self.cycle.is_fruitful(self.max_bw.get())
            && self.full_pipe.count == 0
            && !self.is_queueing()
    }
}
