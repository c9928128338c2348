//! The core's time on this machine: monotonic nanoseconds since the start of the endpoint,
//! including the time for which the machine was suspended.

use std::time::{Duration, SystemTime};

use wraith_core::Time;

/// Maps the monotonic clock to [`Time`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    zero: Duration,
}

impl Clock {
    /// Creates a clock that starts at [`Time::ZERO`] now.
    pub(crate) fn new() -> Self {
        Self { zero: monotonic() }
    }

    /// Returns the current time. Costs one vDSO call and no system call.
    pub(crate) fn now(self) -> Time {
        Time::ZERO + monotonic().saturating_sub(self.zero)
    }
}

/// Returns the time since an arbitrary moment. It counts suspension, so a connection that timed out
/// during it ends right after waking. Costs one vDSO call.
fn monotonic() -> Duration {
    // The C library's call: that of rustix reads the vDSO itself, which valgrind hides.
    use nix::time::{ClockId, clock_gettime};
    // macOS and iOS count suspension in CLOCK_MONOTONIC.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;
    clock_gettime(CLOCK).map_or(Duration::ZERO, Duration::from)
}

/// Returns the wall-clock time in seconds since 1970, or 0 if the clock is set before that.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
