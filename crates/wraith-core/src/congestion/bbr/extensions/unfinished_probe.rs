//! Continuation of a probe that ended too early.
//!
//! - The draft: a probe ends by the samples that arrive during it.
//! - Ours: the last ACKs of a probe arrive after its end. If only they show more bandwidth, the
//!   next probe begins as soon as the queue is gone.
//! - Why: the path became faster while the probe ended, and the next one may be seconds away.
//! - Grid: 100 Mbit/s × 50 ms with the rate × 10 up, 62.7 → 70.9 Mbit/s.

use crate::congestion::bbr::Bbr;

/// True if the last probe must continue once there is no queue.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct UnfinishedProbe(bool);

impl UnfinishedProbe {
    /// Returns true, once, if the probe that begins is a continuation.
    pub(in super::super) fn take(&mut self) -> bool {
        std::mem::take(&mut self.0)
    }
}

impl Bbr {
    /// Evaluates a probe after its last ACKs.
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

    /// Returns true when the unfinished probe must continue.
    pub(in super::super) fn is_time_to_go_on(&self) -> bool {
        self.unfinished_probe.0 && !self.is_queueing()
    }
}
