//! Timers of a connection: idle timeout, keep-alive, loss and probe timers, key phases, candidates
//! and retransmissions.

use super::{Connection, ConnectionState};
use crate::recovery::TimeoutOutcome;
use crate::streams::Role;
use crate::{CloseReason, Time};

/// Packets sent per probe timeout (RFC 9002 §6.2.4).
const PROBES: u8 = 2;
/// Consecutive probe timeouts after which a path may be dead.
pub(super) const SILENT_PTOS: u32 = 2;

impl Connection {
    /// Returns the time at which [`Self::handle_timeout`] must be called at the latest.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        match &self.state {
            ConnectionState::Handshake(handshake) => Some(handshake.next.min(handshake.deadline)),
            ConnectionState::Established => Some(self.established_timeout()),
            ConnectionState::Closing { until, .. } | ConnectionState::Draining { until, .. } => {
                Some(*until)
            }
            ConnectionState::Drained => None,
        }
    }

    fn established_timeout(&self) -> Time {
        let keep_alive = self.config.keep_alive.then(|| self.keep_alive_at());
        let forget = self.sealed.as_ref().and_then(|s| s.forget_at);
        let confirm = self.confirming.as_ref().map(|c| c.next);
        [
            keep_alive,
            forget,
            confirm,
            self.paths.timeout(),
            self.recovery.timeout(),
            self.acks.timeout(),
            self.pace_at,
            self.blocked_at(),
        ]
        .into_iter()
        .flatten()
        .fold(self.idle_deadline(), Time::min)
    }

    /// Handles all timers due by `now`.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        match &self.state {
            ConnectionState::Handshake(handshake) => {
                if handshake.deadline <= now {
                    self.close_silently(now, CloseReason::HandshakeTimeout);
                }
            }
            ConnectionState::Established => self.handle_established_timeout(now),
            ConnectionState::Closing { until, .. } | ConnectionState::Draining { until, .. } => {
                if *until <= now {
                    self.state = ConnectionState::Drained;
                }
            }
            ConnectionState::Drained => {}
        }
    }

    fn handle_established_timeout(&mut self, now: Time) {
        if self.idle_deadline() <= now {
            self.close_silently(now, CloseReason::IdleTimeout);
            return;
        }
        if self.config.keep_alive && self.keep_alive_at() <= now {
            self.ping = true;
            self.kept_alive_at = Some(now);
        }
        if let Some(sealed) = &mut self.sealed
            && sealed.forget_at.is_some_and(|at| at <= now)
        {
            sealed.opener.forget_previous_phase();
            sealed.forget_at = None;
        }
        self.handle_paths_timeout(now);
        if self.pace_at.is_some_and(|at| at <= now) {
            self.pace_at = None;
        }
        self.handle_blocked_timeout(now);
        if self.recovery.timeout().is_some_and(|at| at <= now) {
            self.handle_recovery_timeout(now);
        }
    }

    fn handle_recovery_timeout(&mut self, now: Time) {
        let mut settled = std::mem::take(&mut self.settled);
        let outcome = self.recovery.on_timeout(now, &mut settled);
        self.settle(now, &mut settled);
        self.settled = settled;
        if outcome != TimeoutOutcome::Probe {
            return;
        }
        self.probes = PROBES;
        if self.recovery.pto_count() >= SILENT_PTOS {
            self.paths.challenge_previous(now, &mut self.rng);
        }
        // A probe carries the oldest data: a bare PING would cost one more round trip.
        let oldest = self.recovery.oldest_unacked().cloned();
        for frame in oldest.iter().flatten() {
            self.on_frame_lost(frame);
        }
    }

    /// Restarts the idle timer, on an authentic packet or on the first ack-eliciting packet sent
    /// after one.
    pub(super) fn restart_idle_timer(&mut self, now: Time) {
        self.idle_since = now;
        self.kept_alive_at = None;
    }

    fn idle_deadline(&self) -> Time {
        self.idle_since + self.idle_timeout.max(self.recovery.pto() * 3)
    }

    /// Returns the time of the next keep-alive PING. The initiator sends it a little earlier than
    /// the responder, so that one PING serves both.
    fn keep_alive_at(&self) -> Time {
        match self.kept_alive_at {
            Some(last) => last + self.idle_timeout / 3,
            None if self.role == Role::Initiator => self.idle_since + self.idle_timeout / 3,
            None => self.idle_since + self.idle_timeout / 2,
        }
    }
}
