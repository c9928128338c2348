//! Token bucket: limits the expensive work that unauthenticated senders can cause per second.
//!
//! Invariant: the tokens taken in any period never exceed the rate times the period, plus the
//! burst, plus the last request.

use std::time::Duration;

use crate::Time;

/// A token bucket. Its state is the time at which all tokens taken so far are earned back.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    per_second: u64,
    burst: Duration,
    paid_at: Time,
}

impl TokenBucket {
    /// Returns a full bucket that earns `per_second` tokens a second and holds the tokens of
    /// `burst`.
    pub(crate) const fn new(per_second: u64, burst: Duration) -> Self {
        Self { per_second, burst, paid_at: Time::ZERO }
    }

    /// Takes `count` tokens, all or none, and returns whether it did. A request larger than a full
    /// bucket is granted on credit.
    pub(crate) fn take(&mut self, now: Time, count: usize) -> bool {
        let cost = Duration::from_nanos(count as u64 * 1_000_000_000 / self.per_second);
        let paid_at = self.paid_at.max(now);
        let allowed = paid_at - now + cost.min(self.burst) <= self.burst;
        if allowed {
            self.paid_at = paid_at + cost;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PER_SECOND: usize = 1 << 18;

    /// Returns the tokens taken by a caller that requests `count` tokens `every` interval for ten
    /// seconds.
    fn taken(count: usize, every: Duration) -> usize {
        let mut bucket = TokenBucket::new(PER_SECOND as u64, Duration::from_millis(125));
        let (mut now, mut taken) = (Time::ZERO, 0);
        while now < Time::ZERO + Duration::from_secs(10) {
            taken += if bucket.take(now, count) { count } else { 0 };
            now += every;
        }
        taken
    }

    #[test]
    fn a_flood_gets_no_more_than_the_rate_and_what_was_saved_up() {
        let most = 10 * PER_SECOND + PER_SECOND / 8;
        for count in [1, 10, 1024] {
            let taken = taken(count, Duration::from_micros(2));
            // A cost is rounded down to nanoseconds.
            let range = most - most / 50..=most + most / 1000 + count;
            assert!(range.contains(&taken), "{taken} of {most}");
        }
    }

    #[test]
    fn more_than_can_be_saved_up_is_given_too_and_paid_for_after() {
        assert_eq!(taken(PER_SECOND, Duration::from_millis(1)), 10 * PER_SECOND);
    }

    #[test]
    fn rare_requests_are_never_refused() {
        assert_eq!(taken(1000, Duration::from_millis(100)), 100 * 1000);
    }
}
