//! The connections of an endpoint, by handle.
//!
//! A handle is a slot number and the slot's generation. A stale handle therefore finds nothing, and
//! a lookup is one index.

use crate::connection::Connection;
use crate::event::ConnectionHandle;

#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    len: usize,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn insert(&mut self, connection: Connection) -> ConnectionHandle {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.connection = Some(Box::new(connection));
        self.len += 1;
        handle(slot.generation, index)
    }

    pub(crate) fn get(&self, handle: ConnectionHandle) -> Option<&Connection> {
        let slot = self.slots.get(handle.0 as u32 as usize)?;
        let current = u64::from(slot.generation) == handle.0 >> 32;
        slot.connection.as_deref().filter(|_| current)
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
        slot.generation = slot.generation.wrapping_add(1);
        self.len -= 1;
        self.free.push(index);
    }
}

fn handle(generation: u32, index: u32) -> ConnectionHandle {
    ConnectionHandle(u64::from(generation) << 32 | u64::from(index))
}
