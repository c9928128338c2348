//! Who is connected to a listener, from the handshake to the end.
//!
//! Invariant: there are at most [`CALLERS_MAX`], and of one identity at most [`OF_ONE_MAX`]. Who says nothing makes room for
//! whoever comes, and a stranger that waits for its turn for a contact: so neither keeps contacts out. Nor does a stranger that
//! has the turn: while others wait, it must move on ([`super::turn_limit`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wraith_crypto::NodeId;
use wraith_discovery::Capability;
use wraith_transfer::{Progress, close};
use wraith_transport::Connection;

use super::turn_limit::TurnLimit;

/// Callers at once: one whose files move, the others wait.
const CALLERS_MAX: usize = 16;
/// Callers of one identity at once.
const OF_ONE_MAX: usize = 4;
/// What who is sent away is told.
const BUSY: &str = "too many callers at once";
/// What who has had the turn for long enough is told. It comes back by itself.
const OTHERS_WAIT: &str = "others wait; it goes on where it was when the turn comes again";

#[derive(Debug)]
struct Entry {
    id: u64,
    connection: Connection,
    /// Cancelled when it is sent away, or the listener stops.
    gone: CancellationToken,
    is_contact: bool,
    /// Which transfer it came with, once it has said so.
    secret: Option<Capability>,
    has_turn: bool,
    /// What has moved of its transfer; `None` before it is accepted.
    progress: Option<Arc<Progress>>,
    /// While others wait for its turn to end.
    limit: Option<TurnLimit>,
    is_over_limit: bool,
}

#[derive(Debug, Default)]
struct State {
    callers: Vec<Entry>,
    next_id: u64,
    /// Who waits for the turn.
    waiting: usize,
    stopped: bool,
}

/// A caller that was taken in.
#[derive(Debug)]
pub(super) struct Admitted {
    pub id: u64,
    pub gone: CancellationToken,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Callers {
    state: Mutex<State>,
    /// How many there are.
    count: watch::Sender<usize>,
}

impl Callers {
    /// Takes a new caller in; `None`, and it is sent away, if there is no room.
    pub fn admit(&self, connection: &Connection, is_contact: bool) -> Option<Admitted> {
        let mut state = self.lock();
        let Some(evicted) = make_room(&state, connection.peer(), is_contact) else {
            connection.close(close::OTHER, BUSY);
            return None;
        };
        if let Some(id) = evicted {
            // Its task notices, and finds itself gone already.
            for caller in state.callers.iter().filter(|c| c.id == id) {
                caller.connection.close(close::OTHER, BUSY);
            }
            state.callers.retain(|c| c.id != id);
        }
        let (id, gone) = (state.next_id, CancellationToken::new());
        state.next_id += 1;
        state.callers.push(Entry {
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
        Some(Admitted { id, gone })
    }

    /// It is this caller's turn: it is not sent away any more.
    pub fn has_turn(&self, id: u64) {
        self.with(id, |caller| caller.has_turn = true);
    }

    /// Its transfer was accepted, and moves.
    pub fn moves(&self, id: u64, progress: &Arc<Progress>) {
        self.with(id, |caller| caller.progress = Some(Arc::clone(progress)));
    }

    /// Somebody waits for the turn, and looks at who has it: a stranger that has had it for long enough is sent away.
    pub fn press(&self, now: Instant) {
        let mut state = self.lock();
        let has_it = |c: &&mut Entry| c.has_turn && !c.is_contact && !c.is_over_limit;
        let Some(caller) = state.callers.iter_mut().find(has_it) else { return };
        // What was there already, and holes, cost its sender nothing.
        let bytes = caller.progress.as_ref().map(|progress| progress.bytes_moved());
        let limit = caller.limit.get_or_insert_with(|| TurnLimit::new(now));
        if limit.is_over(now, bytes) {
            caller.is_over_limit = true;
            caller.connection.close(close::STALLED, OTHERS_WAIT);
            // It may have further connections, on which the transfer would wait.
            caller.gone.cancel();
        }
    }

    /// Somebody waits for the turn, until what this returns is dropped. A turn during which nobody waits has no limit.
    pub fn wait_begins(&self) -> Waiting<'_> {
        self.lock().waiting += 1;
        Waiting(self)
    }

    /// Whether a caller was sent away because others waited.
    pub fn is_over_limit(&self, id: u64) -> bool {
        self.lock().callers.iter().any(|c| c.id == id && c.is_over_limit)
    }

    /// A caller has said which transfer it comes with. The same one of the same peer has come back, so its earlier
    /// connection is dead, whether it knows it or not.
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

    /// Sends away who may not come any more.
    pub fn close_unless(&self, may_come: impl Fn(NodeId) -> bool) {
        for caller in &self.lock().callers {
            if !may_come(caller.connection.peer()) {
                caller.connection.close(close::OTHER, "");
                caller.gone.cancel();
            }
        }
    }

    /// A caller is gone. Must be called for each that was admitted.
    pub fn leave(&self, id: u64) {
        let mut state = self.lock();
        state.callers.retain(|c| c.id != id);
        self.count.send_replace(state.callers.len());
    }

    /// Tells every caller that this side stops, and takes no more in.
    pub fn stop_all(&self) {
        let mut state = self.lock();
        state.stopped = true;
        for caller in &state.callers {
            caller.connection.close(close::CANCELLED, "");
            caller.gone.cancel();
        }
    }

    /// Waits until all have left.
    pub async fn wait_until_gone(&self) {
        let mut count = self.count.subscribe();
        drop(count.wait_for(|count| *count == 0).await);
    }

    fn with(&self, id: u64, change: impl FnOnce(&mut Entry)) {
        if let Some(caller) = self.lock().callers.iter_mut().find(|c| c.id == id) {
            change(caller);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Plain lists; a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who waits for the turn.
pub(super) struct Waiting<'a>(&'a Callers);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.waiting -= 1;
        if state.waiting == 0 {
            state.callers.iter_mut().for_each(|caller| caller.limit = None);
        }
    }
}

/// Who goes so that one more of `peer` can be there: nobody, or this one. `None` if there is no room to be made.
fn make_room(state: &State, peer: NodeId, is_contact: bool) -> Option<Option<u64>> {
    if state.stopped {
        return None;
    }
    let is_theirs = |c: &&Entry| c.connection.peer() == peer;
    let is_silent = |c: &&Entry| c.secret.is_none();
    let callers = || state.callers.iter();
    if callers().filter(is_theirs).count() >= OF_ONE_MAX {
        return callers().filter(is_theirs).find(is_silent).map(|c| Some(c.id));
    }
    if callers().len() < CALLERS_MAX {
        return Some(None);
    }
    let stranger = |c: &&Entry| is_contact && !c.is_contact && !c.has_turn;
    callers().find(is_silent).or_else(|| callers().find(stranger)).map(|c| Some(c.id))
}
