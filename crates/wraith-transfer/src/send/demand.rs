//! Decides whether a transfer is worth parallel connections (SPEC §10.13).

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::{PARALLEL_BYTES_MIN, PARALLEL_RATE, PARALLEL_RTT_MAX};
use crate::lock::lock;
use crate::progress::Progress;
use crate::session::Session;

/// Minimum interval over which the rate of the first connection is measured.
const RATE_INTERVAL: Duration = Duration::from_millis(100);

/// Decides whether the transfer is worth parallel connections. Workers measure the rate as they
/// write, while a thread waits for the result.
#[derive(Default)]
pub(super) struct Demand {
    is_awaited: AtomicBool,
    state: Mutex<DemandState>,
    changed: Condvar,
}

#[derive(Default)]
struct DemandState {
    /// Start of the current measurement, and the bytes moved by then.
    since: Option<(Instant, u64)>,
    is_worth: bool,
    stopped: bool,
}

impl Demand {
    /// Waits until the connections are worthwhile. Returns false if the transfer ends first.
    pub(super) fn wait(&self) -> bool {
        let mut state = lock(&self.state);
        self.is_awaited.store(true, Relaxed);
        while !state.is_worth && !state.stopped {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.is_awaited.store(false, Relaxed);
        !state.stopped
    }

    /// Takes a measurement; called by a worker after a write.
    pub(super) fn measure(&self, session: &Session, progress: &Progress) {
        if !self.is_awaited.load(Relaxed) {
            return;
        }
        let (now, moved) = (Instant::now(), session.bytes_moved());
        let mut state = lock(&self.state);
        let Some((since, before)) = state.since else {
            state.since = Some((now, moved));
            return;
        };
        let elapsed = now.saturating_duration_since(since);
        if elapsed < RATE_INTERVAL {
            return;
        }
        state.since = Some((now, moved));
        if is_worth(session, progress, moved.saturating_sub(before), elapsed) {
            state.is_worth = true;
            self.changed.notify_all();
        }
    }

    /// Stops, and wakes all waiting threads.
    pub(super) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }
}

fn is_worth(session: &Session, progress: &Progress, moved: u64, elapsed: Duration) -> bool {
    let enough = u128::from(PARALLEL_RATE) * elapsed.as_micros() / 1_000_000;
    let left = progress.bytes_total().saturating_sub(progress.bytes());
    u128::from(moved) >= enough
        && left >= PARALLEL_BYTES_MIN
        && session.connection.stats().min_rtt <= PARALLEL_RTT_MAX
}
