//! Send buffers: one chunk with room for its header in front, reused when the stream has let go of them.
//!
//! A worker reads the file into the buffer and hands it to the stream as it is; the packets are cut from it. A buffer comes
//! back when the peer has acknowledged it, so the number of buffers bounds the sender's memory, whatever the queues and
//! windows below allow.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use bytes::Bytes;

use crate::limits::WHOLE_BYTES_MAX;
use crate::record::HEADER_BYTES_MAX;
use crate::session::lock;

/// Buffers of one transfer (32 MiB): what a path of 10 Gbit/s and 25 ms holds.
const BUFFERS_MAX: usize = 128;

/// Room in front of the data, for one header.
pub(crate) const HEAD_ROOM: usize = HEADER_BYTES_MAX;

/// Bytes of a buffer.
pub(crate) const BUFFER_BYTES: usize = HEAD_ROOM + WHOLE_BYTES_MAX;

/// A bounded set of buffers, shared by clones.
#[derive(Clone, Default)]
pub(crate) struct Pool(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// A buffer came back, or it stopped.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    free: Vec<Box<[u8]>>,
    /// Buffers that exist, free or not.
    made: usize,
    stopped: bool,
}

impl Pool {
    /// A buffer of [`BUFFER_BYTES`] with unspecified content. Waits until there is one; `None` if it stopped.
    pub(crate) fn take(&self) -> Option<Buffer> {
        let mut state = lock(&self.0.state);
        while !state.stopped && state.free.is_empty() && state.made == BUFFERS_MAX {
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.stopped {
            return None;
        }
        let bytes = state.free.pop().unwrap_or_else(|| {
            state.made += 1;
            vec![0; BUFFER_BYTES].into_boxed_slice()
        });
        Some(Buffer { bytes, pool: self.clone() })
    }

    /// Frees whoever waits.
    pub(crate) fn stop(&self) {
        lock(&self.0.state).stopped = true;
        self.0.changed.notify_all();
    }
}

/// A buffer that returns to its pool.
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    pool: Pool,
}

impl Buffer {
    /// All of it.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Hands `range` over; the buffer returns to the pool when the last of it is dropped.
    pub(crate) fn freeze(self, range: Range<usize>) -> Bytes {
        Bytes::from_owner(Frozen { buffer: self, range })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        lock(&self.pool.0.state).free.push(std::mem::take(&mut self.bytes));
        self.pool.0.changed.notify_one();
    }
}

struct Frozen {
    buffer: Buffer,
    range: Range<usize>,
}

impl AsRef<[u8]> for Frozen {
    fn as_ref(&self) -> &[u8] {
        &self.buffer.bytes[self.range.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_when_the_stream_lets_go_of_it() {
        let pool = Pool::default();
        let mut buffer = pool.take().unwrap();
        buffer.bytes()[HEAD_ROOM] = 7;
        let bytes = buffer.freeze(HEAD_ROOM..HEAD_ROOM + 1);
        assert_eq!(&bytes[..], [7]);
        assert_eq!(lock(&pool.0.state).free.len(), 0);
        drop(bytes);
        assert_eq!(lock(&pool.0.state).free.len(), 1);
    }

    #[test]
    fn there_are_only_so_many_buffers_and_a_stop_frees_whoever_waits() {
        let pool = Pool::default();
        let all: Vec<Buffer> = (0..BUFFERS_MAX).map(|_| pool.take().unwrap()).collect();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pool.take().is_some());
            drop(all);
            assert!(waiting.join().unwrap());
        });
        let _all: Vec<Buffer> = (0..BUFFERS_MAX).map(|_| pool.take().unwrap()).collect();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pool.take().is_none());
            pool.stop();
            assert!(waiting.join().unwrap());
        });
    }
}
