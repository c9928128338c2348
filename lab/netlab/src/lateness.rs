//! Lateness of delivered packets against the model: the error of this link against the simulator's.

use std::time::Duration;

const BUCKET: Duration = Duration::from_micros(10);
/// Ten milliseconds in all. Later packets are in the last bucket, and the maximum includes them.
const BUCKETS: usize = 1000;

/// A histogram of bounded size.
#[derive(Debug)]
pub struct Lateness {
    counts: Vec<u64>,
    total: u64,
    max: Duration,
}

impl Lateness {
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, max: Duration::ZERO }
    }

    pub fn record(&mut self, late: Duration) {
        let bucket = (late.as_nanos() / BUCKET.as_nanos()).min(BUCKETS as u128 - 1);
        self.counts[bucket as usize] += 1;
        self.total += 1;
        self.max = self.max.max(late);
    }

    pub fn max(&self) -> Duration {
        self.max
    }

    /// Returns the lateness that this share of all packets does not exceed; rounded up to 10 µs,
    /// and never above the maximum.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = (self.total as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in (1..).zip(&self.counts[..BUCKETS - 1]) {
            seen += count;
            if seen >= wanted {
                return (BUCKET * bucket).min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_upper_bounds_of_their_bucket() {
        let mut lateness = Lateness::new();
        for late in 1..=100 {
            lateness.record(Duration::from_micros(late));
        }
        assert_eq!(lateness.quantile(0.5), Duration::from_micros(60));
        assert_eq!(lateness.quantile(1.0), Duration::from_micros(100));
        assert_eq!(Lateness::new().quantile(0.5), Duration::ZERO);
    }

    #[test]
    fn values_beyond_all_buckets_count_as_the_maximum() {
        let mut lateness = Lateness::new();
        lateness.record(Duration::from_secs(2));
        assert_eq!((lateness.quantile(0.5), lateness.max().as_secs()), (Duration::from_secs(2), 2));
    }
}
