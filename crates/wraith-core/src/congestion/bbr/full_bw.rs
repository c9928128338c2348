//! Is the pipe full (draft §5.3.1.2)? Three rounds that were not limited by the application, each without a quarter more
//! delivered than the baseline, say yes.

/// A quarter more is growth.
const GROWTH: f64 = 1.25;
/// Rounds without growth that decide.
const ROUNDS: u32 = 3;

/// The estimator, run in Startup and in each ProbeBW_UP.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullBw {
    /// Full since the estimator was last reset.
    pub(super) now: bool,
    /// Was ever full.
    pub(super) reached: bool,
    /// Rounds without growth so far.
    pub(super) count: u32,
    baseline: u64,
}

impl FullBw {
    /// Starts over, growing from `baseline` bytes per second.
    pub(super) fn reset(&mut self, baseline: u64) {
        *self = Self { now: false, reached: self.reached, count: 0, baseline };
    }

    /// A round began with a sample of `rate` that the application did not limit.
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
