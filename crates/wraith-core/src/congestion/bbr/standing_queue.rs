//! Is there a standing queue (deviation: the draft looks at round trips only for `min_rtt`)?
//!
//! Yes, if the shortest of the last few round trips is longer than the path's. One alone may just have waited for its ACK. It
//! never lowers the model; it says when growing faster than the draft must stop, and when a probe has its answer.

use std::time::Duration;

use super::{Bbr, HOST_RTT};

/// Samples that must agree.
const SAMPLES: usize = 3;
/// A queue is what makes round trips longer by this part of the shortest (of [`HOST_RTT`] at least: our own batches take
/// as long as a short round trip),
const QUEUE_DIVISOR: u32 = 8;
/// and one of half a round trip proves that the pipe is full.
const OVERFULL_DIVISOR: u32 = 2;

/// The newest round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StandingQueue {
    newest: [Duration; SAMPLES],
}

impl StandingQueue {
    /// Takes the sample of an ACK, if it has one.
    pub(super) fn update(&mut self, sample: Option<Duration>) {
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
    pub(super) fn is_queueing(&self) -> bool {
        self.is_longer_by(QUEUE_DIVISOR)
    }

    /// There is a queue of half a round trip: what is sent beyond what is in flight already would only wait.
    pub(super) fn is_overfull(&self) -> bool {
        self.is_longer_by(OVERFULL_DIVISOR)
    }

    fn is_longer_by(&self, divisor: u32) -> bool {
        self.min_rtt
            .get()
            .is_some_and(|shortest| self.queue.exceeds(shortest + shortest.max(HOST_RTT) / divisor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_late_ack_is_no_queue_and_three_are() {
        let mut queue = StandingQueue::default();
        let limit = Duration::from_millis(56);
        for (rtt, queueing) in [(50, false), (90, false), (90, false), (90, true), (51, false)] {
            queue.update(Some(Duration::from_millis(rtt)));
            queue.update(None);
            assert_eq!(queue.exceeds(limit), queueing, "{rtt} ms");
        }
    }
}
