//! One connection, several addresses (RFC 8305): they are tried a little apart, all at once, and the first to answer is
//! taken.
//!
//! The distance keeps a peer that listens on several of them from completing two handshakes: its first answer
//! usually arrives, and ends the other attempts, before they get that far.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use wraith_core::{ConnectionHandle, DoorKey, Endpoint, PathAddr, Time, code};
use wraith_crypto::identity::NodeId;

use crate::error::ConnectError;
use crate::shared::{ConnectionShared, Phase};

/// Distance between attempts: more than the round trip of a LAN, and 16 addresses still start within half a second.
const ATTEMPT_DELAY: Duration = Duration::from_millis(30);

/// Whom a connection is for.
pub(super) struct Destination {
    pub(super) peer: NodeId,
    /// What opens the peer's door.
    pub(super) door: DoorKey,
}

/// The attempts to reach one peer (RFC 8305, without its preference of a family: the order is the caller's).
pub(super) struct HappyEyeballs {
    shared: Arc<ConnectionShared>,
    to: Destination,
    waiting: VecDeque<PathAddr>,
    next_start: Time,
    candidates: Vec<(ConnectionHandle, PathAddr)>,
    /// Why the last attempt that ended did.
    failure: Option<ConnectError>,
}

/// What [`HappyEyeballs::advance`] found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Running,
    AllFailed,
}

impl HappyEyeballs {
    /// `addresses` are those that a mover serves.
    pub(super) fn new(
        shared: Arc<ConnectionShared>,
        to: Destination,
        addresses: Vec<PathAddr>,
        now: Time,
    ) -> Self {
        // Without an address there is no attempt whose failure could tell why.
        let unserved = || ConnectError::Unreachable(io::ErrorKind::Unsupported.into());
        let failure = addresses.is_empty().then(unserved);
        let waiting = addresses.into();
        Self { shared, to, waiting, next_start: now, candidates: Vec::new(), failure }
    }

    pub(super) fn is_for(&self, shared: &Arc<ConnectionShared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    pub(super) fn holds(&self, handle: ConnectionHandle) -> bool {
        self.candidates.iter().any(|(candidate, _)| *candidate == handle)
    }

    /// When [`Self::advance`] should be called.
    pub(super) fn next_start(&self) -> Option<Time> {
        match (self.candidates.is_empty(), self.waiting.is_empty()) {
            (true, _) => Some(Time::ZERO),
            (false, false) => Some(self.next_start),
            (false, true) => None,
        }
    }

    /// Starts the attempts that are due; the next one at once if none is under way.
    pub(super) fn advance(&mut self, core: &mut Endpoint, now: Time) -> Outcome {
        while self.candidates.is_empty() || now >= self.next_start {
            let Some(address) = self.waiting.pop_front() else { break };
            match core.connect(now, address, self.to.peer, &self.to.door) {
                Ok(handle) => {
                    self.candidates.push((handle, address));
                    self.next_start = now + ATTEMPT_DELAY;
                }
                Err(error) => self.failure = Some(error.into()),
            }
        }
        if self.candidates.is_empty() { Outcome::AllFailed } else { Outcome::Running }
    }

    /// An attempt ended.
    pub(super) fn lost(&mut self, handle: ConnectionHandle, error: ConnectError) {
        self.candidates.retain(|(candidate, _)| *candidate != handle);
        self.failure = Some(error);
    }

    /// The system has no way to `address`: its attempt ends.
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

    /// `winner` is connected: ends the others. The connection it is for.
    pub(super) fn win(
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

    /// Ends all attempts, and tells the caller why: `reason`, or the failure of the last attempt.
    pub(super) fn give_up(self, core: &mut Endpoint, now: Time, reason: Option<ConnectError>) {
        for (handle, _) in self.candidates {
            if let Some(connection) = core.connection(handle) {
                connection.close(now, code::NO_ERROR, "");
            }
        }
        let reason = reason.or(self.failure);
        self.shared.update(|state| state.phase = Phase::Failed(reason));
    }
}
