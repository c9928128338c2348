//! The local network of the tests: multicast on loopback, with one port for the whole machine.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the network for one test. Two senders on it may pick the same three-digit nameplate, and a
/// flood reaches every test.
pub fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    // A failed test leaves nothing that could disturb the next one.
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}
