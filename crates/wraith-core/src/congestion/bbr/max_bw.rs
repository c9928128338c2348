//! The maximum bandwidth filter (draft §5.5.2–5.5.6): the highest delivery rate of the current and
//! the previous ProbeBW cycle.
//!
//! Time is counted in cycles. Each cycle has one phase that sends faster than the estimate. A cycle
//! without a sample expires no earlier sample.

/// Delivery rates, in bytes per second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBw {
    current: u64,
    previous: u64,
}

impl MaxBw {
    /// Returns the estimate, zero before the first sample.
    pub(super) fn get(&self) -> u64 {
        self.current.max(self.previous)
    }

    /// Adds a sample. An application-limited sample is used only if it exceeds the estimate.
    pub(super) fn update(&mut self, rate: u64, app_limited: bool) {
        if rate >= self.get() || !app_limited {
            self.current = self.current.max(rate);
        }
    }

    /// Ends a cycle: the one before the last expires.
    pub(super) fn advance(&mut self) {
        if self.current > 0 {
            self.previous = std::mem::take(&mut self.current);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_a_cycle_at(rate: u64) -> MaxBw {
        let mut max = MaxBw::default();
        max.update(rate, false);
        max.advance();
        max
    }

    #[test]
    fn the_highest_rate_of_two_cycles_counts_and_older_ones_are_forgotten() {
        let mut max = after_a_cycle_at(100);
        max.update(60, false);
        assert_eq!(max.get(), 100);
        max.advance();
        assert_eq!(max.get(), 60);
        max.advance();
        assert_eq!(max.get(), 60, "a cycle without samples forgets nothing");
    }

    #[test]
    fn an_application_that_sends_slowly_does_not_lower_the_estimate_but_may_raise_it() {
        let mut max = after_a_cycle_at(100);
        max.update(10, true);
        max.advance();
        assert_eq!(max.get(), 100);
        max.update(120, true);
        assert_eq!(max.get(), 120);
    }
}
