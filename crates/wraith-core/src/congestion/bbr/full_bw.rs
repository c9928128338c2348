//! Full-pipe detection (draft §5.3.1.2). The pipe is full when three rounds that were not
//! application-limited have brought no delivery rate a quarter above the baseline.

/// Factor over the baseline from which a rate is treated as growth.
const GROWTH: f64 = 1.25;
/// Number of rounds without growth that fill the pipe.
const ROUNDS: u32 = 3;

/// The estimator, run in Startup and in each ProbeBW_UP.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullBw {
    /// The pipe is full since the last reset.
    pub(super) now: bool,
    /// The pipe was full at any time.
    pub(super) reached: bool,
    /// Rounds without growth so far.
    pub(super) count: u32,
    baseline: u64,
}

impl FullBw {
    /// Restarts with a baseline of `baseline` bytes per second.
    pub(super) fn reset(&mut self, baseline: u64) {
        *self = Self { now: false, reached: self.reached, count: 0, baseline };
    }

    /// Handles a round that begins with a sample of `rate` that is not application-limited.
    pub(super) fn on_round(&mut self, rate: u64) {
        if self.now {
            return;
        }
        if rate as f64 >= self.baseline as f64 * GROWTH {
            self.reset(rate);
            return;
        }
        self.count += 1;
        self.now = self.count >= ROUNDS;
        self.reached |= self.now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_without_a_quarter_more_fill_the_pipe() {
        let mut pipe = FullBw::default();
        for rate in [100, 200, 400, 499, 400, 490] {
            assert!(!pipe.now);
            pipe.on_round(rate);
        }
        assert!(pipe.now && pipe.reached);
    }

    #[test]
    fn growth_starts_the_count_again() {
        let mut pipe = FullBw::default();
        [100, 110, 110, 126, 130, 130].into_iter().for_each(|rate| pipe.on_round(rate));
        assert!(!pipe.now);
        pipe.on_round(130);
        assert!(pipe.now);
        pipe.reset(0);
        assert!(!pipe.now && pipe.reached);
    }
}
