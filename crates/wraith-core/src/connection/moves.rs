//! How a connection changes its path (SPEC §8): it follows its peer, moves of its own accord, and goes back when a path dies.
//!
//! | what | asked first | who decides |
//! |---|---|---|
//! | the peer is heard from elsewhere | the new address, and the old one after | the peer, by packets that do more than probe |
//! | [`Connection::move_to`] | the new address | we do |
//! | two probe timeouts in a row | the address left last | we do, when it answers |
//!
//! Invariant: packets go only where a response has come from, and nothing that is still on its way over the path just left
//! undoes a move of our own.

use rand_core::Rng;
use tracing::debug;

use super::timers::SILENT_PTOS;
use super::{Connection, State};
use crate::event::Event;
use crate::frame::{Frame, Frames};
use crate::path::{Answer, Candidate};
use crate::qlog;
use crate::streams::Role;
use crate::{PathAddr, Time};

/// Times the address left last is asked again while the path in use is silent: enough for an outage of many probe timeouts,
/// and little for whoever has that address now.
const RETREATS_MAX: u8 = 8;
/// Probe timeouts for which a move of our own stands although the peer is not heard on the new path. Its answer takes one.
const SETTLE_PTOS: u32 = 3;

/// A move of our own that the peer has not followed yet.
#[derive(Debug)]
pub(super) struct Settling {
    left: PathAddr,
    until: Time,
}

/// Why a path is changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The peer is heard there.
    Followed,
    /// The application wants it.
    Chosen,
    /// The path in use is silent.
    Dead,
}

/// Whether a packet only asks about paths and answers (RFC 9000 §9.1): such a one moves nobody.
pub(super) fn is_probing(payload: &[u8]) -> bool {
    Frames::new(payload).all(|frame| {
        matches!(frame, Ok(Frame::PathChallenge(_) | Frame::PathResponse(_) | Frame::Padding))
    })
}

impl Connection {
    /// Moves to `to`, if the peer answers there: [`Event::PathChanged`] or [`Event::MoveFailed`] tells. Until then packets go where
    /// they went; `to` gets at most eleven datagrams of 1200 bytes, so it is for addresses that are known to be the peer's. A move
    /// under way to elsewhere fails. One that is asked for before the peer is known to have H3 begins then.
    ///
    /// False, and no event comes, if there is nothing to do: the connection is there already, or is not established.
    pub fn move_to(&mut self, now: Time, to: impl Into<PathAddr>) -> bool {
        let to = to.into();
        if !matches!(self.state, State::Established) || to == self.path.remote {
            return false;
        }
        if self.confirming.is_some() {
            if self.early_move != Some(to) {
                self.fail_move();
            }
            self.early_move = Some(to);
            return true;
        }
        if self.chosen.as_ref().is_some_and(|chosen| chosen.remote == to) {
            return true;
        }
        self.fail_move();
        self.chosen = Some(Candidate::chosen(now, to, self.draw_challenges()));
        true
    }

    /// The peer has H3: a move that waited for that begins.
    pub(super) fn begin_early_move(&mut self, now: Time) {
        if let Some(to) = self.early_move.take()
            && !self.move_to(now, to)
        {
            let there = to == self.path.remote;
            self.events.push_back(match there {
                true => Event::PathChanged { remote: to },
                false => Event::MoveFailed { remote: to },
            });
        }
    }

    fn fail_move(&mut self) {
        let chosen = self.chosen.take().map(|chosen| chosen.remote);
        for remote in chosen.into_iter().chain(self.early_move.take()) {
            debug!(parent: &self.span, %remote, "no move there");
            self.events.push_back(Event::MoveFailed { remote });
        }
    }

    pub(super) fn handle_chosen_timeout(&mut self, now: Time) {
        if self.chosen.as_ref().is_some_and(|chosen| chosen.is_given_up(now)) {
            self.fail_move();
        }
    }

    /// The newest packet, or one that only probes, came from `from`, in a datagram of `bytes` bytes; it asked for a response of `owed`.
    pub(super) fn on_heard(
        &mut self,
        now: Time,
        from: PathAddr,
        probes: bool,
        [bytes, owed]: [usize; 2],
    ) {
        if from == self.path.remote {
            // It has followed us.
            self.settling.take_if(|_| !probes);
        } else if self.chosen.as_ref().is_none_or(|chosen| chosen.remote != from) {
            let moves = !probes && !self.stays(now, from);
            self.on_new_address(now, from, moves, [bytes, owed]);
        }
    }

