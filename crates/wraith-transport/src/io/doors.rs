//! The doors of an endpoint in the I/O thread: how they open, change, close and end.
//!
//! Invariants: the end of a door ends its own connections only, except that the first door ends all
//! and the thread. A closing door ends as soon as its connections are over, at its deadline at the
//! latest.

use std::collections::HashSet;
use std::sync::Arc;

use wraith_core::{DoorId, Time};

use super::established::Established;
use super::state::{CLOSE_WAIT_MAX, IoThread, OpenDoor};
use crate::error::ConnectError;
use crate::lock::lock;
use crate::shared::{ConnectionShared, DoorShared};

impl IoThread {
    /// Returns the time by which the connections of a door end, if it closes.
    pub(super) fn closing_of(&self, door: DoorId) -> Option<Time> {
        let of_door = self.doors.get(&door).and_then(|door| door.close_deadline);
        self.close_deadline.or(of_door)
    }

    /// Executes the requests of a door's handles.
    pub(super) fn on_door_ready(&mut self, now: Time, shared: &Arc<DoorShared>) {
        shared.queued.clear();
        let id = shared.id;
        let (closing, released, unclaimed) = {
            let mut state = lock(&shared.state);
            if let Some(rules) = state.opening.take() {
                self.core.open_door(id, rules);
                self.doors.insert(id, OpenDoor::new(Arc::clone(shared)));
            }
            if let Some(admitted) = state.admitted.take() {
                self.core.set_admitted(id, admitted);
            }
            if let Some(access_keys) = state.access_keys.take() {
                self.core.set_access_keys(id, access_keys);
            }
            let gone = state.closing || state.released || state.accepts_no_more;
            if state.accepts_no_more {
                self.core.close_door(id);
            }
            let unclaimed =
                if gone { std::mem::take(&mut state.accepted) } else { Default::default() };
            (state.closing, state.released, unclaimed)
        };
        for shared in unclaimed {
            lock(&shared.state).abandoned = true;
            self.on_connection_ready(now, &shared);
        }
        let Some(door) = self.doors.get_mut(&id) else { return };
        door.released |= released;
        if closing || released {
            self.core.close_door(id);
        }
        if closing && door.close_deadline.is_none() {
            let deadline = now + CLOSE_WAIT_MAX;
            door.close_deadline = Some(deadline);
            let closes_all = id == DoorId::FIRST;
            if closes_all {
                self.close_deadline = Some(deadline);
                self.doors.keys().for_each(|id| self.core.close_door(*id));
            }
            let is_ours = |shared: &ConnectionShared| closes_all || shared.door == id;
            for i in (0..self.connecting.len()).rev() {
                if is_ours(self.connecting[i].shared()) {
                    self.abort_attempts(now, i, Some(ConnectError::EndpointClosed));
                }
            }
            let ours = self.established.iter().filter(|(_, of)| closes_all || of.door() == id);
            let handles: Vec<_> = ours.map(|(handle, _)| *handle).collect();
            handles.into_iter().for_each(|handle| self.visit(now, handle));
        }
    }

    /// Ends the doors whose connections are over. The first door ends with the thread.
    pub(super) fn end_doors(&mut self, now: Time) {
        let is_ending = |door: &OpenDoor| {
            door.shared.id != DoorId::FIRST && (door.released || door.close_deadline.is_some())
        };
        if !self.doors.values().any(is_ending) {
            return;
        }
        // Polling the timeout makes the core drop connections that are over.
        let _ = self.core.poll_timeout();
        self.prune_closing();
        let Self { doors, established, connecting, closing, wakes, .. } = self;
        let established = established.values().map(Established::door);
        let connecting = connecting.iter().map(|attempts| attempts.shared().door);
        let closing = closing.iter().map(|(_, door)| *door);
        let live: HashSet<_> = established.chain(connecting).chain(closing).collect();
        doors.retain(|id, door| {
            let deadline = door.close_deadline.is_some_and(|deadline| now >= deadline);
            let ends = is_ending(door) && (deadline || !live.contains(id));
            if ends {
                door.shared.update(wakes, |state| state.stopped = true);
            }
            !ends
        });
    }
}
