//! The numbers by which the core identifies the addresses of one mover.
//!
//! The table is bounded: beyond [`NAMES_MAX`] names, a name that was not used for a while is
//! evicted. If the evicted name was still a connection's address, the peer's next datagram gets a
//! new number, and the connection migrates as it would behind a NAT. Invariant: a number in the
//! table identifies one name, and its upper 8 bits identify the mover.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use wraith_core::PathAddr;

use crate::lock::lock;

/// Maximum number of names of one mover: far more than the peers of an endpoint.
const NAMES_MAX: usize = 4096;
/// Bits of a number below those of the mover.
const SERIAL_BITS: u32 = 24;

/// The addresses of one mover, as names of the mover and as numbers of the core
/// ([`PathAddr::Via`]). Clones share one table.
#[derive(Clone, Debug)]
pub struct AddressTable(Arc<Mutex<Table>>);

#[derive(Debug)]
struct Table {
    mover: u32,
    serial: u32,
    by_name: HashMap<Arc<[u8]>, NonZeroU32>,
    by_number: HashMap<NonZeroU32, Entry>,
    /// Eviction order, oldest first.
    order: VecDeque<NonZeroU32>,
}

#[derive(Debug)]
struct Entry {
    name: Arc<[u8]>,
    /// Whether the name was used after it was last considered for eviction.
    used: bool,
}

impl AddressTable {
    /// Creates a table for the mover with this index, from 1.
    pub(crate) fn new(mover: usize) -> Self {
        Self(Arc::new(Mutex::new(Table {
            mover: mover as u32,
            serial: 0,
            by_name: HashMap::new(),
            by_number: HashMap::new(),
            order: VecDeque::new(),
        })))
    }

    /// Returns the core's number of the address `name`, assigning one if needed. Allocates only for
    /// a new name.
    pub fn path(&self, name: &[u8]) -> PathAddr {
        PathAddr::Via(lock(&self.0).number(name))
    }

    /// Returns the mover's name of an address; `None` if it belongs to another mover, or was
    /// evicted.
    pub fn name(&self, path: PathAddr) -> Option<Arc<[u8]>> {
        let PathAddr::Via(number) = path else { return None };
        let mut table = lock(&self.0);
        let entry = table.by_number.get_mut(&number)?;
        entry.used = true;
        Some(Arc::clone(&entry.name))
    }
}

/// Returns the index, from 1, of a number's mover.
pub(crate) fn mover_of(number: NonZeroU32) -> usize {
    (number.get() >> SERIAL_BITS) as usize
}

impl Table {
    fn number(&mut self, name: &[u8]) -> NonZeroU32 {
        if let Some(number) = self.by_name.get(name) {
            if let Some(entry) = self.by_number.get_mut(number) {
                entry.used = true;
            }
            return *number;
        }
        while self.order.len() >= NAMES_MAX {
            self.evict();
        }
        let number = self.draw();
        let name: Arc<[u8]> = name.into();
        self.by_name.insert(Arc::clone(&name), number);
        self.by_number.insert(number, Entry { name, used: false });
        self.order.push_back(number);
        number
    }

    /// Returns an unused number.
    fn draw(&mut self) -> NonZeroU32 {
        loop {
            self.serial = (self.serial + 1) & ((1 << SERIAL_BITS) - 1);
            let number = NonZeroU32::new(self.mover << SERIAL_BITS | self.serial);
            let number = number.expect("movers count from 1");
            if !self.by_number.contains_key(&number) {
                return number;
            }
        }
    }

    /// Evicts the oldest name that was not used after it was last considered.
    fn evict(&mut self) {
        let Some(number) = self.order.pop_front() else { return };
        let Some(entry) = self.by_number.get_mut(&number) else { return };
        if std::mem::take(&mut entry.used) {
            self.order.push_back(number);
        } else if let Some(entry) = self.by_number.remove(&number) {
            self.by_name.remove(&entry.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number_and_a_number_identifies_its_mover() {
        let (first, second) = (AddressTable::new(1), AddressTable::new(2));
        let path = first.path(b"relay");
        assert_eq!(first.path(b"relay"), path);
        assert_eq!(&*first.name(path).unwrap(), b"relay");
        assert_ne!(first.path(b"other"), path);
        assert_ne!(second.path(b"relay"), path);
        assert_eq!(second.name(path), None);
        let PathAddr::Via(number) = path else { panic!("a number is expected") };
        assert_eq!(mover_of(number), 1);
    }

    #[test]
    fn a_flood_of_names_does_not_evict_one_in_use() {
        let names = AddressTable::new(1);
        let used = names.path(b"used");
        for i in 0..4 * NAMES_MAX as u32 {
            names.path(&i.to_be_bytes());
            assert!(names.name(used).is_some());
        }
        let table = lock(&names.0);
        assert_eq!(table.order.len(), NAMES_MAX);
        assert!(table.by_name.len() == NAMES_MAX && table.by_number.len() == NAMES_MAX);
    }
}
