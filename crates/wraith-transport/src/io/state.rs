//! The state of the I/O thread, and its end.
//!
//! Invariant: however the thread ends, every waiting task is woken, after the sockets are closed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use wraith_core::{CloseReason, ConnectionHandle, DoorId, Time};

use super::established::Established;
use super::happy_eyeballs::HappyEyeballs;
use super::movers::Movers;
use super::punching::Punching;
use crate::clock::Clock;
use crate::error::ConnectError;
use crate::lock::{WakeBatch, lock};
use crate::mover::{RecvSlots, SEND_MAX};
use crate::shared::{DoorShared, EndpointShared, InboxItem, Phase};

/// Maximum time of [`Endpoint::close`](crate::Endpoint::close): enough to deliver a last message
/// over a bad link, and bearable after Ctrl-C.
pub(crate) const CLOSE_WAIT_MAX: Duration = Duration::from_secs(3);

/// The state of the thread, locked while it is used.
pub(crate) struct IoThread {
    pub(super) movers: Movers,
    pub(super) core: wraith_core::Endpoint,
    pub(super) shared: Arc<EndpointShared>,
    pub(super) doors: HashMap<DoorId, OpenDoor>,
    pub(super) clock: Clock,
    pub(super) established: HashMap<ConnectionHandle, Established>,
    pub(super) connecting: Vec<HappyEyeballs>,
    pub(super) punching: Punching,
    /// Connections to visit in every round: they linger.
    pub(super) needs_poll: Vec<ConnectionHandle>,
    /// Tasks to wake at the end of the current batch.
    pub(super) wakes: WakeBatch,
    /// Working copy of the inbox.
    pub(super) ready: Vec<InboxItem>,
    pub(super) received: RecvSlots,
    /// Time at which the tasks are woken that no other task has woken.
    pub(super) relay_until: Time,
    /// End of the current sleep if nothing else happens.
    pub(super) sleep_until: Option<Time>,
    /// Buffer into which the core seals and from which a mover sends.
    pub(super) out: Box<[u8]>,
    /// Set while the endpoint closes: everything ends by this time.
    pub(super) close_deadline: Option<Time>,
    /// Connections closed by this side, which may have to retransmit CLOSE, and their doors. Those
    /// closed by the peer need no answer.
    pub(super) closing: Vec<(ConnectionHandle, DoorId)>,
}

/// A door that has not ended.
pub(super) struct OpenDoor {
    pub(super) shared: Arc<DoorShared>,
    /// Set while the door closes: its connections end by this time.
    pub(super) close_deadline: Option<Time>,
    /// The last handle was dropped.
    pub(super) released: bool,
}

impl OpenDoor {
    pub(super) fn new(shared: Arc<DoorShared>) -> Self {
        Self { shared, close_deadline: None, released: false }
    }
}

impl IoThread {
    pub(crate) fn new(
        movers: Movers,
        core: wraith_core::Endpoint,
        shared: Arc<EndpointShared>,
        first: Arc<DoorShared>,
    ) -> Self {
        Self {
            movers,
            core,
            shared,
            doors: HashMap::from([(first.id, OpenDoor::new(first))]),
            clock: Clock::new(),
            established: HashMap::new(),
            connecting: Vec::new(),
            punching: Punching::default(),
            needs_poll: Vec::new(),
            wakes: WakeBatch::default(),
            ready: Vec::new(),
            received: RecvSlots::new(),
            relay_until: Time::ZERO,
            sleep_until: None,
            out: vec![0; SEND_MAX].into_boxed_slice(),
            close_deadline: None,
            closing: Vec::new(),
        }
    }

    pub(super) fn prune_closing(&mut self) {
        let core = &mut self.core;
        self.closing.retain(|(handle, _)| core.connection(*handle).is_some());
    }
}

impl Drop for IoThread {
    /// Releases all waiting tasks, however the thread ends.
    fn drop(&mut self) {
        let now = self.clock.now();
        let mut wakes = std::mem::take(&mut self.wakes);
        for attempts in self.connecting.drain(..) {
            let reason = Some(ConnectError::EndpointClosed);
            attempts.abort(&mut self.core, now, reason, &mut wakes);
        }
        for (_, established) in self.established.drain() {
            established.on_closed(None, now, CloseReason::Local, &mut wakes);
        }
        self.punching.end_all(&mut wakes);
        self.shared.spare_streams.close();
        // Nothing is added to the inbox from here on.
        let unread = self.shared.inbox.close();
        let stop = |door: &DoorShared, wakes: &mut WakeBatch| {
            door.update(wakes, |state| {
                state.stopped = true;
                state.accepted.clear();
            });
        };
        self.doors.values().for_each(|door| stop(&door.shared, &mut wakes));
        let requests = {
            let mut state = lock(&self.shared.state);
            state.stopped = true;
            std::mem::take(&mut state.requests)
        };
        for (_, shared) in requests {
            shared.update(&mut wakes, |state| state.ended = true);
        }
        for object in unread {
            match object {
                InboxItem::Connection(shared) => shared.update(&mut wakes, |state| {
                    if matches!(state.phase, Phase::New(..)) {
                        state.phase = Phase::Failed(Some(ConnectError::EndpointClosed));
                    }
                }),
                // Its request to open was not read.
                InboxItem::Door(shared) => stop(&shared, &mut wakes),
                InboxItem::Stream(_) | InboxItem::Endpoint => {}
            }
        }
        // Sockets close first: a task that is woken may bind the same port again.
        self.movers.close();
        wakes.wake();
        self.shared.inbox.relay.pass_on();
    }
}
