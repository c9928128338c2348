//! The callers of a service, before its user accepts them: first those that have not sent the secret
//! of their invitation, then those that wait for the user.
//!
//! Invariant: silent callers keep no other out, and one peer leaves room for others.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use wraith_crypto::NodeId;
use wraith_discovery::Capability;
use wraith_transfer::limits::NEGOTIATION_TIMEOUT;
use wraith_transfer::{close, receive_dialler_hello};
use wraith_transport::Connection;

/// Maximum number of callers that have not yet sent the secret of their invitation.
const STRANGERS_MAX: usize = 64;
/// Maximum number of connections with one peer that wait for the user.
const WAITING_OF_ONE_MAX: usize = 8;

/// Returns the connection if its peer sends the right secret in time.
pub(super) async fn authorize(connection: Connection, secret: Capability) -> Option<Connection> {
    let received =
        timeout(NEGOTIATION_TIMEOUT, receive_dialler_hello(&connection)).await.ok()??;
    let is_right = Capability::from_bytes(received) == secret;
    if !is_right {
        connection.close(close::WRONG_SECRET, "");
    }
    is_right.then_some(connection)
}

/// Callers that have not sent the secret yet. A new caller evicts the oldest. A legitimate caller
/// needs one round trip, so silent strangers cannot keep it out.
#[derive(Debug, Default)]
pub(super) struct PendingCallers {
    pub(super) tasks: JoinSet<Option<Connection>>,
    oldest_first: VecDeque<AbortHandle>,
}

impl PendingCallers {
    pub(super) fn add(
        &mut self,
        caller: impl Future<Output = Option<Connection>> + Send + 'static,
    ) {
        self.oldest_first.retain(|task| !task.is_finished());
        if self.oldest_first.len() >= STRANGERS_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            // Dropping the task drops its connection, which closes it.
            oldest.abort();
        }
        self.oldest_first.push_back(self.tasks.spawn(caller));
    }
}

/// The connections that wait for the user of the service.
///
/// Invariant: one peer has at most [`WAITING_OF_ONE_MAX`] of them, so it leaves room for others.
#[derive(Debug, Default)]
pub(super) struct CallerQueue(Mutex<QueuedCallers>);

#[derive(Debug, Default)]
struct QueuedCallers {
    waiting: HashMap<NodeId, usize>,
    /// The current contacts, for a service for contacts.
    admitted: Option<HashSet<NodeId>>,
}

impl CallerQueue {
    fn lock(&self) -> MutexGuard<'_, QueuedCallers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection, unless its peer has too many here.
    pub(super) fn enter(&self, peer: NodeId) -> bool {
        let mut queue = self.lock();
        let waiting = queue.waiting.entry(peer).or_default();
        let has_room = *waiting < WAITING_OF_ONE_MAX;
        *waiting += usize::from(has_room);
        has_room
    }

    /// Uncounts a connection. Returns false, and closes it, if its peer is no longer invited.
    pub(super) fn leave(&self, connection: &Connection) -> bool {
        let mut queue = self.lock();
        let peer = connection.peer();
        if let Entry::Occupied(mut waiting) = queue.waiting.entry(peer) {
            *waiting.get_mut() -= 1;
            if *waiting.get() == 0 {
                waiting.remove();
            }
        }
        let is_invited = queue.admitted.as_ref().is_none_or(|admitted| admitted.contains(&peer));
        if !is_invited {
            connection.close(close::OTHER, "");
        }
        is_invited
    }

    pub(super) fn admit_only(&self, contacts: HashSet<NodeId>) {
        self.lock().admitted = Some(contacts);
    }
}
