//! The wall clock, for a comparison of the clocks of relay and client. Nothing depends on it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time in seconds since 1970; 0 before.
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
