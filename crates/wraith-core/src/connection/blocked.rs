//! While a limit of the peer keeps us back and nothing else is in flight, we say so again and again (SPEC §6).
//!
//! Invariant, which the simulator checks: who wants to send has a timer running. Either something is in flight, and the probe
//! timeout watches it, or it waits for the pacer, or for this timer. So no connection ends for idleness because two sides wait
//! for each other.

use std::time::Duration;

use super::{Connection, State};
use crate::Time;

/// Said at least so often in an idle timeout, so that loss does not end the connection.
const PER_IDLE_TIMEOUT: u32 = 4;

/// When to say next that we are blocked.
#[derive(Debug, Default)]
pub(super) struct Blocked {
    at: Option<Time>,
    interval: Duration,
}

impl Connection {
    /// Nothing is left to send at `now`: starts the timer if that is the peer's doing, and stops it if not.
    pub(super) fn update_blocked_timer(&mut self, now: Time) {
        if !self.streams.is_blocked() {
            self.blocked = Blocked::default();
        } else if self.recovery.has_eliciting() {
            self.blocked.at = None;
        } else if self.blocked.at.is_none() {
            self.blocked.at = Some(now + self.blocked.interval.max(self.recovery.pto()));
        }
    }

    /// When we say that we are blocked.
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

    /// False if the application's bytes or streams, or what the peer waits for, wait here and no timer of ours will ever move
    /// them. That must not happen; the simulator asks after every step.
    pub fn is_live(&self) -> bool {
        let wants = self.streams.has_pending() || self.streams.is_blocked();
        let established = matches!(self.state, State::Established);
        !established || !wants || self.has_timer()
    }

    fn has_timer(&self) -> bool {
        self.recovery.timeout().or(self.pace_at).or(self.blocked.at).is_some()
    }
}
