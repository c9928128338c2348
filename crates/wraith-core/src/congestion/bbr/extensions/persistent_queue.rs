//! Detection of a persistent queue.
//!
//! - The draft: round trips only update `min_rtt`.
//! - Ours: there is a queue if the minimum of the last three round trips exceeds the path's
//!   minimum. A detected queue never lowers the model, but ends growth that is faster than the
//!   draft's. A queue of half a round trip also ends a probe that only raises the long-term bound.
//!   The draft continues such a probe until a loss.
//! - Why: a single long round trip may only mean a late ACK. A detection from one round trip would
//!   let a single late ACK end the fast Startup in its first round.
//! - Grid: see [`super::fast_startup`]; not measured alone.

use std::time::Duration;

use super::host_delay::HOST_RTT;
use crate::congestion::bbr::Bbr;

/// Number of samples that must agree.
const SAMPLES: usize = 3;
/// Divisor: a queue lengthens round trips by this fraction of the minimum. The minimum is treated
/// as at least [`HOST_RTT`], because batches of this host take as long as a short round trip.
const QUEUE_DIVISOR: u32 = 8;
/// Divisor: a queue of this fraction of the round trip proves that the pipe is full.
const OVERFULL_DIVISOR: u32 = 2;

/// The newest round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct PersistentQueue {
    newest: [Duration; SAMPLES],
}

impl PersistentQueue {
    /// Takes the sample of an ACK, if any.
    pub(in super::super) fn update(&mut self, sample: Option<Duration>) {
        if let Some(sample) = sample {
            self.newest.rotate_right(1);
            self.newest[0] = sample;
        }
    }

    fn exceeds(&self, limit: Duration) -> bool {
        self.newest.iter().all(|rtt| *rtt > limit)
    }
}

impl Bbr {
    /// Returns true if there is a queue.
    pub(in super::super) fn is_queueing(&self) -> bool {
        self.is_longer_by(QUEUE_DIVISOR)
    }

    /// Returns true if the queue is half a round trip long, so that further bytes in flight would
    /// only wait.
    pub(in super::super) fn is_overfull(&self) -> bool {
        self.is_longer_by(OVERFULL_DIVISOR)
    }

    fn is_longer_by(&self, divisor: u32) -> bool {
        self.min_rtt.get().is_some_and(|shortest| {
            self.persistent_queue.exceeds(shortest + shortest.max(HOST_RTT) / divisor)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_late_ack_is_no_queue_and_three_are() {
        let mut queue = PersistentQueue::default();
        let limit = Duration::from_millis(56);
        for (rtt, queueing) in [(50, false), (90, false), (90, false), (90, true), (51, false)] {
            queue.update(Some(Duration::from_millis(rtt)));
            queue.update(None);
            assert_eq!(queue.exceeds(limit), queueing, "{rtt} ms");
        }
    }
}
