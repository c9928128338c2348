//! The core's time on this machine: nanoseconds since the endpoint began, monotonic.

use std::time::{Duration, Instant, SystemTime};

use wraith_core::Time;

/// Maps the monotonic clock to [`Time`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    zero: Instant,
}

impl Clock {
    /// A clock that shows [`Time::ZERO`] now.
    pub(crate) fn new() -> Self {
        Self { zero: Instant::now() }
    }

    /// Now. One vDSO call, no system call.
    pub(crate) fn now(self) -> Time {
        Time::ZERO + self.zero.elapsed()
    }
}

/// The wall clock in seconds since 1970; 0 if it stands before that.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
