//! A suspension of the host. It can come between any two calls, also while no timer is armed.
//!
//! Invariant: after a suspension, the timers come before anything that would restart them.

use std::time::Duration;

use super::Endpoint;
use crate::Time;
use crate::connection::Connection;

/// Time without a call, and delay of a timer, from which on the host is taken for suspended.
const SUSPENDED_AFTER: Duration = Duration::from_secs(1);

impl Endpoint {
    /// Handles the timers first if the host was suspended since the latest call. Datagrams that
    /// waited in the socket, and packets that wait to be sent, must not revive a connection that is
    /// over, nor make its round-trip time an hour.
    pub(super) fn advance(&mut self, now: Time) {
        if now >= self.latest + SUSPENDED_AFTER {
            self.handle_suspension(now);
        }
        self.latest = self.latest.max(now);
    }

    #[cold]
    fn handle_suspension(&mut self, now: Time) {
        // The host may have been suspended before the latest timers were armed. A drained
        // connection stays until its last event was polled.
        for i in 0..self.dirty.timers.len() {
            let handle = self.dirty.timers[i];
            let connection = self.connections.get(handle).filter(|c| !c.is_drained());
            if let Some(next) = connection.map(Connection::poll_timeout) {
                self.arm(handle, next);
            }
        }
        if self.timers.first().is_some_and(|(due, _)| now >= *due + SUSPENDED_AFTER) {
            self.handle_timeout(now);
        }
    }
}
