//! The wall clock, read anew for each use because it may be set at any time.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the wall-clock time in milliseconds since 1970, or 0 if the clock is set before that.
pub(crate) fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the wall-clock time in seconds since 1970, or 0 if the clock is set before that.
pub fn unix_seconds() -> u64 {
    unix_millis() / 1000
}
