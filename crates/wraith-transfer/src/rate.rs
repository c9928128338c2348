//! Rate limit of a sender: the lower of its own user's limit and the receiver's request.
//!
//! The limit is part of the connection's pacing, so it holds for every packet and needs no bursts.
//! A receiver's request is only advisory; flow control windows protect a receiver that must not be
//! flooded.

use std::sync::{Arc, Mutex, PoisonError};

use wraith_transport::Connection;

/// The rate limit of one transfer; may change while it runs.
#[derive(Debug, Default)]
pub struct Rate(Mutex<RateState>);

#[derive(Debug)]
struct RateState {
    own: u64,
    asked: u64,
    /// The connections that share the limit.
    connections: Vec<Connection>,
}

impl Default for RateState {
    fn default() -> Self {
        Self { own: u64::MAX, asked: u64::MAX, connections: Vec::new() }
    }
}

impl Rate {
    /// Creates a limit in bytes per second; `None` means no limit.
    pub(crate) fn of(bytes_per_second: Option<u64>) -> Arc<Self> {
        let rate = Self::default();
        rate.limit(bytes_per_second);
        Arc::new(rate)
    }

    /// Sets this side's limit in bytes per second; `None` removes it.
    pub fn limit(&self, bytes_per_second: Option<u64>) {
        self.change(|state| state.own = bytes_per_second.unwrap_or(u64::MAX));
    }

    /// Sets the limit requested by the receiver.
    pub(crate) fn ask(&self, bytes_per_second: Option<u64>) {
        self.change(|state| state.asked = bytes_per_second.unwrap_or(u64::MAX));
    }

    /// Also limits this connection: all connections share the rate evenly.
    pub(crate) fn apply_to(&self, connection: &Connection) {
        self.change(|state| state.connections.push(connection.clone()));
    }

    /// Drops the connections, which would otherwise stay alive.
    pub(crate) fn release(&self) {
        self.change(|state| state.connections.clear());
    }

    /// Returns the limit in bytes per second; `None` if there is none.
    pub(crate) fn cap(&self) -> Option<u64> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(state.own.min(state.asked)).filter(|cap| *cap != u64::MAX)
    }

    /// Returns true if there is a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.cap().is_some()
    }

    fn change(&self, change: impl FnOnce(&mut RateState)) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.own.min(state.asked);
        change(&mut state);
        let now = state.own.min(state.asked);
        if (now, before) != (u64::MAX, u64::MAX) {
            let sharing = state.connections.len().max(1) as u64;
            let share = if now == u64::MAX { now } else { now / sharing };
            state.connections.iter().for_each(|connection| connection.set_rate_limit(share));
        }
    }
}
