//! Limits the turn of a stranger, in which its transfer is decided and runs, while another caller
//! waits.
//!
//! This module has no clock and no connection: a waiting caller polls it, with the time and the
//! number of bytes moved. Invariant: without a waiting caller, this module ends no turn.

use std::time::{Duration, Instant};

/// Bytes that must move in each [`SPAN`]: 50 kB per second, below the slowest link worth waiting
/// for.
const BYTES: u64 = 1 << 20;
const SPAN: Duration = Duration::from_secs(20);
/// How long the question about an offer may stay open.
const QUESTION: Duration = Duration::from_secs(120);
/// Maximum duration of a turn. A caller that reconnects resumes where it stopped.
const TURN: Duration = Duration::from_secs(600);

/// The limit of one turn (see the module docs). It starts when another caller begins to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnLimit {
    begun: Instant,
    /// When enough bytes had last moved, and their count; `None` while the user is asked.
    moved: Option<(Instant, u64)>,
}

impl TurnLimit {
    pub fn new(now: Instant) -> Self {
        Self { begun: now, moved: None }
    }

    /// Returns true if the turn is over. `bytes` is the count of bytes moved; `None` while the user
    /// is asked.
    pub fn is_over(&mut self, now: Instant, bytes: Option<u64>) -> bool {
        let passed = |since: Instant| now.saturating_duration_since(since);
        let Some(bytes) = bytes else { return passed(self.begun) >= QUESTION };
        let (since, mark) = *self.moved.get_or_insert((now, bytes));
        if bytes.saturating_sub(mark) >= BYTES {
            self.moved = Some((now, bytes));
        }
        bytes.saturating_sub(mark) < BYTES && passed(since) >= SPAN || passed(self.begun) >= TURN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns after how many seconds the turn ends for a caller that moves `rate` bytes per
    /// second, if that is within two hours.
    fn over_after(rate: u64) -> Option<u64> {
        let start = Instant::now();
        let mut limit = TurnLimit::new(start);
        (0..7200).find(|n| limit.is_over(start + *n as u32 * SECOND, Some(n * rate)))
    }

    #[test]
    fn a_slow_sender_loses_its_turn_before_a_fast_one() {
        assert_eq!(over_after(0), Some(20));
        assert_eq!(over_after(10_000), Some(20));
        assert_eq!(over_after(100_000), Some(600));
        assert_eq!(over_after(100_000_000), Some(600));
    }

    #[test]
    fn a_sender_that_stalls_in_the_middle_loses_its_turn() {
        let start = Instant::now();
        let mut limit = TurnLimit::new(start);
        for n in 0..60 {
            assert!(!limit.is_over(start + n * SECOND, Some(u64::from(n) * BYTES)));
        }
        assert!(!limit.is_over(start + 78 * SECOND, Some(59 * BYTES + 1)));
        assert!(limit.is_over(start + 79 * SECOND, Some(59 * BYTES + 1)));
    }

    #[test]
    fn an_unanswered_question_may_take_two_minutes_before_the_rate_counts() {
        let start = Instant::now();
        let mut limit = TurnLimit::new(start);
        assert!(!limit.is_over(start + 119 * SECOND, None));
        assert!(!limit.is_over(start + 119 * SECOND, Some(0)));
        assert!(!limit.is_over(start + 138 * SECOND, Some(0)));
        assert!(limit.is_over(start + 139 * SECOND, Some(0)));
        assert!(TurnLimit::new(start).is_over(start + 120 * SECOND, None));
    }
}
