//! Duration of total loss, for persistent congestion (RFC 9002 §7.6).

use std::time::Duration;

use crate::Time;

/// A run of lost packets without an arrival in between.
#[derive(Default)]
pub(super) struct LostRun {
    last_pn: Option<u64>,
    started_at: Option<Time>,
    /// Duration of the longest run, from the sending of its first packet to that of its last.
    pub(super) longest: Duration,
}

impl LostRun {
    /// Adds the next lost packet. `sent_at` is set if the packet is relevant for persistent
    /// congestion.
    pub(super) fn extend(&mut self, pn: u64, sent_at: Option<Time>, first_sample_at: Option<Time>) {
        if self.last_pn.is_none_or(|last| last + 1 != pn) {
            self.started_at = None;
        }
        self.last_pn = Some(pn);
        let (Some(sent_at), Some(sampled_at)) = (sent_at, first_sample_at) else { return };
        // RFC 9002 §7.6.2: both ends of the run were sent after the first sample.
        if sent_at > sampled_at {
            let start = *self.started_at.get_or_insert(sent_at);
            self.longest = self.longest.max(sent_at.since(start));
        }
    }
}
