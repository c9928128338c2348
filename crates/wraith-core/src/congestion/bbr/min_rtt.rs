//! The minimum round trip of the empty path (draft §5.3.4.3, §5.5.7), and the schedule of its
//! measurements.
//!
//! `min_rtt` is the smallest sample of ten seconds. After five seconds without a sample as small,
//! ProbeRTT must drain the queue. [`empty_path`](super::extensions::empty_path) defines "as small".

use std::time::Duration;

use super::extensions::empty_path;
use crate::Time;

/// Draft: MinRTTFilterLen.
const FILTER: Duration = Duration::from_secs(10);
/// Draft: ProbeRTTInterval.
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// The estimator. Durations are `Duration::MAX` before the first sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    min_rtt: Duration,
    min_rtt_stamp: Time,
    probe_rtt_min_delay: Duration,
    probe_rtt_min_stamp: Time,
}

impl MinRtt {
    pub(super) fn new(now: Time) -> Self {
        Self {
            min_rtt: Duration::MAX,
            min_rtt_stamp: now,
            probe_rtt_min_delay: Duration::MAX,
            probe_rtt_min_stamp: now,
        }
    }

    /// Returns the estimate, if there was a sample.
    pub(super) fn get(&self) -> Option<Duration> {
        (self.min_rtt != Duration::MAX).then_some(self.min_rtt)
    }

    /// Takes the sample of an ACK, if any. Returns true if the path was not seen empty for too
    /// long.
    pub(super) fn update(&mut self, now: Time, sample: Option<Duration>) -> bool {
        let due = now > self.probe_rtt_min_stamp + PROBE_INTERVAL;
        if let Some(sample) = sample {
            if sample < self.probe_rtt_min_delay || due {
                self.probe_rtt_min_delay = sample;
                self.probe_rtt_min_stamp = now;
            } else if empty_path::is_as_short(sample, self.probe_rtt_min_delay) {
                self.probe_rtt_min_stamp = now;
            }
        }
        if self.probe_rtt_min_delay == Duration::MAX {
            return due;
        }
        if self.probe_rtt_min_delay < self.min_rtt || now > self.min_rtt_stamp + FILTER {
            self.min_rtt = self.probe_rtt_min_delay;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        } else if empty_path::is_still(self.probe_rtt_min_delay, self.min_rtt) {
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
        due
    }

    /// Records that the queue was just drained: the next measurement is due in five seconds.
    pub(super) fn on_probed(&mut self, now: Time) {
        self.probe_rtt_min_stamp = now;
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
    fn acks_without_a_sample_before_the_first_sample_say_nothing() {
        let mut min = MinRtt::new(at(0));
        for t in [0, 4_000, 20_000] {
            min.update(at(t), None);
            assert_eq!(min.get(), None);
        }
        min.update(at(20_001), Some(ms(50)));
        assert_eq!(min.get(), Some(ms(50)));
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
