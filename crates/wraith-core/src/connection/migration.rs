//! Connection migration (SPEC §8).
//!
//! | trigger | address challenged | the path changes |
//! |---|---|---|
//! | the peer sends from another address | the new address; after the change also the old one | when the peer has sent a non-probing packet from there and answered the challenge |
//! | the application calls [`Connection::migrate_to`] | the requested address | when the peer answers there |
//! | two probe timeouts in a row | the address used before the current one | when the peer answers there and the current path is still silent |
//!
//! A probing packet has only PATH_CHALLENGE, PATH_RESPONSE and PADDING frames.
//!
//! Invariants:
//!
//! - Except for challenges and their responses, an established connection sends only to a validated
//!   address. The handshake validates the first address, an answered challenge each later one.
//! - Packets that arrive out of order never change the path. After a move that this side made,
//!   packets from the address that it left do not undo the move. This protection ends when the peer
//!   follows the move, or after [`SETTLE_PTOS`] probe timeouts.

use tracing::debug;

use super::paths::Cause;
use super::timers::SILENT_PTOS;
use super::{Connection, ConnectionState};
use crate::event::Event;
use crate::frame::{Frame, Frames};
use crate::path::Candidate;
use crate::qlog;
use crate::streams::Role;
use crate::{PathAddr, Time};

/// Number of probe timeouts (PTO) for which a move of this side is kept although the peer has not
/// followed it. The peer's answer needs one.
const SETTLE_PTOS: u32 = 3;

/// Returns true for a probing packet (RFC 9000 §9.1), which never causes a path change.
pub(super) fn is_probing(payload: &[u8]) -> bool {
    Frames::new(payload).all(|frame| {
        matches!(frame, Ok(Frame::PathChallenge(_) | Frame::PathResponse(_) | Frame::Padding))
    })
}

impl Connection {
    /// Moves to `to` once the peer answers there; [`Event::PathChanged`] or
    /// [`Event::MigrationFailed`] follows. Until then, packets use the current path. `to` gets up
    /// to eleven datagrams of at most 1200 bytes, so it must be an address known to be the peer's. A
    /// pending move to another address fails. A move requested before the peer is known to have H3
    /// begins then.
    ///
    /// Returns false, without an event, if the connection already uses `to` or is not established.
    pub fn migrate_to(&mut self, now: Time, to: impl Into<PathAddr>) -> bool {
        let to = to.into();
        if !matches!(self.state, ConnectionState::Established) || to == self.paths.remote() {
            return false;
        }
        let has_h3 = self.confirming.is_none();
        let failed = self.paths.request_move(now, to, has_h3, &mut self.rng);
        self.report_failed_move(failed);
        true
    }

    /// Begins the pending move, now that the peer has H3.
    pub(super) fn begin_early_move(&mut self, now: Time) {
        if let Some(to) = self.paths.take_pending_move()
            && !self.migrate_to(now, to)
        {
            let there = to == self.paths.remote();
            self.events.push_back(match there {
                true => Event::PathChanged { remote: to },
                false => Event::MigrationFailed { remote: to },
            });
        }
    }

    fn report_failed_move(&mut self, to: Option<PathAddr>) {
        if let Some(remote) = to {
            debug!(parent: &self.span, %remote, "migration failed");
            self.events.push_back(Event::MigrationFailed { remote });
        }
    }

    pub(super) fn handle_paths_timeout(&mut self, now: Time) {
        let given_up = self.paths.handle_timeout(now);
        if given_up.candidate.is_some() {
            debug!(parent: &self.span, "path validation failed");
        }
        self.report_failed_move(given_up.requested);
    }

    /// Handles a packet from `from` in a datagram of `bytes` bytes, with a response of `owed` bytes
    /// pending. The packet has the highest number so far or is a probing packet.
    pub(super) fn on_path_activity(
        &mut self,
        now: Time,
        from: PathAddr,
        probes: bool,
        [bytes, owed]: [usize; 2],
    ) {
        let is_initiator = self.role == Role::Initiator;
        let Some(moves) = self.paths.on_packet(now, from, probes, is_initiator) else { return };
        if self.paths.begin_validation(now, from, moves, &mut self.rng) {
            debug!(parent: &self.span, %from, "packet from a new address");
        }
        if let Some(candidate) = self.paths.on_candidate_packet(moves, [bytes, owed]) {
            self.change_path(now, &candidate, Cause::PeerMoved);
        }
    }

    pub(super) fn on_path_response(&mut self, now: Time, data: [u8; 8]) {
        let is_silent = self.recovery.pto_count() >= SILENT_PTOS;
        if let Some((to, cause)) = self.paths.on_response(now, data, is_silent) {
            self.change_path(now, &to, cause);
        }
    }

    fn change_path(&mut self, now: Time, to: &Candidate, cause: Cause) {
        let left = self.paths.switch(now, to, cause, &mut self.rng);
        let (remote, mtu) = (to.remote, self.paths.current().mtud.current());
        if cause != Cause::PathDead && to.is_planned {
            self.recovery.leave_path(now, mtu);
        } else {
            self.recovery.reset_path(now, mtu);
        }
        self.recovery.assume_rtt(now, to.round_trip(now));
        if cause != Cause::PeerMoved {
            self.paths.keep_move(left, now + self.recovery.pto() * SETTLE_PTOS);
        }
        // The probe shows the peer that this side uses the new path. Unless the old path still
        // works, packets in flight there are likely lost; the probe elicits an ACK about them at
        // once.
        self.probes = self.probes.max(1);
        self.observed_due = true;
        debug!(parent: &self.span, %remote, "path changed");
        if let Some(qlog) = &mut self.qlog {
            qlog.record(now, &qlog::Event::PathChanged { remote });
            qlog.update(now, &self.recovery);
        }
        self.events.push_back(Event::PathChanged { remote });
    }
}
