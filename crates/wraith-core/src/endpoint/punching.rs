//! What an endpoint does to find paths, beside its connections: see [`punch`](crate::punch).

use std::net::SocketAddr;

use super::Endpoint;
use crate::punch::{AnswerBy, Many, Peer, PunchError, PunchEvent, PunchId};
use crate::streams::Role;
use crate::{PathAddr, Time};

impl Endpoint {
    /// Tries to reach a peer at any of `candidates` (16 at most), and to be reached by it. It has the same `secret`, which is for
    /// this attempt alone and which nobody else has, the other `role`, and begins at about the same time. Events follow by
    /// [`Self::poll_punch_event`], [`PunchEvent::Ended`] at last.
    ///
    /// # Errors
    /// 16 punches and observations are under way.
    pub fn punch(
        &mut self,
        now: Time,
        secret: &[u8; 32],
        role: Role,
        candidates: &[SocketAddr],
    ) -> Result<PunchId, PunchError> {
        self.punches.punch(now, secret, role, Peer::BeginsNow, candidates)
    }

    /// The same for a peer that begins up to a minute later: as many packets, over all that time, and its own are waited for.
    ///
    /// # Errors
    /// As of [`Self::punch`].
    pub fn wait_for_punch(
        &mut self,
        now: Time,
        secret: &[u8; 32],
        role: Role,
        candidates: &[SocketAddr],
    ) -> Result<PunchId, PunchError> {
        self.punches.punch(now, secret, role, Peer::BeginsLater, candidates)
    }

    /// [`Self::punch`] where one side is behind a NAT that draws another port for each destination, and the other behind one that lets in only
    /// whom it has sent to: the first asks from many sockets, the second asks many ports. Up to 256 small packets go where nothing is
    /// proved, so this is for a peer that has moved much more than that. Only [`Many::Ports`] learns an address; its side is to move there.
    ///
    /// # Errors
    /// One such attempt began within 8 s, 16 punches and observations are under way, or the address is none.
    pub fn punch_many(
        &mut self,
        now: Time,
        secret: &[u8; 32],
        role: Role,
        many: &Many,
    ) -> Result<PunchId, PunchError> {
        self.punches.punch_many(now, secret, role, many)
    }

    /// Further addresses of the peer of a punch under way.
    pub fn add_punch_candidates(&mut self, now: Time, id: PunchId, candidates: &[SocketAddr]) {
        self.punches.add_candidates(now, id, candidates);
    }

    /// Ends a punch, an observation or an exchange at once, without an event.
    pub fn stop_punch(&mut self, id: PunchId) {
        self.punches.stop(id);
    }

    /// Asks a [`Reflector`](crate::punch::Reflector) at `of`, which has the same `secret`, where it sees us.
    /// [`PunchEvent::Observed`] or [`PunchEvent::Ended`] follows.
    ///
    /// # Errors
    /// 16 punches and observations are under way, or the address is none.
    pub fn observe(
        &mut self,
        now: Time,
        secret: &[u8; 32],
        of: SocketAddr,
    ) -> Result<PunchId, PunchError> {
        self.observe_by(now, secret, of, AnswerBy::Itself)
    }

    /// Asks as [`observe`](Self::observe), and has it answer as `by` says, which tells what a NAT lets in. It ends without an answer,
    /// too, where the reflector does not do that.
    ///
    /// # Errors
    /// As of [`observe`](Self::observe).
    pub fn observe_by(
        &mut self,
        now: Time,
        secret: &[u8; 32],
        of: SocketAddr,
        by: AnswerBy,
    ) -> Result<PunchId, PunchError> {
        self.punches.observe(now, secret, of, by)
    }

    /// Sends `request`, in the clear, to `with`, and waits 3 s for one datagram from exactly there that is of no connection.
    /// [`PunchEvent::Reply`] or [`PunchEvent::Ended`] follows. Anybody who can forge that address can forge the reply.
    ///
    /// # Errors
    /// 8 are under way, or one with this address; the address is none; the request is longer than 1500 bytes.
    pub fn exchange(
        &mut self,
        now: Time,
        with: SocketAddr,
        request: &[u8],
    ) -> Result<PunchId, PunchError> {
        self.punches.exchange(now, with, request)
    }

    /// The next event of any punch, observation or exchange. Call until `None`.
    pub fn poll_punch_event(&mut self) -> Option<(PunchId, PunchEvent)> {
        self.punches.poll_event()
    }

    /// Offers a datagram to what is under way.
    pub(super) fn route_to_punches(&mut self, now: Time, from: PathAddr, datagram: &[u8]) -> bool {
        if self.punches.is_idle() {
            return false;
        }
        self.punches.handle(now, from, datagram)
    }
}