    /// Whether what comes from `from` is no reason to go there, because we have just moved ourselves. Where both sides moved at the
    /// same time, each to elsewhere, the move of the initiator stands, or they would follow each other for ever.
    fn stays(&mut self, now: Time, from: PathAddr) -> bool {
        self.settling.take_if(|settling| settling.until <= now);
        let initiator = self.role == Role::Initiator;
        self.settling.as_ref().is_some_and(|settling| initiator || settling.left == from)
    }

    /// The peer is heard from elsewhere than where it is.
    fn on_new_address(
        &mut self,
        now: Time,
        from: PathAddr,
        moves: bool,
        [bytes, owed]: [usize; 2],
    ) {
        if self.candidate.as_ref().is_none_or(|c| c.remote != from) {
            let challenges = self.draw_challenges();
            let was_in_use = self.retreat.is_some_and(|(address, _)| address == from);
            let make = if was_in_use { Candidate::back } else { Candidate::new };
            let mut candidate = make(now, from, challenges);
            candidate.is_planned = !moves;
            self.candidate = Some(candidate);
            debug!(parent: &self.span, %from, "the peer is heard from another address");
        }
        if let Some(candidate) = &mut self.candidate {
            candidate.on_received(bytes, owed);
            candidate.is_used |= moves;
        }
        self.follow(now);
    }

    /// Goes where the peer is heard, if that is known to be a path.
    fn follow(&mut self, now: Time) {
        if let Some(candidate) = self.candidate.take_if(|candidate| candidate.is_ready()) {
            self.change_path(now, &candidate, Cause::Followed);
        }
    }

    /// Nothing comes back on the path in use: the peer may be where it was before, and know as little as we do that the
    /// way between was not its own.
    pub(super) fn ask_where_it_was(&mut self, now: Time) {
        if self.left.is_none()
            && let Some((address, times)) = self.retreat.take_if(|(_, times)| *times > 0)
        {
            self.retreat = Some((address, times - 1));
            self.left = Some(Candidate::left(now, address, self.draw_challenges()));
        }
    }

    fn draw_challenges(&mut self) -> [[u8; 8]; 2] {
        let mut challenges = [[0; 8]; 2];
        self.rng.fill_bytes(challenges.as_flattened_mut());
        challenges
    }

    pub(super) fn on_path_response(&mut self, now: Time, data: [u8; 8]) {
        // Where we have come from is alive. If the path in use is not, that is where to go. Else the peer decides: we go back if
        // what it sends comes from there.
        if let Some(left) = self.left.take_if(|left| left.on_response(now, data).is_some()) {
            if self.recovery.pto_count() >= SILENT_PTOS {
                self.change_path(now, &left, Cause::Dead);
            }
            return;
        }
        let carries = |c: &mut Candidate| c.on_response(now, data) == Some(Answer::Carries);
        if let Some(chosen) = self.chosen.take_if(carries) {
            self.change_path(now, &chosen, Cause::Chosen);
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
        // Somebody may have carried packets of ours there and back to take them over: the peer that has not moved
        // answers from where it is, and is followed (RFC 9000 §9.3.3).
        self.left =
            (cause == Cause::Followed).then(|| Candidate::left(now, left, self.draw_challenges()));
        self.retreat = Some((left, RETREATS_MAX));
        for candidate in [&mut self.candidate, &mut self.chosen] {
            candidate.take_if(|candidate| candidate.remote == remote);
        }
        self.path.mtud.restart();
        if cause != Cause::Dead && to.is_planned {
            self.recovery.leave_path(now, self.path.mtud.current());
        } else {
            self.recovery.reset_path(now, self.path.mtud.current());
        }
        self.recovery.assume_rtt(now, to.round_trip(now));
        let until = now + self.recovery.pto() * SETTLE_PTOS;
        self.settling = (cause != Cause::Followed).then_some(Settling { left, until });
        // It tells the peer that we are here. And unless the old path still works, what was in flight there is likely lost: the
        // probe asks about it at once.
        self.probes = self.probes.max(1);
        self.observed_due = true;
        debug!(parent: &self.span, %remote, "the path has changed");
        if let Some(qlog) = &mut self.qlog {
            qlog.record(now, &qlog::Event::PathChanged { remote });
            qlog.update(now, &self.recovery);
        }
        self.events.push_back(Event::PathChanged { remote });
    }
}
