//! Earlier first probes.
//!
//! - The draft: 2 to 3 s between two probes (§5.3.3.8).
//! - Ours: an eighth of the draft's wait before the first probe. Each fruitless probe increases the
//!   wait by half, up to the draft's value. A probe that found a fifth more bandwidth resets the
//!   wait.
//! - Why: the result of Startup is a guess if loss ended it, and a path that just became faster may
//!   become faster still.
//! - Grid: of the 340 cells up to 100 Mbit/s, the number below 0.95 × quinn's rate fell from 31 to
//!   8, together with [`super::fast_startup`] and [`super::headroom`]. Growth by half instead of
//!   twofold: rate × 10 at 1 Gbit/s × 20 ms 90.1 → 94.1 %, at 100 Mbit/s × 50 ms 91.1 → 92.4 %.

use std::time::Duration;

use crate::congestion::bbr::Bbr;

/// Minimum growth of `max_bw` for a fruitful probe: nearly all of a probe's excess, which is a
/// quarter less the pacing margin.
const FRUITFUL: f64 = 1.2;
/// Wait before the first probe, as a fraction of the draft's.
const FIRST_PART: f64 = 0.125;
/// Growth factor of the wait for each fruitless probe.
const GROWTH: f64 = 1.5;

/// Results of the probes.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct EarlyProbes {
    /// Fruitless probes since the last fruitful one.
    pub(super) fruitless: u32,
    /// `max_bw` before the current probe, or before the last probe while its last ACKs are on their
    /// way.
    pub(super) before: Option<u64>,
}

impl EarlyProbes {
    /// Begins a probe, with `max_bw` at `before`.
    pub(in super::super) fn begin(&mut self, before: u64) {
        self.before = Some(before);
    }

    /// Returns true if the probe raised `max_bw` enough, to `found`.
    pub(super) fn is_fruitful(&self, found: u64) -> bool {
        self.before.is_some_and(|before| found as f64 >= FRUITFUL * before as f64)
    }
}

impl Bbr {
    /// Records whether the probe that just ended was fruitful or fruitless.
    pub(in super::super) fn count_probe(&mut self) {
        let worth_it = self.early_probes.is_fruitful(self.max_bw.get());
        self.early_probes.fruitless = if worth_it { 0 } else { self.early_probes.fruitless + 1 };
    }

    /// Returns the wait before the next probe, where the draft has `wait`.
    pub(in super::super) fn shorten_probe_wait(&self, wait: Duration) -> Duration {
        let growth = GROWTH.powf(f64::from(self.early_probes.fruitless));
        wait.mul_f64((FIRST_PART * growth).min(1.0))
    }
}
