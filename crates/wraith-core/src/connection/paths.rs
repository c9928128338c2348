//! The addresses of one connection: which of them is in use, and which are under validation (SPEC
//! §8). This type decides; [`migration`](super::migration) applies its decisions to congestion
//! control, events and logs.
//!
//! | address | validated by | gets |
//! |---|---|---|
//! | current | the handshake or an answered challenge | every packet |
//! | candidate: the peer sends from there | an answered challenge | challenges, within the amplification limit |
//! | chosen: this side wants to move there | an answered challenge | challenges of full size |
//! | left: the address used before | an earlier challenge | the smallest challenges |
//!
//! Invariants:
//!
//! - The current address changes in [`Paths::switch`] only.
//! - No address is a candidate while it is current or chosen.
//! - At most one requested move exists: it is pending, or its address is being challenged.
//! - At most [`RESPONSES_MAX`] responses wait.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use rand_core::Rng;

use crate::mtud::MtuDiscovery;
use crate::path::{Answer, Candidate, Path, Response};
use crate::{PathAddr, Time};

/// How often the address used before the current one is challenged while the current path is
/// silent. This covers an outage of many probe timeouts, and costs little if a third party has that
/// address now.
const PREVIOUS_PATH_CHALLENGES_MAX: u8 = 8;
/// Maximum number of pending PATH_RESPONSE frames. Further challenges are ignored until one was
/// sent.
const RESPONSES_MAX: usize = 4;

/// The reason for a path change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The peer sends from there.
    PeerMoved,
    /// The application requested it.
    Requested,
    /// The current path is silent.
    PathDead,
}

/// A move that this side made and the peer has not followed yet.
#[derive(Debug)]
struct UnfollowedMove {
    left: PathAddr,
    until: Time,
}

/// Addresses that did not answer their challenges in time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GivenUp {
    /// The peer sent from there.
    pub(super) candidate: Option<PathAddr>,
    /// The application requested it.
    pub(super) requested: Option<PathAddr>,
}

/// The addresses of a connection (see the module documentation).
#[derive(Debug)]
pub(super) struct Paths {
    current: Path,
    candidate: Option<Candidate>,
    /// The address that the connection left to follow the peer, while it is being challenged.
    left: Option<Candidate>,
    /// The address used before the current one, and how many more times it may be challenged when
    /// the current path falls silent.
    previous: Option<(PathAddr, u8)>,
    /// The address that this side wants to move to.
    chosen: Option<Candidate>,
    /// Move that the application requested, pending until the peer has H3. Before that, the peer
    /// would drop path challenges.
    pending: Option<PathAddr>,
    unfollowed: Option<UnfollowedMove>,
    /// The last PATH_CHALLENGE of the current packet.
    challenged: Option<[u8; 8]>,
    responses: VecDeque<Response>,
}

impl Paths {
    pub(super) fn new(current: Path) -> Self {
        Self {
            current,
            candidate: None,
            left: None,
            previous: None,
            chosen: None,
            pending: None,
            unfollowed: None,
            challenged: None,
            responses: VecDeque::new(),
        }
    }

    /// Returns the path in use.
    #[inline]
    pub(super) fn current(&self) -> &Path {
        &self.current
    }

    /// Returns the peer's current address.
    #[inline]
    pub(super) fn remote(&self) -> PathAddr {
        self.current.remote
    }

    /// Returns the MTU discovery of the path in use.
    #[inline]
    pub(super) fn mtud(&mut self) -> &mut MtuDiscovery {
        &mut self.current.mtud
    }

    /// Returns true if the peer has proven that it receives at `address`.
    pub(super) fn is_validated(&self, address: PathAddr) -> bool {
        let receives = |c: &Candidate| c.remote == address && c.receives();
        self.remote() == address
            || [&self.candidate, &self.chosen].into_iter().flatten().any(receives)
    }

    /// Records a challenge of the current packet. The last one of a packet is answered.
    pub(super) fn on_challenge(&mut self, data: [u8; 8]) {
        self.challenged = Some(data);
    }

    /// Forgets the challenge of a packet that is not acknowledged: the peer sends it again.
    pub(super) fn forget_challenge(&mut self) {
        self.challenged = None;
    }

