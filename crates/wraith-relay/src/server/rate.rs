//! Traffic limits: token buckets, a daily volume, and fair shares of a total rate.
//!
//! A bucket is stored as the time at which its tokens will be restored (the generic cell rate
//! algorithm). It therefore needs 16 bytes and no timer.
//!
//! Shares are max-min fair. The share of an interval is computed from the demand of the previous
//! one: small demands are met in full. Larger demands get equal parts of the rest. Excess datagrams
//! are dropped at once and never queued. So congestion control at both ends detects loss, not a
//! growing delay, and the relay needs no memory for queues.

use std::time::{Duration, Instant};

/// Depth of a bucket: enough for the bursts of a paced sender.
const BURST: Duration = Duration::from_millis(100);
/// Duration of one share computation.
const INTERVAL: Duration = Duration::from_millis(50);
/// Period of the daily limit, which starts with the relay.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A token bucket in bytes; see the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    paid_at: Instant,
}

impl Bucket {
    /// Creates a full bucket.
    pub fn new(now: Instant) -> Self {
        Self { paid_at: now }
    }

    /// Reports whether the bucket holds all its tokens.
    pub fn is_full(&self, now: Instant) -> bool {
        self.paid_at <= now
    }

    /// Takes `bytes` at `rate` if the bucket is not empty. A datagram beyond the bucket's depth is
    /// granted on credit.
    pub fn take(&mut self, rate: Option<u64>, now: Instant, bytes: usize) -> bool {
        let Some(rate) = rate else { return true };
        let paid_at = self.paid_at.max(now);
        if paid_at.saturating_duration_since(now) >= BURST {
            return false;
        }
        self.paid_at = paid_at + Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
        true
    }
}

/// Bytes used of the daily limit.
#[derive(Debug)]
pub struct DailyVolume {
    began: Instant,
    used: u64,
}

impl DailyVolume {
    /// Starts the first day.
    pub fn new(now: Instant) -> Self {
        Self { began: now, used: 0 }
    }

    /// Takes `bytes` if the day's limit allows it. Taking zero bytes tests whether any are left.
    pub fn take(&mut self, limit: Option<u64>, now: Instant, bytes: usize) -> bool {
        let Some(limit) = limit else { return true };
        while now.saturating_duration_since(self.began) >= DAY {
            self.began += DAY;
            self.used = 0;
        }
        if self.used.saturating_add(bytes as u64) > limit || self.used >= limit {
            return false;
        }
        self.used += bytes as u64;
        true
    }
}

/// Demand and usage of one pair in the current interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct PairDemand {
    interval: u64,
    wanted: u64,
    passed: u64,
}

/// The total rate and the share of each pair.
#[derive(Debug)]
pub struct FairShares {
    total: Bucket,
    /// Number of the current interval, from 1, and its end.
    interval: u64,
    ends: Instant,
    /// Bytes that each pair may send in this interval.
    share: u64,
    /// Demand of each pair that sent in this interval, indexed by its `place`.
    wanted: Vec<u64>,
}

impl FairShares {
    /// Creates the state without traffic.
    pub fn new(now: Instant) -> Self {
        let total = Bucket::new(now);
        Self { total, interval: 1, ends: now + INTERVAL, share: u64::MAX, wanted: Vec::new() }
    }

    /// Takes `bytes` of the total for a pair. `pair` and `place` are the pair's state for this
    /// function only.
    pub fn take(
        &mut self,
        rate: Option<u64>,
        now: Instant,
        pair: &mut PairDemand,
        place: &mut usize,
        bytes: usize,
    ) -> bool {
        let Some(rate) = rate else { return true };
        if now >= self.ends {
            self.next_interval(rate, now);
        }
        if pair.interval != self.interval {
            *pair = PairDemand { interval: self.interval, ..PairDemand::default() };
            *place = self.wanted.len();
            self.wanted.push(0);
        }
        pair.wanted += bytes as u64;
        self.wanted[*place] = pair.wanted;
        // The first datagram of an interval always fits; otherwise a small share would block large
        // datagrams forever.
        let within = pair.passed == 0 || pair.passed + bytes as u64 <= self.share;
        let passes = within && self.total.take(Some(rate), now, bytes);
        if passes {
            pair.passed += bytes as u64;
        }
        passes
    }

    fn next_interval(&mut self, rate: u64, now: Instant) {
        let budget = (rate as f64 * INTERVAL.as_secs_f64()) as u64;
        self.share = share(&mut self.wanted, budget);
        self.wanted.clear();
        self.interval += 1;
        self.ends = now + INTERVAL;
    }
}

/// Returns the max-min fair share of `budget`: smaller demands are met in full, and the sum stays
/// within `budget`.
fn share(wanted: &mut [u64], budget: u64) -> u64 {
    wanted.sort_unstable();
    let (mut left, count) = (budget, wanted.len() as u64);
    for (i, want) in wanted.iter().enumerate() {
        let equal = left / (count - i as u64);
        if *want > equal {
            return equal;
        }
        left -= want;
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Option<u64> = Some(1_000_000);

    #[test]
    fn a_bucket_grants_its_rate_and_one_burst() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start);
        let ms = |ms| start + Duration::from_millis(ms);
        let passed: usize = (0..10_000).filter(|i| bucket.take(RATE, ms(*i), 1500)).count() * 1500;
        assert!((10_000_000..10_110_000).contains(&passed), "{passed}");
        assert!(bucket.take(None, ms(0), 1 << 40));
    }

    #[test]
    fn the_daily_volume_is_restored_the_next_day() {
        let start = Instant::now();
        let mut day = DailyVolume::new(start);
        assert!(day.take(Some(100), start, 60) && !day.take(Some(100), start, 60));
        assert!(day.take(Some(100), start, 40) && !day.take(Some(100), start, 0));
        assert!(day.take(Some(100), start + DAY, 100));
    }

    #[test]
    fn shares_are_max_min_fair() {
        assert_eq!(share(&mut [10, 20, 30], 100), u64::MAX);
        assert_eq!(share(&mut [300, 10, 300], 110), 50);
        assert_eq!(share(&mut [300, 300], 100), 50);
        assert_eq!(share(&mut [], 100), u64::MAX);
    }

    #[test]
    fn a_pair_with_excessive_demand_gets_no_more_than_the_others() {
        let start = Instant::now();
        let mut shares = FairShares::new(start);
        let mut pairs = [(PairDemand::default(), 0); 3];
        let mut passed = [0; 3];
        // Per millisecond: 100,000 bytes, 1000 bytes (more than a third), and 100 bytes.
        for i in 0..10_000 {
            let now = start + Duration::from_millis(i);
            for (pair, count) in [(0, 100), (1, 1), (2, 1)] {
                let bytes = if pair == 2 { 100 } else { 1000 };
                for _ in 0..count {
                    let (usage, place) = &mut pairs[pair];
                    if shares.take(RATE, now, usage, place, bytes) {
                        passed[pair] += bytes;
                    }
                }
            }
        }
        let [greedy, fair, small] = passed;
        assert!(greedy + fair + small <= 10_100_000 + 1000);
        assert!(small > 950_000, "{small} of 1,000,000");
        assert!(fair > 4_000_000 && greedy < 5_500_000, "{fair} beside {greedy}");
    }
}
