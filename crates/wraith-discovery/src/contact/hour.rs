//! The hour of a listener. A listener's topics (the names under which contacts find it) change
//! every hour, so that observers cannot recognise returning peers.

use std::time::Duration;

use crate::suspension::sleep_or_wake;
use crate::wall_clock::unix_seconds;

const HOUR_SECONDS: u64 = 3600;
/// Largest clock difference between both sides, as in the handshake (SPEC §3.4).
pub const CLOCK_SKEW_SECONDS: u64 = 90;
/// Longest sleep before the clock is read again: it may be set.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Returns the current hour of a listener.
pub fn hour() -> u64 {
    unix_seconds() / HOUR_SECONDS
}

/// Waits until the hour is no longer `current`. Cancel-safe.
pub async fn hour_after(current: u64) {
    while hour() == current {
        // The hour may end between the two readings of the clock.
        let left = ((current + 1) * HOUR_SECONDS).saturating_sub(unix_seconds());
        let left = Duration::from_secs(left);
        sleep_or_wake(left.min(LONGEST_SLEEP)).await;
    }
}

/// Returns the hours that a listener's clock may show: two around the full hour.
pub fn hours_to_try(unix_seconds: u64) -> Vec<u64> {
    let mut hours: Vec<u64> = [0, CLOCK_SKEW_SECONDS, 2 * CLOCK_SKEW_SECONDS]
        .map(|ahead| (unix_seconds + ahead).saturating_sub(CLOCK_SKEW_SECONDS) / HOUR_SECONDS)
        .to_vec();
    hours.dedup();
    hours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn around_the_full_hour_two_hours_are_tried() {
        assert_eq!(hours_to_try(3600 + 1800), [1]);
        assert_eq!(hours_to_try(3600 + 10), [0, 1]);
        assert_eq!(hours_to_try(7200 - 10), [1, 2]);
    }
}
