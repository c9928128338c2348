//! The timer of blocked frames (SPEC §6). While a limit of the peer blocks this side and no
//! ack-eliciting packet is in flight, this side repeats the announcement of the limit with
//! back-off.
//!
//! Invariant, checked by the simulator: a connection with something to send always has a running
//! timer. The running timer is the probe timeout of packets in flight, the pacer, or the timer of
//! blocked frames. So no connection becomes idle because both sides wait for each other.

use std::time::Duration;

use super::{Connection, ConnectionState};
use crate::Time;

/// Minimum number of announcements per idle timeout, so that packet loss does not end the
/// connection.
const PER_IDLE_TIMEOUT: u32 = 4;

/// The time of the next announcement, and its back-off.
#[derive(Debug, Default)]
pub(super) struct Blocked {
    at: Option<Time>,
    interval: Duration,
}

impl Connection {
    /// Starts the timer if nothing is left to send at `now` because of a limit of the peer. Stops
    /// it otherwise.
    pub(super) fn update_blocked_timer(&mut self, now: Time) {
        if !self.streams.is_blocked() {
            self.blocked = Blocked::default();
        } else if self.recovery.has_eliciting() {
            self.blocked.at = None;
        } else if self.blocked.at.is_none() {
            self.blocked.at = Some(now + self.blocked.interval.max(self.recovery.pto()));
        }
    }

    /// Returns the time of the next announcement.
    pub(super) fn blocked_at(&self) -> Option<Time> {
        self.blocked.at
    }

    pub(super) fn handle_blocked_timeout(&mut self, now: Time) {
        if self.blocked.at.is_some_and(|at| at <= now) {
            let doubled = self.blocked.interval.max(self.recovery.pto()) * 2;
            self.blocked.interval = doubled.min(self.idle_timeout / PER_IDLE_TIMEOUT);
            self.blocked.at = None;
            self.streams.announce_blocked();
        }
    }

    /// Returns false if data, streams or announcements wait to be sent and no timer will ever send
    /// them. That must not happen; the simulator checks it after every step.
    pub fn is_live(&self) -> bool {
        let wants = self.streams.has_pending() || self.streams.is_blocked();
        let established = matches!(self.state, ConnectionState::Established);
        !established || !wants || self.has_timer()
    }

    fn has_timer(&self) -> bool {
        self.recovery.timeout().or(self.pace_at).or(self.blocked.at).is_some()
    }
}
