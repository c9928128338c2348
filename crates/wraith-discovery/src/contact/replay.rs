//! Which calls a listener has answered: a recorded one, sent again by somebody else, gets silence.
//!
//! A call that is older than clocks may differ is refused by its time; the salts of the others are remembered for as long.
//! Only calls that a contact sealed get this far, so only contacts can fill the memory, and then the oldest go.

use std::collections::VecDeque;

use super::hour::CLOCK_SKEW_SECONDS;
use super::packet::SALT_LEN;

/// More than a hundred contacts ask within the time that a call is good for.
const MAX_SALTS: usize = 4096;

/// See the module.
#[derive(Debug, Default)]
pub struct Calls {
    /// When they came, in unix seconds, the oldest first.
    answered: VecDeque<(u64, [u8; SALT_LEN])>,
}

impl Calls {
    /// Whether a call that is dated `unix_seconds` is good, and new. Once for each.
    pub fn admit(&mut self, now: u64, salt: [u8; SALT_LEN], unix_seconds: u64) -> bool {
        if unix_seconds.abs_diff(now) > CLOCK_SKEW_SECONDS {
            return false;
        }
        // One that is dated ahead of us is good for twice the difference of clocks.
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
        let mut calls = Calls::default();
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
        let mut calls = Calls::default();
        for n in 0..2 * MAX_SALTS as u128 {
            assert!(calls.admit(1000, n.to_be_bytes(), 1000));
        }
        assert_eq!(calls.answered.len(), MAX_SALTS);
    }
}
