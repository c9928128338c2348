//! The clocks of one host: a wall clock that a test sets, and suspension.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wraith_core::{Time, WallClock};

/// Datagrams that arrive as the host falls asleep, and are read when it wakes.
const SOCKET_DATAGRAMS: u32 = 4;

/// Clocks of a host. Simulated time is the monotonic clock that counts suspension.
#[derive(Debug)]
pub struct HostClock {
    /// Wall-clock time at [`Time::ZERO`], in wrapping seconds: a clock may be set to less than the
    /// simulated time.
    unix_at_zero: Arc<AtomicU64>,
    suspended_until: Time,
    /// Datagrams for which the socket of the suspended host still has room.
    room: u32,
}

impl HostClock {
    pub fn starting_at(unix_seconds: u64) -> Self {
        let unix_at_zero = Arc::new(AtomicU64::new(unix_seconds));
        Self { unix_at_zero, suspended_until: Time::ZERO, room: 0 }
    }

    /// Returns the wall clock for an endpoint.
    pub fn wall(&self) -> WallClock {
        let unix_at_zero = Arc::clone(&self.unix_at_zero);
        WallClock::new(move |now| unix_at_zero.load(Ordering::Relaxed).wrapping_add(seconds(now)))
    }

    /// Sets the wall clock.
    pub fn set(&self, now: Time, unix_seconds: u64) {
        self.unix_at_zero.store(unix_seconds.wrapping_sub(seconds(now)), Ordering::Relaxed);
    }

    pub fn suspend_until(&mut self, until: Time) {
        (self.suspended_until, self.room) = (until, SOCKET_DATAGRAMS);
    }

    /// Keeps a datagram for a suspended host. Returns when the host reads it; `None` if the socket
    /// is full.
    pub fn keep_in_socket(&mut self) -> Option<Time> {
        self.room = self.room.checked_sub(1)?;
        Some(self.suspended_until)
    }

    pub fn is_suspended(&self, now: Time) -> bool {
        now < self.suspended_until
    }

    /// Returns `at`, or the end of the suspension if that is later.
    pub fn awake_at(&self, at: Time) -> Time {
        at.max(self.suspended_until)
    }
}

fn seconds(now: Time) -> u64 {
    now.as_nanos() / 1_000_000_000
}
