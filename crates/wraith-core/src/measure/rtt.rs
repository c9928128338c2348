//! Round-trip time (RFC 9002 §5).
//!
//! Values are in nanoseconds but never below a microsecond, so that rates computed from them stay
//! finite on loopback. Invariant: only a sample changes them, never a timeout.

use std::time::Duration;

/// Minimum round trip: the resolution of the ACK delay on the wire.
const RTT_MIN: Duration = Duration::from_micros(1);

/// Round-trip estimates of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtt {
    latest: Duration,
    smoothed: Duration,
    var: Duration,
    min: Duration,
    sampled: bool,
}

impl Rtt {
    /// Returns the estimates before any sample (RFC 9002 §6.2.2).
    pub(crate) fn assumed(initial: Duration) -> Self {
        let initial = initial.max(RTT_MIN);
        Self { latest: initial, smoothed: initial, var: initial / 2, min: initial, sampled: false }
    }

    /// Takes a sample. `ack_delay` is the peer's reported delay, already capped.
    pub(crate) fn update(&mut self, sample: Duration, ack_delay: Duration) {
        let sample = sample.max(RTT_MIN);
        self.latest = sample;
        if !self.sampled {
            *self = Self {
                latest: sample,
                smoothed: sample,
                var: sample / 2,
                min: sample,
                sampled: true,
            };
            return;
        }
        // The minimum ignores the ACK delay, so a peer that overstates it cannot lower the minimum
        // (§5.2).
        self.min = self.min.min(sample);
        let adjusted = if sample >= self.min + ack_delay { sample - ack_delay } else { sample };
        self.var = (self.var * 3 + self.smoothed.abs_diff(adjusted)) / 4;
        self.smoothed = ((self.smoothed * 7 + adjusted) / 8).max(RTT_MIN);
    }

    /// Returns the latest sample, including the ACK delay.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// Returns the smoothed round trip, without the ACK delay.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// Returns the mean deviation.
    pub fn var(&self) -> Duration {
        self.var
    }

    /// Returns the smallest sample.
    pub fn min(&self) -> Duration {
        self.min
    }

    /// Returns false until the first sample: all values are assumptions until then.
    pub fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// Resets the minimum after persistent congestion, as the path may have changed (§5.2).
    pub(crate) fn forget_min(&mut self) {
        self.min = self.latest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn the_first_sample_replaces_the_assumption() {
        let mut rtt = Rtt::assumed(us(333_000));
        rtt.update(us(30), us(25));
        assert_eq!((rtt.smoothed, rtt.var, rtt.min), (us(30), us(15), us(30)));
    }

    #[test]
    fn a_stated_delay_is_subtracted_but_never_below_the_minimum() {
        let mut rtt = Rtt::assumed(us(1));
        rtt.update(us(1000), us(0));
        rtt.update(us(2000), us(1000));
        assert_eq!(rtt.smoothed, us(1000));
        rtt.update(us(1500), us(1000));
        assert!(rtt.smoothed > us(1000));
        assert_eq!(rtt.min, us(1000));
    }

    #[test]
    fn no_sample_makes_the_round_trip_zero() {
        let mut rtt = Rtt::assumed(Duration::ZERO);
        for _ in 0..100 {
            rtt.update(Duration::ZERO, Duration::MAX / 4);
        }
        assert!(rtt.smoothed >= us(1) && rtt.min >= us(1) && rtt.latest >= us(1));
    }
}
