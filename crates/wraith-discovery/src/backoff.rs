//! Back-off between attempts: each pause is longer than the one before, up to a limit.
//!
//! ```text
//! closed ──failure──▶ open ──success──▶ half-open ──second success, or the longest pause──▶ closed
//!                       ◀───────failure────┘
//! ```
//!
//! A server that accepts an attempt and fails at once stays half-open, so its pauses keep growing.
//! Random jitter keeps clients apart that lost the same server at the same time.

use std::time::{Duration, Instant};

use crate::suspension::sleep_or_wake;

/// Largest part of a pause that jitter adds to it.
const JITTER: f64 = 0.2;

/// State of a back-off; see the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    /// Factor between two pauses.
    growth: f64,
    jitter: bool,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed,
    /// Attempts fail. The value is the last pause.
    Open(Duration),
    /// The last pause, and the time of the success since then.
    HalfOpen(Duration, Instant),
}

impl Backoff {
    /// Creates a closed back-off whose pauses double from `first` to `longest`, without jitter.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, growth: 2.0, jitter: false, state: State::Closed }
    }

    /// Returns the back-off for a place that is down. It keeps many waiting contacts within the
    /// limits of one server.
    pub(crate) const fn of_a_place() -> Self {
        Self::new(Duration::from_secs(3), Duration::from_secs(60)).with_jitter()
    }

    /// Sets the factor between two pauses. With 1.25, a pause is about a quarter of the time since
    /// the first failure.
    #[must_use]
    pub const fn with_growth(self, growth: f64) -> Self {
        Self { growth, ..self }
    }

    /// Adds up to a fifth to each pause, at random.
    #[must_use]
    pub const fn with_jitter(self) -> Self {
        Self { jitter: true, ..self }
    }

    /// Records a failure. Returns the pause before the next attempt.
    pub fn failed(&mut self, now: impl Into<Instant>) -> Duration {
        let now = now.into();
        let pause = match self.state {
            State::Closed => self.first,
            State::HalfOpen(_, since) if now.saturating_duration_since(since) >= self.longest => {
                self.first
            }
            State::Open(last) | State::HalfOpen(last, _) => {
                last.mul_f64(self.growth).min(self.longest)
            }
        };
        self.state = State::Open(pause);
        // Without randomness, there is no jitter.
        let random = if self.jitter { getrandom::u32().unwrap_or(0) } else { 0 };
        pause + pause.mul_f64(JITTER * f64::from(random) / f64::from(u32::MAX))
    }

    /// Records a success.
    pub fn succeeded(&mut self, now: impl Into<Instant>) {
        self.state = match self.state {
            State::Open(last) => State::HalfOpen(last, now.into()),
            State::Closed | State::HalfOpen(..) => State::Closed,
        };
    }

    /// Records a failure now, and waits. The pause also ends when the machine wakes from a
    /// suspension.
    pub async fn wait(&mut self) {
        sleep_or_wake(self.failed(tokio::time::Instant::now())).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Backoff = Backoff::new(Duration::from_secs(3), Duration::from_secs(60));

    fn failures(backoff: &mut Backoff, count: usize, now: Instant) -> Vec<u64> {
        (0..count).map(|_| backoff.failed(now).as_secs()).collect()
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        assert_eq!(failures(&mut PLAIN.clone(), 6, Instant::now()), [3, 6, 12, 24, 48, 60]);
    }

    #[test]
    fn one_short_success_does_not_shorten_the_pauses_and_two_or_a_long_one_do() {
        let (mut backoff, now) = (PLAIN, Instant::now());
        failures(&mut backoff, 2, now);
        backoff.succeeded(now);
        assert_eq!(failures(&mut backoff, 1, now + Duration::from_secs(59)), [12]);
        backoff.succeeded(now);
        assert_eq!(failures(&mut backoff, 1, now + Duration::from_secs(60)), [3]);
        failures(&mut backoff, 2, now);
        backoff.succeeded(now);
        backoff.succeeded(now);
        assert_eq!(failures(&mut backoff, 1, now), [3]);
    }

    #[test]
    fn jitter_adds_up_to_a_fifth() {
        let pauses: Vec<_> =
            (0..100).map(|_| PLAIN.with_jitter().failed(Instant::now()).as_millis()).collect();
        assert!(pauses.iter().all(|pause| (3000..=3600).contains(pause)), "{pauses:?}");
        assert!(pauses.iter().min() < pauses.iter().max());
    }
}
