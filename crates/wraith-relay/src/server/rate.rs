//! What may pass: token buckets, the bytes of a day, and shares of a total that is not enough for all.
//!
//! A bucket is kept as the time at which what was taken will have been earned again (the generic cell rate algorithm), so it is
//! 16 bytes and needs no timer.
//!
//! Shares are max-min fair: in each interval every pair may pass as much as would have given all of them what they wanted in the one
//! before, the small ones all of it and the others equal parts of the rest. What is over is lost at once and never queued, so
//! congestion control at both ends sees loss, not a path that grows longer, and the relay holds no memory for it.

use std::time::{Duration, Instant};

/// What can be saved up: enough for the bursts of a sender that paces.
const BURST: Duration = Duration::from_millis(100);
/// How long shares hold.
const INTERVAL: Duration = Duration::from_millis(50);
/// The period of a limit on bytes, which begins with the relay.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Bytes a second. See the module.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    paid_at: Instant,
}

impl Bucket {
    /// A full one.
    pub fn new(now: Instant) -> Self {
        Self { paid_at: now }
    }

    /// Takes `bytes` of a rate, if there are any at all: what is larger than can be saved up is given on credit.
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

/// Bytes of a day.
#[derive(Debug)]
pub struct Day {
    began: Instant,
    used: u64,
}

impl Day {
    /// The first one.
    pub fn new(now: Instant) -> Self {
        Self { began: now, used: 0 }
    }

    /// Takes `bytes`, if they are left; taking none asks whether any are.
    pub fn take(&mut self, most: Option<u64>, now: Instant, bytes: usize) -> bool {
        let Some(most) = most else { return true };
        while now.saturating_duration_since(self.began) >= DAY {
            self.began += DAY;
            self.used = 0;
        }
        if self.used.saturating_add(bytes as u64) > most || self.used >= most {
            return false;
        }
        self.used += bytes as u64;
        true
    }
}

/// What one pair wanted and got in the interval under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Use {
    interval: u64,
    wanted: u64,
    passed: u64,
}

/// The total, and the share of each.
#[derive(Debug)]
pub struct Shares {
    total: Bucket,
    /// Number of the interval under way, from 1, and its end.
    interval: u64,
    ends: Instant,
    /// What each may pass in it.
    share: u64,
    /// What those wanted that sent anything in it: each pair's own figure, at its place in `wanted`.
    wanted: Vec<u64>,
}

impl Shares {
    /// Nobody has sent anything.
    pub fn new(now: Instant) -> Self {
        let total = Bucket::new(now);
        Self { total, interval: 1, ends: now + INTERVAL, share: u64::MAX, wanted: Vec::new() }
    }

    /// Takes `bytes` of the total for a pair, which keeps `place` and `pair` for this and for nothing else.
    pub fn take(
        &mut self,
        rate: Option<u64>,
        now: Instant,
        pair: &mut Use,
        place: &mut usize,
        bytes: usize,
    ) -> bool {
        let Some(rate) = rate else { return true };
        if now >= self.ends {
            self.next_interval(rate, now);
        }
        if pair.interval != self.interval {
            *pair = Use { interval: self.interval, ..Use::default() };
            *place = self.wanted.len();
            self.wanted.push(0);
        }
        pair.wanted += bytes as u64;
        self.wanted[*place] = pair.wanted;
        // The first datagram of an interval is within every share, or large ones would never pass a small one.
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

/// What each may have so that none that wants less gets less, and all together have no more than `budget`.
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
    fn a_bucket_gives_its_rate_and_one_burst() {
        let start = Instant::now();
        let mut bucket = Bucket::new(start);
        let ms = |ms| start + Duration::from_millis(ms);
        let passed: usize = (0..10_000).filter(|i| bucket.take(RATE, ms(*i), 1500)).count() * 1500;
        assert!((10_000_000..10_110_000).contains(&passed), "{passed}");
        assert!(bucket.take(None, ms(0), 1 << 40));
    }

    #[test]
    fn a_day_has_its_bytes_and_the_next_one_again() {
        let start = Instant::now();
        let mut day = Day::new(start);
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
    fn who_wants_a_hundred_times_as_much_gets_no_more_than_others_who_want_their_share() {
        let start = Instant::now();
        let mut shares = Shares::new(start);
        let mut pairs = [(Use::default(), 0); 3];
        let mut passed = [0; 3];
        // In each millisecond: 100,000 bytes, 1000 bytes (more than a third), and 100 bytes.
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
