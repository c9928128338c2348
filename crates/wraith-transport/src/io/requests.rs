//! The requests of the handles in the I/O thread: it visits the objects in the inbox.

use std::sync::Arc;

use wraith_core::{ConnectionHandle, Time};

use super::established::Established;
use super::happy_eyeballs::{Destination, HappyEyeballs};
use super::state::IoThread;
use crate::lock::lock;
use crate::shared::{ConnectionShared, InboxItem, Phase};

impl IoThread {
    pub(super) fn handle_inbox(&mut self, now: Time) {
        let mut ready = std::mem::take(&mut self.ready);
        self.shared.inbox.take(&mut ready);
        for object in ready.drain(..) {
            match object {
                InboxItem::Stream(stream) => {
                    stream.queued.clear();
                    let Some(established) = self.established.get_mut(&stream.connection) else {
                        continue;
                    };
                    let Some(core) = self.core.connection(stream.connection) else { continue };
                    // Once closed, the Closed event fails the queues with the right reason.
                    if !core.is_closed() {
                        established.on_stream_ready(core, now, &stream, &mut self.wakes);
                    }
                }
                InboxItem::Connection(shared) => {
                    shared.queued.clear();
                    self.on_connection_ready(now, &shared);
                }
                InboxItem::Door(shared) => self.on_door_ready(now, &shared),
                InboxItem::Endpoint => self.on_endpoint_ready(now),
            }
        }
        self.ready = ready;
    }

    pub(super) fn on_connection_ready(&mut self, now: Time, shared: &Arc<ConnectionShared>) {
        let closing = self.closing_of(shared.door);
        let mut state = lock(&shared.state);
        let abandoned = state.abandoned;
        match &mut state.phase {
            Phase::New(addresses, access_key) => {
                let is_gone = !self.doors.contains_key(&shared.door);
                let (addresses, access_key) = (std::mem::take(addresses), access_key.clone());
                let to = Destination { peer: state.peer, access_key };
                let given_up = abandoned || is_gone || closing.is_some();
                state.phase = if given_up { Phase::Failed(None) } else { Phase::Connecting };
                drop(state);
                if given_up {
                    shared.update(&mut self.wakes, |_| ());
                } else {
                    let addresses =
                        addresses.iter().filter_map(|addr| self.movers.path(addr)).collect();
                    self.connecting.push(HappyEyeballs::new(
                        Arc::clone(shared),
                        to,
                        addresses,
                        now,
                    ));
                }
            }
            Phase::Connecting if abandoned => {
                drop(state);
                if let Some(i) =
                    self.connecting.iter().position(|attempts| attempts.belongs_to(shared))
                {
                    self.abort_attempts(now, i, None);
                }
            }
            Phase::Open(handle) => {
                let handle = *handle;
                drop(state);
                self.start_move(now, handle);
                self.visit(now, handle);
            }
            Phase::Connecting | Phase::Failed(_) | Phase::Closed(_) => {}
        }
    }

    /// Starts the move that the connection's application has requested, if any.
    fn start_move(&mut self, now: Time, handle: ConnectionHandle) {
        let (Some(established), Some(core)) =
            (self.established.get_mut(&handle), self.core.connection(handle))
        else {
            return;
        };
        let Some(to) = established.take_move() else { return };
        match self.movers.path(&to) {
            Some(path) if core.migrate_to(now, path) => {}
            Some(path) if core.remote() == path => {
                established.on_path_changed(Some(to), &mut self.wakes);
            }
            _ => established.on_move_failed(Some(to), &mut self.wakes),
        }
    }

    /// Executes a connection's requests, and schedules it for every round if it needs that.
    pub(super) fn visit(&mut self, now: Time, handle: ConnectionHandle) {
        let Some(door) = self.established.get(&handle).map(Established::door) else { return };
        let closing = self.closing_of(door);
        let (Some(established), Some(core)) =
            (self.established.get_mut(&handle), self.core.connection(handle))
        else {
            return;
        };
        if established.on_ready(core, now, closing, &mut self.wakes)
            && !self.needs_poll.contains(&handle)
        {
            self.needs_poll.push(handle);
        }
    }

    fn on_endpoint_ready(&mut self, now: Time) {
        self.shared.queued.clear();
        for request in std::mem::take(&mut lock(&self.shared.state).requests) {
            self.punching.start(&mut self.core, &self.movers, now, request, &mut self.wakes);
        }
        self.punching.apply_requests(&mut self.core, now);
    }
}
