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

use rand_core::Rng;
use tracing::debug;

use super::timers::SILENT_PTOS;
use super::{Connection, ConnectionState};
use crate::event::Event;
use crate::frame::{Frame, Frames};
use crate::path::{Answer, Candidate};
use crate::qlog;
use crate::streams::Role;
use crate::{PathAddr, Time};

/// How often the address used before the current one is challenged while the current path is
/// silent. This covers an outage of many probe timeouts, and costs little if a third party has that
/// address now.
const PREVIOUS_PATH_CHALLENGES_MAX: u8 = 8;
/// Number of probe timeouts (PTO) for which a move of this side is kept although the peer has not
/// followed it. The peer's answer needs one.
const SETTLE_PTOS: u32 = 3;

/// A move that this side made and the peer has not followed yet.
#[derive(Debug)]
pub(super) struct UnfollowedMove {
    left: PathAddr,
    until: Time,
}

/// The reason for a path change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The peer sends from there.
    PeerMoved,
    /// The application requested it.
    Requested,
    /// The current path is silent.
    PathDead,
}

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
        if !matches!(self.state, ConnectionState::Established) || to == self.path.remote {
            return false;
        }
        if self.confirming.is_some() {
            if self.pending_migration != Some(to) {
                self.fail_move();
            }
            self.pending_migration = Some(to);
            return true;
        }
        if self.chosen.as_ref().is_some_and(|chosen| chosen.remote == to) {
            return true;
        }
        self.fail_move();
        let chosen = Candidate::chosen(now, to, self.draw_challenges());
        self.chosen = Some(chosen.with_full_len(self.path.challenge_len()));
        true
    }

    /// Begins the pending move, now that the peer has H3.
    pub(super) fn begin_early_move(&mut self, now: Time) {
        if let Some(to) = self.pending_migration.take()
            && !self.migrate_to(now, to)
        {
            let there = to == self.path.remote;
            self.events.push_back(match there {
                true => Event::PathChanged { remote: to },
                false => Event::MigrationFailed { remote: to },
            });
        }
    }

    fn fail_move(&mut self) {
        let chosen = self.chosen.take().map(|chosen| chosen.remote);
        for remote in chosen.into_iter().chain(self.pending_migration.take()) {
            debug!(parent: &self.span, %remote, "migration failed");
            self.events.push_back(Event::MigrationFailed { remote });
        }
    }

    pub(super) fn handle_chosen_timeout(&mut self, now: Time) {
        if self.chosen.as_ref().is_some_and(|chosen| chosen.is_given_up(now)) {
            self.fail_move();
        }
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
        if from == self.path.remote {
            // The peer has followed this side's move.
            self.unfollowed_move.take_if(|_| !probes);
        } else if self.chosen.as_ref().is_none_or(|chosen| chosen.remote != from) {
            let moves = !probes && !self.stays(now, from);
            self.on_new_address(now, from, moves, [bytes, owed]);
        }
    }

    /// Returns true if packets from `from` must not change the path, because this side has just
    /// moved. If both sides move to different addresses at the same time, the initiator's move is
    /// kept. Otherwise the two sides would follow each other without end.
    fn stays(&mut self, now: Time, from: PathAddr) -> bool {
        self.unfollowed_move.take_if(|unfollowed_move| unfollowed_move.until <= now);
        let initiator = self.role == Role::Initiator;
        self.unfollowed_move
            .as_ref()
            .is_some_and(|unfollowed_move| initiator || unfollowed_move.left == from)
    }

    /// Handles a packet from an address other than the peer's current one.
    fn on_new_address(
        &mut self,
        now: Time,
        from: PathAddr,
        moves: bool,
        [bytes, owed]: [usize; 2],
    ) {
        if self.candidate.as_ref().is_none_or(|c| c.remote != from) {
            let challenges = self.draw_challenges();
            let was_in_use = self.previous_path.is_some_and(|(address, _)| address == from);
            let make = if was_in_use { Candidate::back } else { Candidate::new };
            let mut candidate =
                make(now, from, challenges).with_full_len(self.path.challenge_len());
            candidate.is_planned = !moves;
            self.candidate = Some(candidate);
            debug!(parent: &self.span, %from, "packet from a new address");
        }
        if let Some(candidate) = &mut self.candidate {
            candidate.on_received(bytes, owed);
            candidate.is_used |= moves;
        }
        self.follow(now);
    }

    /// Moves to the candidate's address if its path is validated and in use.
    fn follow(&mut self, now: Time) {
        if let Some(candidate) = self.candidate.take_if(|candidate| candidate.is_ready()) {
            self.change_path(now, &candidate, Cause::PeerMoved);
        }
    }

    /// Challenges the address used before the current one, because the current path is silent. The
    /// peer may still be at the earlier address: an attacker may have relayed its packets,
    /// unnoticed by either side.
    pub(super) fn challenge_previous_path(&mut self, now: Time) {
        if self.left.is_none()
            && let Some((address, times)) = self.previous_path.take_if(|(_, times)| *times > 0)
        {
            self.previous_path = Some((address, times - 1));
            self.left = Some(Candidate::left(now, address, self.draw_challenges()));
        }
    }

    fn draw_challenges(&mut self) -> [[u8; 8]; 2] {
        let mut challenges = [[0; 8]; 2];
        self.rng.fill_bytes(challenges.as_flattened_mut());
        challenges
    }

    pub(super) fn on_path_response(&mut self, now: Time, data: [u8; 8]) {
        // The old address is alive. If the current path is silent, move back. Otherwise the peer
        // decides, by sending from there.
        if let Some(left) = self.left.take_if(|left| left.on_response(now, data).is_some()) {
            if self.recovery.pto_count() >= SILENT_PTOS {
                self.change_path(now, &left, Cause::PathDead);
            }
            return;
        }
        let carries = |c: &mut Candidate| c.on_response(now, data) == Some(Answer::Carries);
        if let Some(chosen) = self.chosen.take_if(carries) {
            self.change_path(now, &chosen, Cause::Requested);
            return;
        }
        if let Some(candidate) = &mut self.candidate
            && carries(candidate)
        {
            candidate.on_carries(now);
            self.follow(now);
        }
    }

    fn change_path(&mut self, now: Time, to: &Candidate, cause: Cause) {
        let remote = to.remote;
        let left = std::mem::replace(&mut self.path.remote, remote);
        // An attacker may have relayed the peer's packets in order to move the path. A peer that
        // has not moved answers the challenge from its old address, and the connection follows it
        // (RFC 9000 §9.3.3).
        self.left =
            (cause == Cause::PeerMoved).then(|| Candidate::left(now, left, self.draw_challenges()));
        self.previous_path = Some((left, PREVIOUS_PATH_CHALLENGES_MAX));
        for candidate in [&mut self.candidate, &mut self.chosen] {
            candidate.take_if(|candidate| candidate.remote == remote);
        }
        self.path.mtud.restart(to.full_len() as u16);
        if cause != Cause::PathDead && to.is_planned {
            self.recovery.leave_path(now, self.path.mtud.current());
        } else {
            self.recovery.reset_path(now, self.path.mtud.current());
        }
        self.recovery.assume_rtt(now, to.round_trip(now));
        let until = now + self.recovery.pto() * SETTLE_PTOS;
        self.unfollowed_move =
            (cause != Cause::PeerMoved).then_some(UnfollowedMove { left, until });
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
