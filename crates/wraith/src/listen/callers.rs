//! The connected callers of a listener (senders that dial it), from the handshake to the end.
//!
//! Invariant: there are at most [`CALLERS_MAX`] callers, and at most [`OF_ONE_MAX`] with one
//! identity. If there is no room:
//!
//! - A caller that has sent nothing is evicted for any new caller, so silent callers keep no
//!   contact out.
//! - A stranger that waits for its turn is evicted for a contact.
//! - A stranger that has the turn must make progress while others wait ([`super::turn_limit`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wraith_crypto::NodeId;
use wraith_discovery::Capability;
use wraith_transfer::{Progress, close};
use wraith_transport::Connection;

use super::turn_limit::TurnLimit;

/// Maximum number of callers: one transfers files, the others wait.
const CALLERS_MAX: usize = 16;
/// Maximum number of callers with one identity.
const OF_ONE_MAX: usize = 4;
/// Close reason sent to rejected and evicted callers.
const BUSY: &str = "too many callers at once";
/// Close reason sent to a caller that exceeded its turn. The caller reconnects automatically.
const OTHERS_WAIT: &str = "other senders are waiting; the transfer resumes at its next turn";

#[derive(Debug)]
struct CallerEntry {
    id: u64,
    connection: Connection,
    /// Cancelled when the caller is evicted or the listener stops.
    gone: CancellationToken,
    is_contact: bool,
    /// Identifies its transfer, once the caller has sent it.
    secret: Option<Capability>,
    has_turn: bool,
    /// Progress of its transfer; `None` before the offer is accepted.
    progress: Option<Arc<Progress>>,
    /// Set while others wait for its turn to end.
    limit: Option<TurnLimit>,
    is_over_limit: bool,
}

#[derive(Debug, Default)]
struct CallerRegistry {
    callers: Vec<CallerEntry>,
    next_id: u64,
    /// Number of callers that wait for the turn.
    waiting: usize,
    stopped: bool,
}

/// An admitted caller.
#[derive(Debug)]
pub(super) struct AdmittedCaller {
    pub id: u64,
    pub gone: CancellationToken,
}

/// The list of callers (see the module docs).
#[derive(Debug, Default)]
pub(super) struct Callers {
    state: Mutex<CallerRegistry>,
    /// Number of callers.
    count: watch::Sender<usize>,
}

impl Callers {
    /// Admits a new caller. If there is no room, closes its connection and returns `None`.
    pub fn admit(&self, connection: &Connection, is_contact: bool) -> Option<AdmittedCaller> {
        let mut state = self.lock();
        let Some(evicted) = make_room(&state, connection.peer(), is_contact) else {
            connection.close(close::OTHER, BUSY);
            return None;
        };
        if let Some(id) = evicted {
            // The evicted caller's task notices the close and finds its entry already removed.
            for caller in state.callers.iter().filter(|c| c.id == id) {
                caller.connection.close(close::OTHER, BUSY);
            }
            state.callers.retain(|c| c.id != id);
        }
        let (id, gone) = (state.next_id, CancellationToken::new());
        state.next_id += 1;
        state.callers.push(CallerEntry {
            id,
            connection: connection.clone(),
            gone: gone.clone(),
            is_contact,
            secret: None,
            has_turn: false,
            progress: None,
            limit: None,
            is_over_limit: false,
        });
        self.count.send_replace(state.callers.len());
        Some(AdmittedCaller { id, gone })
    }

    /// Marks the caller as holder of the turn. From now on it is not evicted for a new caller.
    pub fn mark_turn_holder(&self, id: u64) {
        self.with(id, |caller| caller.has_turn = true);
    }

    /// Records that the caller's transfer was accepted and is in progress.
    pub fn set_progress(&self, id: u64, progress: &Arc<Progress>) {
        self.with(id, |caller| caller.progress = Some(Arc::clone(progress)));
    }

