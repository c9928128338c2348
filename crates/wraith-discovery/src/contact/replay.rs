//! Replay protection of a listener: a recorded call that an attacker sends again is ignored.
//!
//! A call older than the clock tolerance is rejected by its time. The salts of newer calls are
//! remembered for the clock tolerance. Only calls sealed by a contact get this far, so only
//! contacts can fill the memory. If it is full, the oldest entries are dropped.

use std::collections::VecDeque;

use super::hour::CLOCK_SKEW_SECONDS;
use super::packet::SALT_LEN;

/// Most remembered salts: those of more than a hundred contacts within a call's lifetime.
const MAX_SALTS: usize = 4096;

/// Calls answered recently.
#[derive(Debug, Default)]
pub struct CallReplayFilter {
    /// Arrival times in Unix seconds and salts, oldest first.
    answered: VecDeque<(u64, [u8; SALT_LEN])>,
}

impl CallReplayFilter {
    /// Reports whether a call dated `unix_seconds` is fresh and new. True once per call.
    pub fn admit(&mut self, now: u64, salt: [u8; SALT_LEN], unix_seconds: u64) -> bool {
        if unix_seconds.abs_diff(now) > CLOCK_SKEW_SECONDS {
            return false;
        }
        // A call dated ahead of the listener's clock is valid for twice the clock tolerance.
        while self
            .answered
            .front()
            .is_some_and(|(came, _)| now.saturating_sub(*came) > 2 * CLOCK_SKEW_SECONDS)
        {
            self.answered.pop_front();
        }
        if self.answered.iter().any(|(_, theirs)| *theirs == salt) {
            return false;
        }
        if self.answered.len() >= MAX_SALTS {
            self.answered.pop_front();
        }
        self.answered.push_back((now, salt));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_good_once_and_for_as_long_as_clocks_may_differ() {
        let mut calls = CallReplayFilter::default();
        assert!(calls.admit(1000, [1; 16], 1000));
        assert!(!calls.admit(1000, [1; 16], 1000), "again");
        assert!(!calls.admit(1000, [2; 16], 909) && !calls.admit(1000, [2; 16], 1091));
        assert!(calls.admit(1000, [2; 16], 1090));
        assert!(!calls.admit(1180, [2; 16], 1090), "still good by its date, and remembered");
        assert!(calls.admit(1181, [3; 16], 1181));
        assert_eq!(calls.answered.len(), 1, "what is refused by its date is forgotten");
    }

    #[test]
    fn the_memory_does_not_grow() {
        let mut calls = CallReplayFilter::default();
        for n in 0..2 * MAX_SALTS as u128 {
            assert!(calls.admit(1000, n.to_be_bytes(), 1000));
        }
        assert_eq!(calls.answered.len(), MAX_SALTS);
    }
}
