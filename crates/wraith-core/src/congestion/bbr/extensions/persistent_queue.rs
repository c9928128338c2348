//! Is there a persistent queue?
//!
//! - The draft: round trips only update `min_rtt`.
//! - Ours: there is a queue if the shortest of the last three round trips is longer than the path's. It never lowers the model.
//!   It says when growing faster than the draft must stop, and when a probe that only raises the bound has its answer: a queue
//!   of half a round trip ends it, where the draft goes on until something is lost.
//! - Why: one long round trip may just have waited for its ACK; a single late ACK used to end the fast Startup in its first
//!   round.
//! - Grid: see [`super::fast_startup`]; not measured alone.

use std::time::Duration;

use super::host_delay::HOST_RTT;
use crate::congestion::bbr::Bbr;

/// Samples that must agree.
const SAMPLES: usize = 3;
/// A queue makes round trips longer by this part of the shortest. The shortest counts as [`HOST_RTT`] at least, because our
/// own batches take as long as a short round trip.
const QUEUE_DIVISOR: u32 = 8;
/// A queue of this part of the round trip proves that the pipe is full.
const OVERFULL_DIVISOR: u32 = 2;

/// The newest round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct PersistentQueue {
    newest: [Duration; SAMPLES],
}

impl PersistentQueue {
    /// Takes the sample of an ACK, if it has one.
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
    /// There is a queue.
    pub(in super::super) fn is_queueing(&self) -> bool {
        self.is_longer_by(QUEUE_DIVISOR)
    }

    /// There is a queue of half a round trip: what is sent beyond what is in flight already would only wait.
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
