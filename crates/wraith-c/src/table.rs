//! Handle table: maps the numbers that C code holds to objects.
//!
//! ```text
//!   63      56 55                  24 23            0
//!   ┌─────────┬──────────────────────┬───────────────┐
//!   │  kind   │  generation, from 1  │     index     │
//!   └─────────┴──────────────────────┴───────────────┘
//! ```
//!
//! Invariant: no number is issued twice. A reused slot gets another generation, and a slot whose
//! generations are used up stays empty.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::status::wraith_status_t::{
    WRAITH_EXHAUSTED, WRAITH_INVALID_HANDLE, WRAITH_INVALID_STATE, WRAITH_PANICKED,
};
use crate::status::{Failure, Outcome};

const INDEX_BITS: u32 = 24;
const KIND_SHIFT: u32 = 56;

/// The kind of object behind a handle.
#[repr(u8)]
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Identity = 1,
    Hasher,
    Node,
    Transfer,
    Handshake,
    Session,
    Vault,
    Ratchet,
    Prekeys,
    Splitter,
    Reassembler,
    Service,
    Connection,
    Stream,
}

/// All objects of one kind. The table of a handle type is a static with the name of the type.
pub struct Table<T> {
    kind: Kind,
    slots: RwLock<Slots<T>>,
}

struct Slots<T> {
    all: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    generation: u32,
    value: Option<Arc<T>>,
}

impl<T> Table<T> {
    pub const fn new(kind: Kind) -> Self {
        Self { kind, slots: RwLock::new(Slots { all: Vec::new(), free: Vec::new() }) }
    }

    /// Stores `value` until [`Self::remove`] and returns its number, which is never 0.
    pub fn insert(&self, value: T) -> Outcome<u64> {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let index = match slots.free.pop() {
            Some(index) => index,
            None if slots.all.len() < 1 << INDEX_BITS => {
                slots.all.push(Slot { generation: 1, value: None });
                (slots.all.len() - 1) as u32
            }
            None => return Err(Failure::new(WRAITH_EXHAUSTED, "there are too many handles")),
        };
        let slot = &mut slots.all[index as usize];
        slot.value = Some(Arc::new(value));
        Ok((self.kind as u64) << KIND_SHIFT
            | u64::from(slot.generation) << INDEX_BITS
            | u64::from(index))
    }

    /// Returns the object of `handle`. It stays alive while the caller holds it, even if the handle
    /// is removed.
    pub fn get(&self, handle: u64) -> Outcome<Arc<T>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let (index, generation) = self.parts(handle)?;
        let slot = slots.all.get(index).filter(|slot| slot.generation == generation);
        slot.and_then(|slot| slot.value.clone()).ok_or_else(invalid)
    }

    /// Invalidates `handle` and returns its object.
    pub fn remove(&self, handle: u64) -> Outcome<Arc<T>> {
        let (index, generation) = self.parts(handle)?;
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.all.get_mut(index).filter(|slot| slot.generation == generation);
        let slot = slot.ok_or_else(invalid)?;
        let value = slot.value.take().ok_or_else(invalid)?;
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            slots.free.push(index as u32);
        }
        Ok(value)
    }

    /// Invalidates `handle` and drops its object once nobody uses it.
    pub fn free(&self, handle: u64) -> Outcome {
        self.remove(handle).map(drop)
    }

    fn parts(&self, handle: u64) -> Outcome<(usize, u32)> {
        if handle >> KIND_SHIFT != self.kind as u64 {
            return Err(invalid());
        }
        let index = (handle & ((1 << INDEX_BITS) - 1)) as usize;
        Ok((index, (handle >> INDEX_BITS) as u32))
    }
}

impl<T> Table<Mutex<T>> {
    /// Stores `value` until [`Self::remove`] and returns its number.
    pub fn add(&self, value: T) -> Outcome<u64> {
        self.insert(Mutex::new(value))
    }

