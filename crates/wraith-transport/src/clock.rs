//! The core's time on this machine: monotonic nanoseconds since the start of the endpoint.

use std::time::{Duration, Instant, SystemTime};

use wraith_core::Time;

/// Maps the monotonic clock to [`Time`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    zero: Instant,
}

impl Clock {
    /// Creates a clock that starts at [`Time::ZERO`] now.
    pub(crate) fn new() -> Self {
        Self { zero: Instant::now() }
    }

    /// Returns the current time. Costs one vDSO call and no system call.
    pub(crate) fn now(self) -> Time {
        Time::ZERO + self.zero.elapsed()
    }
}

/// Returns the wall-clock time in seconds since 1970, or 0 if the clock is set before that.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
