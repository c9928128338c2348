//! The connections of an endpoint, by handle.
//!
//! A handle is a slot number and the slot's generation. A stale handle therefore finds nothing, and
//! a lookup is one index.

use std::collections::HashMap;

use crate::connection::Connection;
use crate::door::DoorId;
use crate::event::ConnectionHandle;

#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    len: usize,
    /// Number of connections that came through each door, without zeros.
    by_door: HashMap<DoorId, usize>,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
    /// The door by which the peer came; `None` if this side dialled.
    door: Option<DoorId>,
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn insert(
        &mut self,
        connection: Connection,
        door: Option<DoorId>,
    ) -> ConnectionHandle {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.connection = Some(Box::new(connection));
        slot.door = door;
        if let Some(door) = door {
            *self.by_door.entry(door).or_default() += 1;
        }
        self.len += 1;
        handle(slot.generation, index)
    }

    pub(crate) fn get(&self, handle: ConnectionHandle) -> Option<&Connection> {
        self.slot(handle)?.connection.as_deref()
    }

    /// Returns the door by which the peer of a connection came.
    pub(crate) fn door(&self, handle: ConnectionHandle) -> Option<DoorId> {
        self.slot(handle)?.door
    }

    /// Returns the number of connections that came through `door`.
    pub(crate) fn count_of(&self, door: DoorId) -> usize {
        self.by_door.get(&door).copied().unwrap_or(0)
    }

    fn slot(&self, handle: ConnectionHandle) -> Option<&Slot> {
        let slot = self.slots.get(handle.0 as u32 as usize)?;
        (u64::from(slot.generation) == handle.0 >> 32).then_some(slot)
    }

    pub(crate) fn get_mut(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(handle.0 as u32 as usize)?;
        if u64::from(slot.generation) != handle.0 >> 32 {
            return None;
        }
        slot.connection.as_deref_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.slots.iter().filter_map(|slot| slot.connection.as_deref())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (ConnectionHandle, &mut Connection)> {
        self.slots.iter_mut().enumerate().filter_map(|(index, slot)| {
            let handle = handle(slot.generation, index as u32);
            Some((handle, slot.connection.as_deref_mut()?))
        })
    }

    pub(crate) fn remove(&mut self, handle: ConnectionHandle) {
        let index = handle.0 as u32;
        let Some(slot) = self.slots.get_mut(index as usize) else { return };
        if u64::from(slot.generation) != handle.0 >> 32 || slot.connection.is_none() {
            return;
        }
        slot.connection = None;
        if let Some(door) = slot.door.take()
            && let Some(count) = self.by_door.get_mut(&door)
        {
            *count -= 1;
            if *count == 0 {
                self.by_door.remove(&door);
            }
        }
        slot.generation = slot.generation.wrapping_add(1);
        self.len -= 1;
        self.free.push(index);
    }
}

fn handle(generation: u32, index: u32) -> ConnectionHandle {
    ConnectionHandle(u64::from(generation) << 32 | u64::from(index))
}
