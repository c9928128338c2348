//! Exponential back-off between attempts: each pause doubles, up to a limit. A pause ends when the
//! machine wakes from a suspension.

use std::time::Duration;

use crate::suspension::sleep_or_wake;

/// State of a back-off.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// Returns the back-off for a place that is down. It keeps many waiting contacts within the
    /// limits of one server.
    pub fn of_a_place() -> Self {
        Self::new(Duration::from_secs(3), Duration::from_secs(60))
    }

    /// Returns the pause that is due.
    pub fn advance(&mut self) -> Duration {
        let pause = self.next;
        self.next = (2 * pause).min(self.longest);
        pause
    }

    /// Resets the pause after a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }

    pub async fn wait(&mut self) {
        sleep_or_wake(self.advance()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew() {
        let mut backoff = Backoff::of_a_place();
        let seconds: Vec<u64> = (0..6).map(|_| backoff.advance().as_secs()).collect();
        assert_eq!(seconds, [3, 6, 12, 24, 48, 60]);
        backoff.reset();
        assert_eq!(backoff.advance().as_secs(), 3);
    }
}
