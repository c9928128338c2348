//! A memory budget shared by many connections. No connection can take the whole budget.
//!
//! Invariant: the bytes taken and not returned never exceed the total.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A queue may hold at most this fraction of the free bytes, so full queues leave room for other
/// queues (dynamic thresholds, Choudhury and Hahne 1998).
const SHARE: usize = 8;

/// The free bytes.
#[derive(Debug)]
pub struct Budget(AtomicUsize);

impl Budget {
    /// Creates a budget of `bytes`, all free.
    pub fn new(bytes: usize) -> Self {
        Self(AtomicUsize::new(bytes))
    }

    /// Takes `bytes` for a queue that already holds `held`. Returns false if the queue would exceed
    /// its share.
    pub fn take(&self, held: usize, bytes: usize) -> bool {
        let take = |free: usize| {
            let fits = held + bytes <= free / SHARE;
            if fits { free.checked_sub(bytes) } else { None }
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Returns `bytes` to the budget.
    pub fn release(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the number of free bytes.
    #[cfg(test)]
    pub fn free(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_queues_leave_room_for_another() {
        let budget = Budget::new(1 << 20);
        for _ in 0..16 {
            let mut held = 0;
            while budget.take(held, 1024) {
                held += 1024;
            }
        }
        assert!(budget.free() > 16 * 1024, "{}", budget.free());
        assert!(budget.take(0, 1024));
    }

    #[test]
    fn released_bytes_can_be_taken_again() {
        let budget = Budget::new(8000);
        assert!(budget.take(0, 1000) && !budget.take(1000, 1));
        budget.release(1000);
        assert_eq!(budget.free(), 8000);
        assert!(budget.take(0, 1000));
    }
}
