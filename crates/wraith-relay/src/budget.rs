//! Memory that many connections share: each may use what is left, and none all of it.
//!
//! Invariant: what is taken and not given back is at most the whole.

use std::sync::atomic::{AtomicUsize, Ordering};

/// One queue may hold at most this part of what nobody uses, so that those that are full leave room for others (dynamic
/// thresholds, Choudhury and Hahne 1998).
const SHARE: usize = 8;

/// Bytes that nobody uses.
#[derive(Debug)]
pub struct Budget(AtomicUsize);

impl Budget {
    /// All of them.
    pub fn new(bytes: usize) -> Self {
        Self(AtomicUsize::new(bytes))
    }

    /// Takes `bytes` for a queue that holds `held` of them already. False if that would be more than its share.
    pub fn take(&self, held: usize, bytes: usize) -> bool {
        let take = |free: usize| {
            let fits = held + bytes <= free / SHARE;
            if fits { free.checked_sub(bytes) } else { None }
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Gives `bytes` back.
    pub fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What nobody uses.
    #[cfg(test)]
    pub fn free(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_that_take_all_they_get_leave_room_for_one_more() {
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
    fn what_is_given_back_can_be_taken_again() {
        let budget = Budget::new(8000);
        assert!(budget.take(0, 1000) && !budget.take(1000, 1));
        budget.give_back(1000);
        assert_eq!(budget.free(), 8000);
        assert!(budget.take(0, 1000));
    }
}