    /// Queues the response to the challenge in an accepted datagram of `bytes` bytes from `from`.
    /// Returns the length of the response, or 0.
    #[inline]
    pub(super) fn queue_response(&mut self, from: PathAddr, bytes: usize) -> usize {
        let Some(data) = self.challenged.take() else { return 0 };
        if self.responses.len() >= RESPONSES_MAX {
            return 0;
        }
        let response = Response::new(from, data, bytes);
        let owed = response.len;
        self.responses.push_back(response);
        owed
    }

    /// Returns the next response to send.
    pub(super) fn poll_response(&mut self) -> Option<Response> {
        self.responses.pop_front()
    }

    /// Returns the challenge due now with its address and the size of its datagram, and counts it
    /// as sent. `pto` is the probe timeout.
    pub(super) fn poll_challenge(
        &mut self,
        now: Time,
        pto: Duration,
    ) -> Option<(PathAddr, [u8; 8], usize)> {
        let asked = [&mut self.chosen, &mut self.candidate, &mut self.left];
        asked.into_iter().flatten().find_map(|candidate| {
            let (challenge, len) = candidate.poll_challenge(now, pto)?;
            Some((candidate.remote, challenge, len))
        })
    }

    /// Returns the time of the next challenge, or of giving up.
    pub(super) fn timeout(&self) -> Option<Time> {
        let asked = [&self.candidate, &self.left, &self.chosen];
        asked.into_iter().flatten().filter_map(Candidate::timeout).min()
    }

    /// Gives up the addresses that did not answer by `now`.
    pub(super) fn handle_timeout(&mut self, now: Time) -> GivenUp {
        let is_given_up = |c: &mut Candidate| c.is_given_up(now);
        self.left.take_if(is_given_up);
        GivenUp {
            candidate: self.candidate.take_if(is_given_up).map(|c| c.remote),
            requested: self.chosen.take_if(is_given_up).map(|c| c.remote),
        }
    }

    /// Returns true if a packet from `from` changes nothing here: it came from the current address,
    /// and no move is unfollowed.
    #[inline]
    pub(super) fn is_settled_on(&self, from: PathAddr) -> bool {
        from == self.current.remote && self.unfollowed.is_none()
    }

    /// Handles a packet from `from`, which has the highest number so far or is a probing packet.
    /// Returns `None` if the address needs no validation, otherwise whether its packet may move the
    /// connection there.
    ///
    /// If both sides move to different addresses at the same time, the initiator's move is kept.
    /// Otherwise the two sides would follow each other without end.
    pub(super) fn on_packet(
        &mut self,
        now: Time,
        from: PathAddr,
        probes: bool,
        is_initiator: bool,
    ) -> Option<bool> {
        if from == self.remote() {
            // The peer has followed this side's move.
            self.unfollowed.take_if(|_| !probes);
            return None;
        }
        if self.chosen.as_ref().is_some_and(|chosen| chosen.remote == from) {
            return None;
        }
        if probes {
            return Some(false);
        }
        self.unfollowed.take_if(|unfollowed| unfollowed.until <= now);
        let unfollowed = self.unfollowed.as_ref();
        let stays = unfollowed.is_some_and(|unfollowed| is_initiator || unfollowed.left == from);
        Some(!stays)
    }

    /// Makes `from` the candidate. `moves`: a packet from there may move the connection. Returns
    /// false if it was the candidate before.
    pub(super) fn begin_validation(
        &mut self,
        now: Time,
        from: PathAddr,
        moves: bool,
        rng: &mut impl Rng,
    ) -> bool {
        if self.candidate.as_ref().is_some_and(|candidate| candidate.remote == from) {
            return false;
        }
        let was_in_use = self.previous.is_some_and(|(address, _)| address == from);
        let make = if was_in_use { Candidate::back } else { Candidate::new };
        let mut candidate =
            make(now, from, draw_challenges(rng)).with_full_len(self.current.challenge_len());
        candidate.is_planned = !moves;
        self.candidate = Some(candidate);
        true
    }

    /// Counts a datagram from the candidate's address. `owed` of its `bytes` are reserved for a
    /// response. Returns the candidate if the connection follows the peer there.
    pub(super) fn on_candidate_packet(
        &mut self,
        moves: bool,
        [bytes, owed]: [usize; 2],
    ) -> Option<Candidate> {
        let candidate = self.candidate.as_mut()?;
        candidate.on_received(bytes, owed);
        candidate.is_used |= moves;
        self.take_ready()
    }

