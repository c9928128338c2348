//! The core's events in the I/O thread: connections that begin, change and end.

use std::sync::Arc;

use tracing::debug;
use wraith_core::{CloseReason, ConnectionHandle, Event, Time, code};

use super::established::Established;
use super::happy_eyeballs::Outcome;
use super::state::IoThread;
use crate::error::ConnectError;
use crate::lock::lock;
use crate::shared::{CLOCK_DIFFERENCES_MAX, ConnectionShared, DoorShared, Phase};

/// Incoming connections that wait for [`accept`](crate::Endpoint::accept); further ones are closed.
const ACCEPT_MAX: usize = 128;

impl IoThread {
    /// Handles the core's events. Returns true if there were any.
    pub(super) fn handle_events(&mut self, now: Time) -> bool {
        let mut any = false;
        while let Some((handle, event)) = self.core.poll_event() {
            any = true;
            self.on_event(now, handle, event);
        }
        while let Some(difference) = self.core.poll_clock_difference() {
            let Some(door) = self.doors.get(&difference.door) else { continue };
            door.shared.update(&mut self.wakes, |state| {
                if state.clock_differences.len() < CLOCK_DIFFERENCES_MAX {
                    state.clock_differences.push_back(difference);
                }
            });
        }
        any |= self.punching.handle_events(&mut self.core, &mut self.wakes);
        any
    }

    fn on_event(&mut self, now: Time, handle: ConnectionHandle, event: Event) {
        if let Event::Closed(reason) = event {
            self.on_closed(now, handle, reason);
        } else if let Some(established) = self.established.get_mut(&handle) {
            if let Event::PathChanged { remote } = event {
                debug!(%remote, "the path changed");
                established.on_path_changed(self.movers.addr(remote), &mut self.wakes);
            } else if let Event::MigrationFailed { remote } = event {
                established.on_move_failed(self.movers.addr(remote), &mut self.wakes);
            } else if let Some(core) = self.core.connection(handle) {
                established.on_event(core, now, event, &mut self.wakes);
            }
        } else if event == Event::Connected {
            match self.connecting.iter().position(|attempts| attempts.has_attempt(handle)) {
                Some(i) => {
                    let attempts = self.connecting.swap_remove(i);
                    let shared = attempts.finish_with_winner(&mut self.core, now, handle);
                    self.start(now, handle, shared);
                }
                None => self.on_incoming(now, handle),
            }
        }
    }

    fn on_incoming(&mut self, now: Time, handle: ConnectionHandle) {
        let door = self.core.door(handle).and_then(|id| self.doors.get(&id));
        let door = door.filter(|door| !door.released && door.close_deadline.is_none());
        let door = door.filter(|door| !lock(&door.shared.state).accepts_no_more);
        let door = door.map(|door| Arc::clone(&door.shared));
        let Some(core) = self.core.connection(handle) else { return };
        if core.is_closed() {
            // A losing attempt of this endpoint: it connected in the same round as the winner.
            return;
        }
        // Only this thread adds to the queue, so the free place cannot be taken meanwhile.
        let has_room = |door: &Arc<DoorShared>| {
            let queue = &mut lock(&door.state).accepted;
            if queue.len() >= ACCEPT_MAX {
                queue.retain(|shared| !shared.is_over());
            }
            queue.len() < ACCEPT_MAX
        };
        let Some(door) = door.filter(has_room).filter(|_| self.close_deadline.is_none()) else {
            core.close(now, code::NO_ERROR, "busy");
            return;
        };
        let shared = ConnectionShared::new(door.id, Phase::Connecting, core.peer(), &self.shared);
        self.start(now, handle, Arc::clone(&shared));
        door.update(&mut self.wakes, |state| state.accepted.push_back(shared));
    }

    /// Registers a connection that is established.
    fn start(&mut self, now: Time, handle: ConnectionHandle, shared: Arc<ConnectionShared>) {
        let Some(core) = self.core.connection(handle) else { return };
        let remote = self.movers.addr(core.remote());
        debug!(local = %self.movers.local_addr(), remote = %core.remote(), "connection established");
        let established = Established::new(handle, shared, core, remote, &mut self.wakes);
        self.established.insert(handle, established);
        self.visit(now, handle);
    }

    fn on_closed(&mut self, now: Time, handle: ConnectionHandle, reason: CloseReason) {
        if let Some(established) = self.established.remove(&handle) {
            if !matches!(reason, CloseReason::Peer { .. } | CloseReason::IdleTimeout) {
                self.prune_closing();
                self.closing.push((handle, established.door()));
            }
            let mut core = self.core.connection(handle);
            if let Some(core) = &mut core {
                debug!(remote = %core.remote(), %reason, "connection closed");
            }
            established.on_closed(core, now, reason, &mut self.wakes);
        } else if let Some(i) =
            self.connecting.iter().position(|attempts| attempts.has_attempt(handle))
        {
            self.connecting[i].on_attempt_failed(handle, ConnectError::Closed(reason));
            self.advance_attempts(now, i);
        }
    }

    /// Starts the due connection attempts at `i`; removes `i` if all have failed. Returns true if
    /// it was removed.
    fn advance_attempts(&mut self, now: Time, i: usize) -> bool {
        let over = self.connecting[i].advance(&mut self.core, now) == Outcome::AllFailed;
        if over {
            self.abort_attempts(now, i, None);
        }
        over
    }

    /// Ends the connection attempts at `i`. The caller gets `reason`, or else their own.
    pub(super) fn abort_attempts(&mut self, now: Time, i: usize, reason: Option<ConnectError>) {
        let attempts = self.connecting.swap_remove(i);
        attempts.abort(&mut self.core, now, reason, &mut self.wakes);
    }

    /// Polls everything that waits for a change that no event reports.
    pub(super) fn poll_waiting(&mut self, now: Time) {
        let mut i = 0;
        while i < self.connecting.len() {
            i += usize::from(!self.advance_attempts(now, i));
        }
        let mut needs_poll = std::mem::take(&mut self.needs_poll);
        needs_poll.retain(|handle| {
            let door = self.established.get(handle).map(Established::door);
            let closing = door.and_then(|door| self.closing_of(door));
            match (self.established.get_mut(handle), self.core.connection(*handle)) {
                (Some(established), Some(core)) => {
                    established.on_ready(core, now, closing, &mut self.wakes)
                }
                _ => false,
            }
        });
        self.needs_poll = needs_poll;
    }
}
