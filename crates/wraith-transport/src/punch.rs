//! Hole punching, for the application: see [`wraith_core::punch`]. Dropping a handle ends its
//! request.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

use thiserror::Error;
use wraith_core::punch::PeerStart;
use wraith_core::{AnswerMode, PunchError, PunchEvent, Role};

use crate::endpoint::Endpoint;
use crate::lock::lock;
use crate::punch_request::{PortGuessing, PunchCommand, PunchShared};
use crate::shared::{DoorShared, EndpointShared};

/// Why an observation or exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ObserveError {
    /// The core refused the request.
    #[error("{0}")]
    Refused(#[from] PunchError),
    /// No answer arrived in time.
    #[error("no answer arrived in time")]
    NoAnswer,
    /// The endpoint was closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
}

/// A running punch. Dropping it ends it.
#[derive(Debug)]
pub struct Punch {
    shared: Arc<PunchShared>,
    endpoint: Arc<EndpointShared>,
}

impl Punch {
    fn start(door: &DoorShared, request: PunchCommand) -> Self {
        let (shared, endpoint) = (Arc::new(PunchShared::default()), &door.endpoint);
        let is_closing = lock(&door.state).closing;
        let mut state = lock(&endpoint.state);
        if is_closing || state.stopped {
            lock(&shared.0).ended = true;
        } else {
            state.requests.push((request, Arc::clone(&shared)));
        }
        drop(state);
        endpoint.notify_io();
        Self { shared, endpoint: Arc::clone(endpoint) }
    }

    /// Waits for the next event; `None` after the last. Cancel safe.
    ///
    /// # Errors
    /// The punch could not start.
    pub async fn next(&mut self) -> Result<Option<PunchEvent>, PunchError> {
        poll_fn(|cx| {
            let mut state = lock(&self.shared.0);
            if let Some(event) = state.events.pop_front() {
                return Poll::Ready(Ok(Some(event)));
            }
            if let Some(refused) = state.refused {
                return Poll::Ready(Err(refused));
            }
            if state.ended {
                return Poll::Ready(Ok(None));
            }
            state.wakers.register(cx);
            Poll::Pending
        })
        .await
    }

    /// Waits for the end. Returns the best address at which the peer answers, if any.
    ///
    /// # Errors
    /// The punch could not start.
    pub async fn best(&mut self) -> Result<Option<SocketAddr>, PunchError> {
        while let Some(event) = self.next().await? {
            if let PunchEvent::Ended { best, .. } = event {
                return Ok(best);
            }
        }
        Ok(None)
    }

    /// Adds further addresses of the peer.
    pub fn add_candidates(&self, candidates: impl IntoIterator<Item = SocketAddr>) {
        lock(&self.shared.0).added.extend(candidates);
        self.endpoint.notify_io();
    }

    async fn answer<T>(
        mut self,
        wanted: impl Fn(PunchEvent) -> Option<T>,
    ) -> Result<T, ObserveError> {
        while let Some(event) = self.next().await? {
            match event {
                PunchEvent::Ended { .. } => return Err(ObserveError::NoAnswer),
                event => {
                    if let Some(answer) = wanted(event) {
                        return Ok(answer);
                    }
                }
            }
        }
        Err(ObserveError::EndpointClosed)
    }
}

impl Drop for Punch {
    fn drop(&mut self) {
        lock(&self.shared.0).dropped = true;
        self.endpoint.notify_io();
    }
}

impl Endpoint {
    /// Punches a path from this endpoint's socket to a peer at any of `candidates` (at most 16),
    /// and accepts its probes. The peer does the same at about the same time with the other `role`.
    /// Both use the same `secret`, which serves this attempt only. See
    /// [`wraith_core::punch::Punches::punch`].
    pub fn punch(
        &self,
        secret: [u8; 32],
        role: Role,
        peer: PeerStart,
        candidates: impl IntoIterator<Item = SocketAddr>,
    ) -> Punch {
        let candidates = candidates.into_iter().collect();
        Punch::start(self.shared(), PunchCommand::Punch { secret, role, peer, candidates })
    }

    /// As [`Self::punch`], for one side behind a NAT that uses another port for each destination,
    /// and the other side behind a NAT that filters by destination. Two of three attempts succeed.
    /// See the precautions at [`wraith_core::punch::Punches::punch_by_port_guessing`]. The side with
    /// [`PortGuessing::Ports`] is the one to migrate the connection.
    pub fn punch_by_port_guessing(
        &self,
        secret: [u8; 32],
        role: Role,
        many: PortGuessing,
    ) -> Punch {
        Punch::start(self.shared(), PunchCommand::PortGuessing { secret, role, many })
    }

    /// Asks the reflector at `of`, which has the same `secret`, for the address at which it sees
    /// this endpoint's socket. Takes at most 3 s. Dropping the future ends the request.
    ///
    /// # Errors
    /// No answer arrived, or the request could not be sent.
    pub async fn observe(
        &self,
        secret: [u8; 32],
        of: SocketAddr,
    ) -> Result<SocketAddr, ObserveError> {
        self.observe_by(secret, of, AnswerMode::Itself).await
    }

    /// As [`observe`](Self::observe), but the reflector answers as `by` requests, which may take
    /// that much longer. See [`wraith_core::punch::Punches::observe`].
    ///
    /// # Errors
    /// As [`observe`](Self::observe).
    pub async fn observe_by(
        &self,
        secret: [u8; 32],
        of: SocketAddr,
        by: AnswerMode,
    ) -> Result<SocketAddr, ObserveError> {
        let punch = Punch::start(self.shared(), PunchCommand::Observe { secret, of, by });
        let seen_at = |event| match event {
            PunchEvent::Observed(seen_at) => Some(seen_at),
            _ => None,
        };
        punch.answer(seen_at).await
    }

    /// Sends `request` in the clear from this endpoint's socket to `with`, and waits 3 s for one
    /// datagram from there. At most 8 run at once. An attacker that can forge that address can
    /// forge the reply. Dropping the future ends the request.
    ///
    /// # Errors
    /// No reply arrived, or the request could not be sent.
    pub async fn exchange(
        &self,
        with: SocketAddr,
        request: impl Into<Vec<u8>>,
    ) -> Result<Vec<u8>, ObserveError> {
        let request = request.into();
        let punch = Punch::start(self.shared(), PunchCommand::Exchange { with, request });
        let reply = |event| match event {
            PunchEvent::Reply(bytes) => Some(bytes),
            _ => None,
        };
        punch.answer(reply).await
    }
}
