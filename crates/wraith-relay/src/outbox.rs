//! The send queue of one TLS connection: any thread appends frames, and the connection's task takes
//! them.
//!
//! Datagrams beyond the limit are dropped, as a network drops them. Control frames are never
//! dropped: if the client does not read them, the connection ends.
//!
//! Invariant: the total of queued bytes and of bytes taken but not written yet is bounded. Control
//! frames hold at most [`CONTROL_HELD_MAX`]. Datagrams hold at most their limit and are counted in
//! the budget that all connections share.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::budget::Budget;
use crate::frame::{DATAGRAM_FRAME_HEAD, put_datagram};
use crate::header::WireId;

/// Most queued bytes of control frames, many times the normal need.
const CONTROL_HELD_MAX: usize = 16 * 1024;

/// Send queue of one connection; see the module documentation.
pub struct Outbox {
    state: Mutex<QueueState>,
    /// Copy of the state's `closed` that is read without the lock.
    ended: AtomicBool,
    /// Most bytes of datagrams.
    most: usize,
    budget: Arc<Budget>,
}

#[derive(Default)]
struct QueueState {
    bytes: Vec<u8>,
    /// Bytes of datagrams, queued and taken.
    datagrams: usize,
    /// Bytes of datagrams that are taken and may be unwritten.
    taken: usize,
    control: usize,
    waker: Option<Waker>,
    /// Waker of the task that waits for the close.
    closer: Option<Waker>,
    closed: bool,
}

impl Outbox {
    /// Creates an empty queue for at most `most` bytes of datagrams.
    pub fn new(most: usize, budget: Arc<Budget>) -> Self {
        Self { state: Mutex::default(), ended: AtomicBool::new(false), most, budget }
    }

    /// Appends a datagram frame. Returns false if it is dropped.
    pub fn push_datagram(&self, id: WireId, datagram: &[u8]) -> bool {
        let len = DATAGRAM_FRAME_HEAD + datagram.len();
        let mut state = self.lock();
        let held = state.datagrams;
        if state.closed || held + len > self.most || !self.budget.take(held, len) {
            return false;
        }
        state.datagrams += len;
        put_datagram(&mut state.bytes, id, datagram);
        state.wake();
        true
    }

    /// Appends the frames that `write` writes. Ends the connection if too many bytes are queued.
    pub fn push_control(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let before = state.bytes.len();
        write(&mut state.bytes);
        state.control += state.bytes.len() - before;
        if state.control > CONTROL_HELD_MAX {
            self.end(&mut state);
        }
        state.wake();
    }

    /// Polls for the close.
    pub fn poll_closed(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.closed {
            return Poll::Ready(());
        }
        if !state.closer.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.closer = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Reports whether the queue is closed, which means that the connection no longer belongs to
    /// its client. A caller that a lock orders after [`Self::close`] sees the close.
    pub fn is_closed(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Swaps the queued bytes into `empty`; bytes taken earlier are treated as written. Returns
    /// false once the queue is closed. If nothing is queued, the task is woken by the next frame.
    pub fn take(&self, cx: &Context<'_>, empty: &mut Vec<u8>) -> bool {
        debug_assert!(empty.is_empty(), "what was taken before is written");
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        let written = std::mem::take(&mut state.taken);
        state.datagrams -= written;
        self.budget.release(written);
        if state.bytes.is_empty() {
            if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                state.waker = Some(cx.waker().clone());
            }
        } else {
            std::mem::swap(&mut state.bytes, empty);
            state.taken = state.datagrams;
            state.control = 0;
        }
        true
    }

    /// Closes the queue and drops its content; the connection's task ends. Taken bytes stay counted
    /// until the queue is dropped.
    pub fn close(&self) {
        let mut state = self.lock();
        self.end(&mut state);
        let held = state.datagrams - state.taken;
        state.datagrams = state.taken;
        state.bytes = Vec::new();
        self.budget.release(held);
        state.wake();
    }

    fn end(&self, state: &mut QueueState) {
        state.closed = true;
        self.ended.store(true, Ordering::Release);
        if let Some(waker) = state.closer.take() {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.budget.release(self.lock().datagrams);
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").field("most", &self.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox(most: usize) -> (Outbox, Arc<Budget>) {
        let budget = Arc::new(Budget::new(1 << 20));
        (Outbox::new(most, Arc::clone(&budget)), budget)
    }

    fn take(outbox: &Outbox) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        outbox.take(&Context::from_waker(Waker::noop()), &mut bytes).then_some(bytes)
    }

    #[test]
    fn a_full_outbox_drops_datagrams_until_some_are_written() {
        let (outbox, budget) = outbox(100);
        assert!(outbox.push_datagram(1, &[0; 40]));
        assert!(!outbox.push_datagram(1, &[0; 60]));
        assert_eq!(take(&outbox).unwrap().len(), 51);
        assert!(!outbox.push_datagram(1, &[0; 60]), "taken is not written");
        assert_eq!(take(&outbox), Some(Vec::new()));
        assert_eq!(budget.free(), 1 << 20);
        assert!(outbox.push_datagram(1, &[0; 60]));
        drop(outbox);
        assert_eq!(budget.free(), 1 << 20);
    }

    #[test]
    fn taken_bytes_stay_counted_until_the_connection_ends() {
        let (outbox, budget) = outbox(1000);
        assert!(outbox.push_datagram(1, &[0; 40]));
        let taken = budget.free();
        assert_eq!(take(&outbox).unwrap().len(), 51);
        assert!(outbox.push_datagram(1, &[0; 40]));
        outbox.close();
        assert!(outbox.is_closed() && budget.free() == taken);
        assert!(outbox.poll_closed(&Context::from_waker(Waker::noop())).is_ready());
        drop(outbox);
        assert_eq!(budget.free(), 1 << 20);
    }

    #[test]
    fn a_client_that_does_not_read_control_frames_is_disconnected() {
        let (outbox, _) = outbox(0);
        let frame = |out: &mut Vec<u8>| out.extend_from_slice(&[0; 1000]);
        (0..16).for_each(|_| outbox.push_control(frame));
        assert_eq!(take(&outbox).unwrap().len(), 16_000);
        (0..17).for_each(|_| outbox.push_control(frame));
        assert_eq!(take(&outbox), None);
    }
}
