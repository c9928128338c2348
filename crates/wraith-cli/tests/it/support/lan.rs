//! The local network of these tests, which is multicast on loopback: one port for everybody on the machine.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The network for one test at a time: two senders on one network may pick the same number of three digits, and
/// everybody hears a flood.
pub fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    // A test that failed leaves nothing behind that could disturb the next.
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}
