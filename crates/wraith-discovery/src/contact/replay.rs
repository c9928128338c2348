//! Replay protection of a listener: a recorded call that an attacker sends again is ignored.
//!
//! A call older than the clock tolerance is rejected by its time. The filter keeps the salts of the
//! last [`MAX_SALTS`] calls, independent of the clock. Only calls sealed by a contact get this far, so
//! only contacts can fill the memory.

use std::collections::VecDeque;

use super::hour::CLOCK_SKEW_SECONDS;
use super::packet::SALT_LEN;

/// Most remembered salts: those of more than a hundred contacts within a call's lifetime.
const MAX_SALTS: usize = 4096;

/// Calls received recently.
#[derive(Debug, Default)]
pub struct CallReplayFilter {
    /// Salts of calls with a good time, oldest first.
    received: VecDeque<[u8; SALT_LEN]>,
    /// Salts of the other calls. They do not drop answered ones: anybody can repeat old calls.
    refused: VecDeque<[u8; SALT_LEN]>,
}

/// Decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallVerdict {
    /// Fresh and new.
    New,
    /// It came before.
    Known,
    /// Its time minus that of the listener, in seconds, is beyond the tolerance.
    ClockDiffers(i64),
}

impl CallReplayFilter {
    /// Decides about a call dated `unix_seconds`, and remembers it.
    pub fn admit(&mut self, now: u64, salt: [u8; SALT_LEN], unix_seconds: u64) -> CallVerdict {
        if self.received.contains(&salt) || self.refused.contains(&salt) {
            return CallVerdict::Known;
        }
        let is_good = unix_seconds.abs_diff(now) <= CLOCK_SKEW_SECONDS;
        let salts = if is_good { &mut self.received } else { &mut self.refused };
        if salts.len() >= MAX_SALTS {
            salts.pop_front();
        }
        salts.push_back(salt);
        match unix_seconds.abs_diff(now) {
            0..=CLOCK_SKEW_SECONDS => CallVerdict::New,
            apart => {
                let apart = i64::try_from(apart).unwrap_or(i64::MAX);
                CallVerdict::ClockDiffers(if unix_seconds < now { -apart } else { apart })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: CallVerdict = CallVerdict::New;

    #[test]
    fn a_call_is_good_once_and_for_as_long_as_clocks_may_differ() {
        let mut calls = CallReplayFilter::default();
        assert_eq!(calls.admit(1000, [1; 16], 1000), NEW);
        assert_eq!(calls.admit(1000, [1; 16], 1000), CallVerdict::Known);
        assert_eq!(calls.admit(1000, [2; 16], 909), CallVerdict::ClockDiffers(-91));
        assert_eq!(calls.admit(1000, [3; 16], 1091), CallVerdict::ClockDiffers(91));
        assert_eq!(calls.admit(1000, [4; 16], u64::MAX), CallVerdict::ClockDiffers(i64::MAX));
        assert_eq!(calls.admit(1000, [5; 16], 1090), NEW);
        assert_eq!(calls.admit(1180, [5; 16], 1090), CallVerdict::Known, "still good by its date");
    }

    #[test]
    fn old_calls_that_are_repeated_do_not_drop_an_answered_one() {
        let mut calls = CallReplayFilter::default();
        assert_eq!(calls.admit(90_000, [1; 16], 90_000), NEW);
        for n in 0..2 * MAX_SALTS as u128 {
            let salt = (n + (1 << 64)).to_be_bytes();
            assert_eq!(calls.admit(90_000, salt, 1000), CallVerdict::ClockDiffers(-89_000));
        }
        assert_eq!(calls.admit(90_000, [1; 16], 90_000), CallVerdict::Known);
    }

    #[test]
    fn a_call_is_known_whatever_the_clock_shows_meanwhile() {
        let mut calls = CallReplayFilter::default();
        assert_eq!(calls.admit(90_000, [1; 16], 90_000), NEW);
        // The clock is stepped to and fro by a day.
        for now in [3_600, 90_000, 176_400, 90_000] {
            assert_eq!(calls.admit(now, [1; 16], 90_000), CallVerdict::Known);
        }
    }

    #[test]
    fn the_memory_does_not_grow() {
        let mut calls = CallReplayFilter::default();
        for n in 0..2 * MAX_SALTS as u128 {
            assert_eq!(calls.admit(1000, n.to_be_bytes(), 1000), NEW);
        }
        assert_eq!(calls.received.len(), MAX_SALTS);
    }
}