    /// Takes the candidate if its path is validated and in use.
    fn take_ready(&mut self) -> Option<Candidate> {
        self.candidate.take_if(|candidate| candidate.is_ready())
    }

    /// Handles a PATH_RESPONSE. `is_silent`: the current path is silent. Returns the address to
    /// move to, with the reason.
    pub(super) fn on_response(
        &mut self,
        now: Time,
        data: [u8; 8],
        is_silent: bool,
    ) -> Option<(Candidate, Cause)> {
        // The old address is alive. If the current path is silent, move back. Otherwise the peer
        // decides, by sending from there.
        if let Some(left) = self.left.take_if(|left| left.on_response(now, data).is_some()) {
            return is_silent.then_some((left, Cause::PathDead));
        }
        let carries = |c: &mut Candidate| c.on_response(now, data) == Some(Answer::Carries);
        if let Some(chosen) = self.chosen.take_if(carries) {
            return Some((chosen, Cause::Requested));
        }
        let candidate = self.candidate.as_mut()?;
        if !carries(candidate) {
            return None;
        }
        candidate.on_carries(now);
        Some((self.take_ready()?, Cause::PeerMoved))
    }

    /// Challenges the address used before the current one, because the current path is silent. The
    /// peer may still be at the earlier address: an attacker may have relayed its packets,
    /// unnoticed by either side.
    pub(super) fn challenge_previous(&mut self, now: Time, rng: &mut impl Rng) {
        if self.left.is_none()
            && let Some((address, times)) = self.previous.take_if(|(_, times)| *times > 0)
        {
            self.previous = Some((address, times - 1));
            self.left = Some(Candidate::left(now, address, draw_challenges(rng)));
        }
    }

    /// Requests a move to `to`, which is not the current address. It is pending until the peer
    /// `has_h3`. Returns the address of an earlier request that fails.
    pub(super) fn request_move(
        &mut self,
        now: Time,
        to: PathAddr,
        has_h3: bool,
        rng: &mut impl Rng,
    ) -> Option<PathAddr> {
        let chosen = self.chosen.as_ref().map(|chosen| chosen.remote);
        if chosen.or(self.pending) == Some(to) {
            return None;
        }
        self.chosen = None;
        let failed = chosen.or(self.pending.take());
        if has_h3 {
            let challenges = draw_challenges(rng);
            let chosen = Candidate::chosen(now, to, challenges);
            self.chosen = Some(chosen.with_full_len(self.current.challenge_len()));
        } else {
            self.pending = Some(to);
        }
        failed
    }

    /// Takes the pending move, now that the peer has H3.
    pub(super) fn take_pending_move(&mut self) -> Option<PathAddr> {
        self.pending.take()
    }

    /// Makes the validated address of `to` the current one. Returns the address that was.
    pub(super) fn switch(
        &mut self,
        now: Time,
        to: &Candidate,
        cause: Cause,
        rng: &mut impl Rng,
    ) -> PathAddr {
        let remote = to.remote;
        let left = std::mem::replace(&mut self.current.remote, remote);
        // An attacker may have relayed the peer's packets in order to move the path. A peer that
        // has not moved answers the challenge from its old address, and the connection follows it
        // (RFC 9000 §9.3.3).
        self.left =
            (cause == Cause::PeerMoved).then(|| Candidate::left(now, left, draw_challenges(rng)));
        self.previous = Some((left, PREVIOUS_PATH_CHALLENGES_MAX));
        for candidate in [&mut self.candidate, &mut self.chosen] {
            candidate.take_if(|candidate| candidate.remote == remote);
        }
        self.current.mtud.restart(to.full_len() as u16);
        self.unfollowed = None;
        left
    }

    /// Keeps the move from `left` until `until`, or until the peer follows it. Packets from `left`
    /// do not undo it meanwhile.
    pub(super) fn keep_move(&mut self, left: PathAddr, until: Time) {
        self.unfollowed = Some(UnfollowedMove { left, until });
    }
}

fn draw_challenges(rng: &mut impl Rng) -> [[u8; 8]; 2] {
    let mut challenges = [[0; 8]; 2];
    rng.fill_bytes(challenges.as_flattened_mut());
    challenges
}
