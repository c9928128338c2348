//! How fast a sender may send: what its own user allows, and what the receiver asks for; the lower of both.
//!
//! The cap is in the pacing of the connection, so it holds for every packet and needs no bursts. A receiver only asks: one that
//! must not be flooded has its windows.

use std::sync::{Arc, Mutex, PoisonError};

use wraith_transport::Connection;

/// The cap of one transfer; may change while it runs.
#[derive(Debug, Default)]
pub struct Rate(Mutex<State>);

#[derive(Debug)]
struct State {
    own: u64,
    asked: u64,
    /// Those that share it.
    connections: Vec<Connection>,
}

impl Default for State {
    fn default() -> Self {
        Self { own: u64::MAX, asked: u64::MAX, connections: Vec::new() }
    }
}

impl Rate {
    /// With this cap, in bytes per second; None: without.
    pub(crate) fn of(bytes_per_second: Option<u64>) -> Arc<Self> {
        let rate = Self::default();
        rate.limit(bytes_per_second);
        Arc::new(rate)
    }

    /// What this side allows, in bytes per second; None: no cap.
    pub fn limit(&self, bytes_per_second: Option<u64>) {
        self.change(|state| state.own = bytes_per_second.unwrap_or(u64::MAX));
    }

    /// What the receiver asks for.
    pub(crate) fn ask(&self, bytes_per_second: Option<u64>) {
        self.change(|state| state.asked = bytes_per_second.unwrap_or(u64::MAX));
    }

    /// Caps this connection too: all share the rate evenly.
    pub(crate) fn apply_to(&self, connection: &Connection) {
        self.change(|state| state.connections.push(connection.clone()));
    }

    /// Lets go of the connections, which live as long as somebody holds them.
    pub(crate) fn release(&self) {
        self.change(|state| state.connections.clear());
    }

    /// The cap in bytes per second; None if there is none.
    pub(crate) fn cap(&self) -> Option<u64> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(state.own.min(state.asked)).filter(|cap| *cap != u64::MAX)
    }

    /// True if there is a cap.
    pub(crate) fn is_limited(&self) -> bool {
        self.cap().is_some()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
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
