//! ACK aggregation (draft §5.5.9): the surplus of bytes acknowledged at once over the bandwidth's
//! share.
//!
//! Wi-Fi, cellular links, GRO and sparse ACKs return nothing for a while and then a lot. The window
//! is widened by the largest such surplus of the last rounds, so that sending continues during the
//! silence.

use std::time::Duration;

use crate::Time;

/// Rounds for which a surplus is remembered after Startup (draft: ExtraAckedFilterLen).
const FILTER_ROUNDS: u64 = 10;

/// The estimator.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExtraAcked {
    since: Time,
    delivered: u64,
    filter: WindowedMax,
}

impl ExtraAcked {
    pub(super) fn new(now: Time) -> Self {
        Self { since: now, delivered: 0, filter: WindowedMax::default() }
    }

    /// Returns the bytes by which the window is widened.
    pub(super) fn get(&self) -> u64 {
        self.filter.get()
    }

    /// Restarts the measurement when sending begins after silence.
    pub(super) fn restart(&mut self, now: Time) {
        self.since = now;
        self.delivered = 0;
    }

    /// Handles `acked` bytes acknowledged at once, at an expected `bandwidth` in bytes per second.
    pub(super) fn update(
        &mut self,
        now: Time,
        acked: u64,
        bandwidth: u64,
        window: u64,
        round: u64,
        startup: bool,
    ) {
        let mut expected = volume(bandwidth, now.since(self.since));
        if self.delivered <= expected {
            self.restart(now);
            expected = 0;
        }
        self.delivered += acked;
        let extra = (self.delivered - expected).min(window);
        let rounds = if startup { 1 } else { FILTER_ROUNDS };
        self.filter.update(round, extra, rounds);
    }
}

fn volume(bandwidth: u64, time: Duration) -> u64 {
    (bandwidth as f64 * time.as_secs_f64()) as u64
}

/// The largest value of the last rounds.
///
/// Keeps the three best values of the window in order of age (K. Nichols' filter, as the draft
/// suggests).
#[derive(Clone, Copy, Debug, Default)]
struct WindowedMax {
    best: [(u64, u64); 3],
}

impl WindowedMax {
    fn get(&self) -> u64 {
        self.best[0].1
    }

    fn update(&mut self, round: u64, value: u64, rounds: u64) {
        let sample = (round, value);
        if value >= self.best[0].1 || round - self.best[2].0 > rounds {
            self.best = [sample; 3];
            return;
        }
        if value >= self.best[1].1 {
            (self.best[1], self.best[2]) = (sample, sample);
        } else if value >= self.best[2].1 {
            self.best[2] = sample;
        }
        // An expired value is replaced by the next best. Without a better value, the second is
        // refreshed after a quarter of the window and the third after half, so that there is a next
        // best.
        let age = round - self.best[0].0;
        if age > rounds {
            self.best = [self.best[1], self.best[2], sample];
            if round - self.best[0].0 > rounds {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age > rounds / 4 {
            (self.best[1], self.best[2]) = (sample, sample);
        } else if self.best[2].0 == self.best[1].0 && age > rounds / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn acks_that_come_every_ten_milliseconds_are_ten_milliseconds_of_surplus() {
        let mut extra = ExtraAcked::new(Time::ZERO);
        for i in 1..=50u32 {
            // A megabyte per second, in batches.
            extra.update(Time::ZERO + MS * 10 * i, 10_000, 1_000_000, 1 << 20, u64::from(i), false);
        }
        assert!((9_000..=11_000).contains(&extra.get()), "{}", extra.get());
    }

    #[test]
    fn a_surplus_is_bounded_by_the_window_and_forgotten_after_ten_rounds() {
        let mut extra = ExtraAcked::new(Time::ZERO);
        extra.update(Time::ZERO, 500_000, 1_000_000, 100_000, 1, false);
        assert_eq!(extra.get(), 100_000);
        for round in 2..=20u32 {
            let now = Time::ZERO + Duration::from_secs(1) * round;
            extra.update(now, 1000, 1_000_000, 100_000, u64::from(round), false);
            assert_eq!(extra.get() == 100_000, round <= 11, "round {round}");
        }
    }

    #[test]
    fn the_maximum_forgets_what_left_the_window_and_never_the_newest() {
        let mut filter = WindowedMax::default();
        let mut seen: Vec<(u64, u64)> = Vec::new();
        let mut x = 1u64;
        for round in 0..2000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let value = (x >> 40) % 1000;
            filter.update(round, value, 10);
            seen.push((round, value));
            let window = seen.iter().filter(|(at, _)| round - at <= 10).map(|(_, v)| *v);
            // No expired value, and never less than the newest.
            assert!(filter.get() <= window.max().unwrap() && filter.get() >= value);
        }
    }
}
