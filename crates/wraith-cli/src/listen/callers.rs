//! Who is connected to a listener, from the handshake to the end.
//!
//! Invariant: there are at most [`MAX_CALLERS`], and of one identity at most [`MAX_OF_ONE`]. Who says nothing makes room for
//! whoever comes, and a stranger that waits for its turn for a contact: so neither keeps contacts out. Nor does a stranger that has
//! the turn: while others wait, it must move on ([`super::pressure`]).

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wraith_crypto::NodeId;
use wraith_transfer::{Cancel, Progress, close};
use wraith_transport::Connection;

use super::pressure::Pressure;

/// Callers at once: one whose files move, the others wait. Each has a thread.
const MAX_CALLERS: usize = 16;
/// Callers of one identity at once.
const MAX_OF_ONE: usize = 4;
/// What who is sent away is told.
const BUSY: &str = "too many callers at once";
/// What who has had the turn for long enough is told. It comes back by itself.
const OTHERS_WAIT: &str = "others wait; it goes on where it was when the turn comes again";
/// How long the end waits for transfers to put away what they have.
const LAST_WAIT: Duration = Duration::from_secs(3);

#[derive(Debug)]
struct Caller {
    id: u64,
    connection: Connection,
    cancel: Cancel,
    is_contact: bool,
    /// Which transfer it came with, once it has said so.
    secret: Option<[u8; 16]>,
    has_turn: bool,
    /// What has moved of its transfer; None before it is accepted.
    progress: Option<Arc<Progress>>,
    /// While others wait for its turn to end, and whether they have waited long enough.
    pressure: Option<Pressure>,
    is_pressed_out: bool,
}

#[derive(Debug, Default)]
struct State {
    callers: Vec<Caller>,
    next_id: u64,
    stopped: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Callers {
    state: Mutex<State>,
    fewer: Condvar,
    /// The question that stands is to be taken back, because others wait.
    hurry: Arc<AtomicBool>,
}

impl Callers {
    /// Takes a new caller in, with what stops its transfer; None, and it is sent away, if there is no room.
    pub fn admit(&self, connection: &Connection, is_contact: bool) -> Option<(u64, Cancel)> {
        let mut state = self.lock();
        let Some(gone) = make_room(&state, connection.peer(), is_contact) else {
            connection.close(close::OTHER, BUSY);
            return None;
        };
        if let Some(id) = gone {
            // Its thread notices, and finds itself gone already.
            state
                .callers
                .iter()
                .filter(|c| c.id == id)
                .for_each(|c| c.connection.close(close::OTHER, BUSY));
            state.callers.retain(|c| c.id != id);
        }
        let (id, cancel) = (state.next_id, Cancel::default());
        state.next_id += 1;
        let (connection, cancel_it) = (connection.clone(), cancel.clone());
        state.callers.push(Caller {
            id,
            connection,
            cancel: cancel_it,
            is_contact,
            secret: None,
            has_turn: false,
            progress: None,
            pressure: None,
            is_pressed_out: false,
        });
        Some((id, cancel))
    }

    /// It is this caller's turn: it is not sent away any more.
    pub fn has_turn(&self, id: u64) {
        let mut state = self.lock();
        state.callers.iter_mut().filter(|c| c.id == id).for_each(|c| c.has_turn = true);
    }

    /// Its transfer was accepted, and moves.
    pub fn moves(&self, id: u64, progress: &Arc<Progress>) {
        let progress = Some(Arc::clone(progress));
        self.lock().callers.iter_mut().filter(|c| c.id == id).for_each(|c| {
            c.progress.clone_from(&progress);
        });
    }

    /// Somebody waits for the turn, and looks at who has it: a stranger that has had it for long enough is sent away.
    pub fn press(&self, now: Instant) {
        let mut state = self.lock();
        let has_it = |c: &&mut Caller| c.has_turn && !c.is_contact && !c.is_pressed_out;
        let Some(caller) = state.callers.iter_mut().find(has_it) else { return };
        let bytes = caller.progress.as_ref().map(|progress| progress.bytes());
        let pressure = caller.pressure.get_or_insert_with(|| Pressure::new(now));
        if pressure.is_over(now, bytes) {
            caller.is_pressed_out = true;
            self.hurry.store(true, Relaxed);
            caller.connection.close(close::STALLED, OTHERS_WAIT);
            // It may have further connections, on which the engine would wait.
            caller.cancel.cancel();
        }
    }

    /// Whether a caller was sent away because others waited.
    pub fn is_pressed_out(&self, id: u64) -> bool {
        self.lock().callers.iter().any(|c| c.id == id && c.is_pressed_out)
    }

    /// Set when the question that stands is to be taken back.
    pub fn hurry(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.hurry)
    }

    /// A caller has said which transfer it comes with. The same one of the same peer has come back, so its earlier
    /// connection is dead, whether it knows it or not.
    pub fn identify(&self, id: u64, secret: [u8; 16]) {
        let mut state = self.lock();
        let Some(at) = state.callers.iter().position(|c| c.id == id) else { return };
        let peer = state.callers[at].connection.peer();
        for caller in &state.callers {
            if caller.secret == Some(secret) && caller.connection.peer() == peer {
                caller.connection.close(close::OTHER, "you have come back on another connection");
            }
        }
        state.callers[at].secret = Some(secret);
    }

    /// A caller is gone. Must be called for each that was admitted.
    pub fn leave(&self, id: u64) {
        self.lock().callers.retain(|c| c.id != id);
        self.fewer.notify_all();
    }

    /// Tells every caller that this side stops, and takes no more in.
    pub fn stop_all(&self) {
        let mut state = self.lock();
        state.stopped = true;
        for caller in &state.callers {
            caller.cancel.cancel();
            // The engine looks at it only while files move.
            caller.connection.close(close::CANCELLED, "");
        }
    }

    /// Waits until all have left, for a while.
    pub fn wait_until_gone(&self) {
        let deadline = Instant::now() + LAST_WAIT;
        let mut state = self.lock();
        while !state.callers.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.fewer.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Plain lists; a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who goes so that one more of `peer` can be there: nobody, or this one. None if there is no room to be made.
fn make_room(state: &State, peer: NodeId, is_contact: bool) -> Option<Option<u64>> {
    if state.stopped {
        return None;
    }
    let is_theirs = |c: &&Caller| c.connection.peer() == peer;
    let is_silent = |c: &&Caller| c.secret.is_none();
    let callers = || state.callers.iter();
    if callers().filter(is_theirs).count() >= MAX_OF_ONE {
        return callers().filter(is_theirs).find(is_silent).map(|c| Some(c.id));
    }
    if callers().len() < MAX_CALLERS {
        return Some(None);
    }
    let stranger = |c: &&Caller| is_contact && !c.is_contact && !c.has_turn;
    callers().find(is_silent).or_else(|| callers().find(stranger)).map(|c| Some(c.id))
}
