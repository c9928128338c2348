//! One transfer at a time: whoever comes meanwhile waits with its offer.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How often a waiting caller is looked at, whether it is still there.
const GLANCE: Duration = Duration::from_millis(200);

/// The turn.
#[derive(Debug, Default)]
pub struct Turn {
    taken: Mutex<bool>,
    free: Condvar,
}

/// Whoever holds this has the turn.
#[derive(Debug)]
pub struct Held<'a>(&'a Turn);

impl Turn {
    /// Waits for the turn; None as soon as it is of no use any more.
    pub fn take(&self, is_pointless: impl Fn() -> bool) -> Option<Held<'_>> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken {
            if is_pointless() {
                return None;
            }
            let waited = self.free.wait_timeout(taken, GLANCE);
            taken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if is_pointless() {
            return None;
        }
        *taken = true;
        Some(Held(self))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use super::*;

    #[test]
    fn nobody_has_the_turn_while_somebody_has_it() {
        let (turn, inside) = (Turn::default(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _held = turn.take(|| false).unwrap();
                        assert_eq!(inside.fetch_add(1, SeqCst), 0);
                        inside.fetch_sub(1, SeqCst);
                    }
                });
            }
        });
    }

    #[test]
    fn who_has_gone_gets_no_turn_and_takes_none_away() {
        let turn = Turn::default();
        assert!(turn.take(|| true).is_none());
        let held = turn.take(|| false).unwrap();
        assert!(turn.take(|| true).is_none());
        drop(held);
        assert!(turn.take(|| false).is_some());
    }
}
