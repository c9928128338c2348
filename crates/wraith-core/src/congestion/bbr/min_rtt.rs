//! The round trip of the empty path (draft §5.3.4.3, §5.5.7), and when it must be measured again.
//!
//! `min_rtt` is the smallest sample of ten seconds. If for five nothing as small was seen, the queue must be drained
//! on purpose (ProbeRTT).
//!
//! Deviation: a sample that *equals* the minimum, to [`SAME_DIVISOR`] or within [`HOST_RTT`], counts as a measurement of
//! it; the draft wants a smaller one. A flow alone on its path sees the empty path all the time, and ProbeRTT costs
//! it two seconds of each ten where the round trip is 600 ms; a flow that stands in a queue does not see it.

use std::time::Duration;

use super::HOST_RTT;
use crate::Time;

/// Draft: MinRTTFilterLen.
const FILTER: Duration = Duration::from_secs(10);
/// Draft: ProbeRTTInterval.
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// A sample within this part of the minimum is the same.
const SAME_DIVISOR: u32 = 64;

/// The estimator. Durations are `Duration::MAX` before the first sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    rtt: Duration,
    at: Time,
    recent: Duration,
    recent_at: Time,
}

impl MinRtt {
    pub(super) fn new(now: Time) -> Self {
        Self { rtt: Duration::MAX, at: now, recent: Duration::MAX, recent_at: now }
    }

    /// The estimate, if there was a sample.
    pub(super) fn get(&self) -> Option<Duration> {
        (self.rtt != Duration::MAX).then_some(self.rtt)
    }

    /// Takes the sample of an ACK, if it has one. True if the path has not been seen empty for too long.
    pub(super) fn update(&mut self, now: Time, sample: Option<Duration>) -> bool {
        let due = now > self.recent_at + PROBE_INTERVAL;
        if let Some(sample) = sample {
            if sample < self.recent || due {
                self.recent = sample;
                self.recent_at = now;
            } else if sample <= (self.recent + self.recent / SAME_DIVISOR).max(HOST_RTT) {
                self.recent_at = now;
            }
        }
        if self.recent < self.rtt || now > self.at + FILTER {
            self.rtt = self.recent;
            self.at = self.recent_at;
        } else if self.recent <= self.rtt + self.rtt / SAME_DIVISOR {
            self.at = self.recent_at;
        }
        due
    }

    /// The queue was just drained: the next time is five seconds from now.
    pub(super) fn on_probed(&mut self, now: Time) {
        self.recent_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + ms(millis)
    }

    #[test]
    fn a_measurement_is_due_after_five_seconds_without_one_as_low() {
        let mut min = MinRtt::new(at(0));
        min.update(at(0), Some(ms(50)));
        for t in (100..=5000).step_by(100) {
            assert!(!min.update(at(t), Some(ms(60))));
        }
        assert!(min.update(at(5100), Some(ms(60))));
        assert_eq!(min.get(), Some(ms(50)), "kept until its ten seconds are over");
    }

    #[test]
    fn a_sample_as_low_as_the_minimum_is_a_measurement() {
        let mut min = MinRtt::new(at(0));
        for t in (0..60_000).step_by(1000) {
            assert!(!min.update(at(t), Some(ms(50))));
        }
    }

    #[test]
    fn a_longer_path_is_believed_after_ten_seconds() {
        let mut min = MinRtt::new(at(0));
        min.update(at(0), Some(ms(50)));
        for t in (100..=12_000).step_by(100) {
            min.update(at(t), Some(ms(80)));
        }
        assert_eq!(min.get(), Some(ms(80)));
    }
}
