//! The wall clock of an endpoint, injected by the caller.

use std::fmt;
use std::sync::Arc;

use crate::Time;

/// Source of the wall-clock time. The endpoint reads it whenever a handshake message is dated or
/// checked, so a step of the clock takes effect at once.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn(Time) -> u64 + Send + Sync>);

impl WallClock {
    /// Wraps `read`, which returns the Unix time in seconds. Its argument is the endpoint's time,
    /// for simulated clocks.
    pub fn new(read: impl Fn(Time) -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Returns a clock that shows `unix_seconds` at [`Time::ZERO`] and advances with the endpoint's
    /// time.
    pub fn starting_at(unix_seconds: u64) -> Self {
        Self::new(move |now| unix_seconds.saturating_add(now.as_nanos() / 1_000_000_000))
    }

    pub(crate) fn unix_seconds(&self, now: Time) -> u64 {
        (self.0)(now)
    }
}

impl Default for WallClock {
    /// A clock that shows 0, 1 January 1970, at [`Time::ZERO`].
    fn default() -> Self {
        Self::starting_at(0)
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WallClock").finish_non_exhaustive()
    }
}