    /// Checks the holder of the turn on behalf of a waiting caller. Disconnects a stranger that
    /// exceeded its limit.
    pub fn enforce_turn_limit(&self, now: Instant) {
        let mut state = self.lock();
        let has_it = |c: &&mut CallerEntry| c.has_turn && !c.is_contact && !c.is_over_limit;
        let Some(caller) = state.callers.iter_mut().find(has_it) else { return };
        // Only bytes that moved count. Data that was already present, and holes, cost the sender
        // nothing.
        let bytes = caller.progress.as_ref().map(|progress| progress.bytes_moved());
        let limit = caller.limit.get_or_insert_with(|| TurnLimit::new(now));
        if limit.is_over(now, bytes) {
            caller.is_over_limit = true;
            caller.connection.close(close::STALLED, OTHERS_WAIT);
            // The transfer may have further connections and would wait on them.
            caller.gone.cancel();
        }
    }

    /// Registers a waiting caller, until the returned guard is dropped. A turn has no limit while
    /// no caller waits.
    pub fn register_waiting(&self) -> WaitingGuard<'_> {
        self.lock().waiting += 1;
        WaitingGuard(self)
    }

    /// Returns whether this caller was disconnected because others waited.
    pub fn is_over_limit(&self, id: u64) -> bool {
        self.lock().callers.iter().any(|c| c.id == id && c.is_over_limit)
    }

    /// Records which transfer a caller belongs to. If the same peer already has a connection for
    /// that transfer, the earlier one is dead and is closed.
    pub fn identify(&self, id: u64, secret: Capability) {
        let mut state = self.lock();
        let Some(at) = state.callers.iter().position(|c| c.id == id) else { return };
        let peer = state.callers[at].connection.peer();
        for caller in &state.callers {
            if caller.secret.as_ref() == Some(&secret) && caller.connection.peer() == peer {
                caller.connection.close(close::OTHER, "you have come back on another connection");
            }
        }
        state.callers[at].secret = Some(secret);
    }

    /// Disconnects all callers that are no longer admitted.
    pub fn close_unless(&self, is_admitted: impl Fn(NodeId) -> bool) {
        for caller in &self.lock().callers {
            if !is_admitted(caller.connection.peer()) {
                caller.connection.close(close::OTHER, "");
                caller.gone.cancel();
            }
        }
    }

    /// Removes a caller. Must be called for each admitted caller.
    pub fn remove(&self, id: u64) {
        let mut state = self.lock();
        state.callers.retain(|c| c.id != id);
        self.count.send_replace(state.callers.len());
    }

    /// Disconnects all callers because this side stops, and admits no more.
    pub fn stop_all(&self) {
        let mut state = self.lock();
        state.stopped = true;
        for caller in &state.callers {
            caller.connection.close(close::CANCELLED, "");
            caller.gone.cancel();
        }
    }

    /// Waits until all callers have left.
    pub async fn wait_until_gone(&self) {
        let mut count = self.count.subscribe();
        drop(count.wait_for(|count| *count == 0).await);
    }

    fn with(&self, id: u64, change: impl FnOnce(&mut CallerEntry)) {
        if let Some(caller) = self.lock().callers.iter_mut().find(|c| c.id == id) {
            change(caller);
        }
    }

    fn lock(&self) -> MutexGuard<'_, CallerRegistry> {
        // Ignores poisoning: these are plain lists, and a panic elsewhere leaves none inconsistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A registered waiting caller.
pub(super) struct WaitingGuard<'a>(&'a Callers);

impl Drop for WaitingGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.waiting -= 1;
        if state.waiting == 0 {
            state.callers.iter_mut().for_each(|caller| caller.limit = None);
        }
    }
}

/// Decides which caller to evict for a new connection of `peer`: `Some(None)` if there is room,
/// `Some(id)` to evict that caller. `None` if the new caller must be rejected.
fn make_room(state: &CallerRegistry, peer: NodeId, is_contact: bool) -> Option<Option<u64>> {
    if state.stopped {
        return None;
    }
    let is_theirs = |c: &&CallerEntry| c.connection.peer() == peer;
    let is_silent = |c: &&CallerEntry| c.secret.is_none();
    let callers = || state.callers.iter();
    if callers().filter(is_theirs).count() >= OF_ONE_MAX {
        return callers().filter(is_theirs).find(is_silent).map(|c| Some(c.id));
    }
    if callers().len() < CALLERS_MAX {
        return Some(None);
    }
    let stranger = |c: &&CallerEntry| is_contact && !c.is_contact && !c.has_turn;
    callers().find(is_silent).or_else(|| callers().find(stranger)).map(|c| Some(c.id))
}