    /// Claims the object of `handle` for this thread. A callback that uses the handle for which it
    /// is called is refused: it would deadlock.
    pub fn hold(&self, handle: u64) -> Outcome<Held<T>> {
        Ok(Held { value: self.get(handle)?, _in_use: InUseGuard::new(handle)? })
    }
}

/// An object that this thread may lock.
pub struct Held<T> {
    value: Arc<Mutex<T>>,
    _in_use: InUseGuard,
}

impl<T> Held<T> {
    /// Waits until no other thread uses the object. An object that a panic left inconsistent is not
    /// used again.
    pub fn lock(&self) -> Outcome<MutexGuard<'_, T>> {
        let words = "an earlier call has failed inside";
        self.value.lock().map_err(|_| Failure::new(WRAITH_PANICKED, words))
    }
}

thread_local! {
    /// The handles in use by this thread.
    static IN_USE: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Marks a handle as in use by this thread, until it is dropped.
struct InUseGuard;

impl InUseGuard {
    fn new(handle: u64) -> Outcome<Self> {
        let is_free = IN_USE.with_borrow_mut(|held| {
            let is_free = !held.contains(&handle);
            if is_free {
                held.push(handle);
            }
            is_free
        });
        let words = "a callback cannot use the handle that it is called for";
        is_free.then(|| Self).ok_or_else(|| Failure::new(WRAITH_INVALID_STATE, words))
    }
}

impl Drop for InUseGuard {
    fn drop(&mut self) {
        // Handles are released in reverse order.
        IN_USE.with_borrow_mut(Vec::pop);
    }
}

fn invalid() -> Failure {
    Failure::new(WRAITH_INVALID_HANDLE, "this handle is 0, was freed, or is of another kind")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_never_reused() {
        let table = Table::new(Kind::Hasher);
        let first = table.insert(1).unwrap();
        assert_eq!(*table.get(first).unwrap(), 1);
        assert_eq!(*table.remove(first).unwrap(), 1);
        let second = table.insert(2).unwrap();
        assert_ne!(first, second);
        assert_eq!(table.get(first).unwrap_err().status, WRAITH_INVALID_HANDLE);
        assert_eq!(table.remove(first).unwrap_err().status, WRAITH_INVALID_HANDLE);
        assert_eq!(*table.get(second).unwrap(), 2);
    }

    #[test]
    fn a_slot_whose_generations_are_used_up_stays_empty() {
        let table = Table::new(Kind::Hasher);
        let first = table.insert(()).unwrap();
        table.slots.write().unwrap().all[0].generation = u32::MAX;
        let last = first | u64::from(u32::MAX) << INDEX_BITS;
        table.remove(last).unwrap();
        assert!(table.get(last).is_err());
        let other = table.insert(()).unwrap();
        assert_eq!(other & ((1 << INDEX_BITS) - 1), 1);
    }

    #[test]
    fn handles_of_another_kind_zero_and_garbage_are_invalid() {
        let (one, other) = (Table::new(Kind::Hasher), Table::new(Kind::Session));
        let handle = one.insert(()).unwrap();
        other.insert(()).unwrap();
        for garbage in [handle, 0, 1, u64::MAX, handle ^ 1 << 40] {
            assert_eq!(other.get(garbage).unwrap_err().status, WRAITH_INVALID_HANDLE);
        }
    }

    #[test]
    fn an_object_is_unusable_after_a_panic_and_others_stay_usable() {
        let table = Table::new(Kind::Hasher);
        let (broken, whole) =
            (table.insert(Mutex::new(0)).unwrap(), table.insert(Mutex::new(0)).unwrap());
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| -> () {
            let held = table.hold(broken).unwrap();
            let _locked = held.lock().unwrap();
            panic!("a test")
        }));
        assert!(panic.is_err());
        assert_eq!(table.hold(broken).unwrap().lock().unwrap_err().status, WRAITH_PANICKED);
        assert!(table.hold(whole).unwrap().lock().is_ok());
    }
}
