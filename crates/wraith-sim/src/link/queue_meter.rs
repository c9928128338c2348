//! Queueing delay of datagrams: the cost of a congestion controller for all other flows on the
//! link.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Buckets per power of two: values are exact to 1/32.
const PARTS: u64 = 32;
const PARTS_BITS: u32 = PARTS.trailing_zeros();
/// Values below `PARTS` have a bucket each; every higher power of two has `PARTS`.
const BUCKETS: usize = ((64 - PARTS_BITS as usize) + 1) * PARTS as usize;

/// A histogram of waiting times and a count of drops. A box and its clones fill it.
#[derive(Clone, Default)]
pub struct QueueMeter(Arc<Mutex<Counts>>);

struct Counts {
    buckets: Box<[u64; BUCKETS]>,
    waited: u64,
    dropped: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Self { buckets: Box::new([0; BUCKETS]), waited: 0, dropped: 0 }
    }
}

impl QueueMeter {
    /// Returns the waiting time that `percent` of the passed datagrams did not exceed, rounded up
    /// by at most 1/32; zero if none passed.
    pub fn percentile(&self, percent: f64) -> Duration {
        let counts = self.counts_now();
        let wanted = (counts.waited as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bucket = counts.buckets.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        Duration::from_nanos(bucket.map_or(0, upper_end))
    }

    /// Returns the number of passed and of dropped datagrams.
    pub fn counts(&self) -> (u64, u64) {
        let counts = self.counts_now();
        (counts.waited, counts.dropped)
    }

    pub(super) fn waited(&self, nanos: u64) {
        let mut counts = self.counts_now();
        counts.waited += 1;
        counts.buckets[bucket_of(nanos)] += 1;
    }

    pub(super) fn dropped(&self) {
        self.counts_now().dropped += 1;
    }

    /// Ignores poisoning: counters stay meaningful after a panic of another thread.
    fn counts_now(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bucket_of(value: u64) -> usize {
    if value < PARTS {
        return value as usize;
    }
    let shift = value.ilog2() - PARTS_BITS;
    let part = (value >> shift) - PARTS;
    ((u64::from(shift) + 1) * PARTS + part) as usize
}

/// Returns the largest value of a bucket.
fn upper_end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PARTS {
        return bucket;
    }
    let (shift, part) = (bucket / PARTS - 1, bucket % PARTS);
    let next = u128::from(PARTS + part + 1) << shift;
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

impl fmt::Debug for QueueMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (waited, dropped) = self.counts();
        f.debug_struct("QueueMeter").field("waited", &waited).field("dropped", &dropped).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_buckets_are_at_most_a_thirty_second_wide() {
        let values = (0..2000).chain((0..64).map(|bit| 1 << bit)).chain([u64::MAX, u64::MAX - 1]);
        for value in values {
            let end = upper_end(bucket_of(value));
            assert!(end >= value && end - value <= value / PARTS, "{value} in a bucket to {end}");
        }
    }

    #[test]
    fn percentiles_are_those_of_the_values() {
        let meter = QueueMeter::default();
        assert_eq!(meter.percentile(95.0), Duration::ZERO);
        for micros in 1..=1000 {
            meter.waited(micros * 1000);
        }
        for (percent, micros) in [(50.0, 500), (95.0, 950), (100.0, 1000)] {
            let found = meter.percentile(percent).as_nanos() as u64;
            assert!((micros * 1000..micros * 1032).contains(&found), "{percent} %: {found}");
        }
    }

    #[test]
    fn clones_share_what_they_count() {
        let meter = QueueMeter::default();
        meter.clone().dropped();
        assert_eq!(meter.counts(), (0, 1));
    }
}
