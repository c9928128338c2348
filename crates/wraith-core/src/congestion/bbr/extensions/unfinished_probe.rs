//! A probe that ended too early goes on.
//!
//! - The draft: a probe ends by the samples that arrive while it lasts.
//! - Ours: where only its last answers, which come after its end, show that there is more, the next probe begins as soon as the
//!   queue of this one is gone.
//! - Why: the path became faster while the probe ended, and the next one may be seconds away.
//! - Grid: 100 Mbit/s × 50 ms with the rate × 10 up, 62.7 → 70.9 Mbit/s.

use crate::congestion::bbr::Bbr;

/// Whether the last probe is to go on once there is no queue.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct UnfinishedProbe(bool);

impl UnfinishedProbe {
    /// The probe in progress is the one that goes on.
    pub(in super::super) fn take(&mut self) -> bool {
        std::mem::take(&mut self.0)
    }
}

impl Bbr {
    /// The last answers to a probe came.
    pub(in super::super) fn judge_probe(&mut self) {
        let probes = &mut self.early_probes;
        let late = probes.fruitless > 0 && probes.is_fruitful(self.max_bw.get());
        self.unfinished_probe.0 = late && !self.long_term.prev_too_high;
        if self.unfinished_probe.0 {
            probes.fruitless = 0;
        } else {
            probes.before = None;
        }
    }

    /// It is time for the unfinished probe to go on.
    pub(in super::super) fn is_time_to_go_on(&self) -> bool {
        self.unfinished_probe.0 && !self.is_queueing()
    }
}
