//! The methods of the endpoint for NAT traversal: see [`punch`](crate::punch).

use std::net::SocketAddr;

use super::Endpoint;
use crate::punch::{AnswerMode, PeerStart, PortGuessing, PunchError, PunchEvent, PunchId};
use crate::streams::Role;
use crate::{PathAddr, Time};

impl Endpoint {
    /// Starts hole punching with a peer at any of `candidates` (16 at most). The peer uses the same
    /// `secret` and the other `role`, and begins at about the same time. The secret belongs to this
    /// attempt and these two peers only. [`Self::poll_punch_event`] returns the results,
    /// [`PunchEvent::Ended`] last.
    ///
    /// # Errors
    /// 16 punches and observations are in progress.
    pub fn punch(
        &mut self,
        now: Time,
        secret: &[u8; 32],
        role: Role,
        candidates: &[SocketAddr],
    ) -> Result<PunchId, PunchError> {
        self.punches.punch(now, secret, role, PeerStart::Now, candidates)
    }

    /// Like [`Self::punch`], for a peer that begins up to a minute later. It sends as many packets,
    /// spread over that time, and waits for the peer's.
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
        self.punches.punch(now, secret, role, PeerStart::WithinAMinute, candidates)
    }

    /// Like [`Self::punch`], for two NATs that defeat plain punching. One side's NAT uses a
    /// different outside port for each destination; the other side's NAT admits only hosts that
    /// this other side has sent to. The first side probes from many sockets, the second probes many
    /// ports. Up to 256 small packets go to unproven addresses, so the caller must expect to
    /// transfer much more than that. Only the side with [`PortGuessing::Ports`] finds an address;
    /// that side has to migrate to it.
    ///
    /// # Errors
    /// Another such attempt began within 8 s, 16 punches and observations are in progress, or the
    /// address is invalid.
    pub fn punch_by_port_guessing(
        &mut self,
        now: Time,
        secret: &[u8; 32],
        role: Role,
        port_guessing: &PortGuessing,
    ) -> Result<PunchId, PunchError> {
        self.punches.punch_by_port_guessing(now, secret, role, port_guessing)
    }

    /// Adds candidate addresses of the peer to a punch in progress.
    pub fn add_punch_candidates(&mut self, now: Time, id: PunchId, candidates: &[SocketAddr]) {
        self.punches.add_candidates(now, id, candidates);
    }

    /// Ends a punch, an observation or an exchange at once, without an event.
    pub fn stop_punch(&mut self, id: PunchId) {
        self.punches.stop(id);
    }

    /// Asks a [`Reflector`](crate::punch::Reflector) at `of`, which has the same `secret`, for our
    /// address. [`PunchEvent::Observed`] or [`PunchEvent::Ended`] follows.
    ///
    /// # Errors
    /// 16 punches and observations are in progress, or the address is invalid.
    pub fn observe(
        &mut self,
        now: Time,
        secret: &[u8; 32],
        of: SocketAddr,
    ) -> Result<PunchId, PunchError> {
        self.observe_by(now, secret, of, AnswerMode::Itself)
    }

    /// Like [`observe`](Self::observe), with the answer sent as `by` requests. The result shows the
    /// NAT's filtering. It also ends without an answer if the reflector does not support the
    /// request.
    ///
    /// # Errors
    /// As of [`observe`](Self::observe).
    pub fn observe_by(
        &mut self,
        now: Time,
        secret: &[u8; 32],
        of: SocketAddr,
        by: AnswerMode,
    ) -> Result<PunchId, PunchError> {
        self.punches.observe(now, secret, of, by)
    }

    /// Sends `request` to `with` in the clear. For 3 s, it waits for one datagram from exactly that
    /// address that belongs to no connection. [`PunchEvent::Reply`] or [`PunchEvent::Ended`]
    /// follows. An attacker that can forge that address can forge the reply.
    ///
    /// # Errors
    /// 8 exchanges, or one with this address, are in progress; the address is invalid; or the
    /// request is longer than 1500 bytes.
    pub fn exchange(
        &mut self,
        now: Time,
        with: SocketAddr,
        request: &[u8],
    ) -> Result<PunchId, PunchError> {
        self.punches.exchange(now, with, request)
    }

    /// Returns the next event of any punch, observation or exchange. The caller repeats until
    /// `None`.
    pub fn poll_punch_event(&mut self) -> Option<(PunchId, PunchEvent)> {
        self.punches.poll_event()
    }

    /// Passes a datagram to the punches, observations and exchanges in progress.
    pub(super) fn route_to_punches(&mut self, now: Time, from: PathAddr, datagram: &[u8]) -> bool {
        if self.punches.is_idle() {
            return false;
        }
        self.punches.handle(now, from, datagram)
    }
}
