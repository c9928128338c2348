//! Happy Eyeballs (RFC 8305): several addresses of one peer are tried in parallel, slightly
//! staggered, and the first connection that is established is kept.
//!
//! If a peer listens on several of these addresses, the delay keeps two handshakes with it from
//! completing. The first handshake usually completes before the next attempt gets that far, and
//! ends all other attempts.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use wraith_core::{AccessKey, ConnectionHandle, Endpoint, PathAddr, Time, code};
use wraith_crypto::identity::NodeId;

use crate::error::ConnectError;
use crate::lock::WakeBatch;
use crate::shared::{ConnectionShared, Phase};

/// Delay between attempts: longer than the round trip of a LAN. 40 addresses, the most of a ticket,
/// still start within 1.2 s.
const ATTEMPT_DELAY: Duration = Duration::from_millis(30);

/// The peer to connect to.
pub(super) struct Destination {
    pub(super) peer: NodeId,
    /// The peer's access key.
    pub(super) access_key: AccessKey,
}

/// The attempts to reach one peer (RFC 8305, without address family preference: the caller orders
/// the addresses).
pub(super) struct HappyEyeballs {
    shared: Arc<ConnectionShared>,
    to: Destination,
    waiting: VecDeque<PathAddr>,
    next_start: Time,
    candidates: Vec<(ConnectionHandle, PathAddr)>,
    /// Error of the last attempt that failed.
    failure: Option<ConnectError>,
}

/// Result of [`HappyEyeballs::advance`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Running,
    AllFailed,
}

impl HappyEyeballs {
    pub(super) fn shared(&self) -> &ConnectionShared {
        &self.shared
    }

    /// Creates the attempts. `addresses` are those that a mover serves.
    pub(super) fn new(
        shared: Arc<ConnectionShared>,
        to: Destination,
        addresses: Vec<PathAddr>,
        now: Time,
    ) -> Self {
        // Without an address no attempt can fail and give a reason, so the reason is set here.
        let unserved = || ConnectError::Unreachable(io::ErrorKind::Unsupported.into());
        let failure = addresses.is_empty().then(unserved);
        let waiting = addresses.into();
        Self { shared, to, waiting, next_start: now, candidates: Vec::new(), failure }
    }

    pub(super) fn belongs_to(&self, shared: &Arc<ConnectionShared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    pub(super) fn has_attempt(&self, handle: ConnectionHandle) -> bool {
        self.candidates.iter().any(|(candidate, _)| *candidate == handle)
    }

    /// Returns the time of the next call of [`Self::advance`].
    pub(super) fn next_start(&self) -> Option<Time> {
        match (self.candidates.is_empty(), self.waiting.is_empty()) {
            (true, _) => Some(Time::ZERO),
            (false, false) => Some(self.next_start),
            (false, true) => None,
        }
    }

    /// Starts the attempts that are due. If no attempt is running, starts the next one at once.
    pub(super) fn advance(&mut self, core: &mut Endpoint, now: Time) -> Outcome {
        while self.candidates.is_empty() || now >= self.next_start {
            let Some(address) = self.waiting.pop_front() else { break };
            match core.connect(now, address, self.to.peer, &self.to.access_key) {
                Ok(handle) => {
                    self.candidates.push((handle, address));
                    self.next_start = now + ATTEMPT_DELAY;
                }
                Err(error) => self.failure = Some(error.into()),
            }
        }
        if self.candidates.is_empty() { Outcome::AllFailed } else { Outcome::Running }
    }

    /// Removes a failed attempt.
    pub(super) fn on_attempt_failed(&mut self, handle: ConnectionHandle, error: ConnectError) {
        self.candidates.retain(|(candidate, _)| *candidate != handle);
        self.failure = Some(error);
    }

    /// Ends the attempt at `address`, to which the operating system has no route.
    pub(super) fn unreachable(
        &mut self,
        core: &mut Endpoint,
        now: Time,
        address: PathAddr,
        error: &io::Error,
    ) {
        let Some(i) = self.candidates.iter().position(|(_, candidate)| *candidate == address)
        else {
            return;
        };
        let (handle, _) = self.candidates.swap_remove(i);
        if let Some(connection) = core.connection(handle) {
            connection.close(now, code::NO_ERROR, "");
        }
        let error =
            error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
        self.failure = Some(ConnectError::Unreachable(error));
    }

    /// Ends all attempts except `winner`, which is connected. Returns the connection's shared
    /// state.
    pub(super) fn finish_with_winner(
        self,
        core: &mut Endpoint,
        now: Time,
        winner: ConnectionHandle,
    ) -> Arc<ConnectionShared> {
        for (handle, _) in self.candidates {
            if handle != winner
                && let Some(connection) = core.connection(handle)
            {
                connection.close(now, code::NO_ERROR, "");
            }
        }
        self.shared
    }

    /// Ends all attempts. The caller gets `reason`, or else the error of the last attempt.
    pub(super) fn abort(
        self,
        core: &mut Endpoint,
        now: Time,
        reason: Option<ConnectError>,
        wakes: &mut WakeBatch,
    ) {
        for (handle, _) in self.candidates {
            if let Some(connection) = core.connection(handle) {
                connection.close(now, code::NO_ERROR, "");
            }
        }
        let reason = reason.or(self.failure);
        self.shared.update(wakes, |state| state.phase = Phase::Failed(reason));
    }
}
