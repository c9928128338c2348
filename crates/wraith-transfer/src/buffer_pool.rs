//! Send buffers. Each holds one chunk, with room for its header in front. A buffer is reused once
//! the stream has released it.
//!
//! A worker reads the file into the buffer and passes it to the stream without a copy; packets are
//! cut from it. A buffer returns when the peer has acknowledged its data. The number of buffers
//! thus bounds the sender's memory, independently of the queues and windows of the transport.
//!
//! Data read long before it is sent has left the caches by then and is fetched from memory twice.
//! Hence no more buffers are in use than the path needs ([`BufferPool::take`]), and the most
//! recently returned buffer is used first.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use wraith_core::ConnectionStats;

use crate::lock::lock;
use crate::record::{HEADER_BYTES_MAX, RECORD_BODY_BYTES_MAX};

/// Maximum number of buffers of one transfer (32 MiB): the bandwidth-delay product of 10 Gbit/s and
/// 25 ms.
const BUFFERS_MAX: usize = 128;

/// Bytes in use on the shortest path. Enough that workers and the I/O thread do not wait for each
/// other; little enough for a second-level cache (2 MiB on current servers).
const AHEAD_BYTES: u64 = 2 * 1024 * 1024;

/// Maximum age of the estimate of the path's capacity. The statistics behind it are no fresher.
const ESTIMATE_MAX_AGE: Duration = Duration::from_millis(10);

/// Room in front of the data, for one header.
pub(crate) const HEAD_ROOM: usize = HEADER_BYTES_MAX;

/// Length of a buffer in bytes.
pub(crate) const BUFFER_BYTES: usize = HEAD_ROOM + RECORD_BODY_BYTES_MAX;

/// A bounded set of buffers, shared by clones.
#[derive(Clone, Default)]
pub(crate) struct BufferPool(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<PoolState>,
    /// Signalled when a buffer returns or the pool is stopped.
    changed: Condvar,
}

#[derive(Default)]
struct PoolState {
    free: Vec<Box<[u8]>>,
    /// Number of existing buffers, free or not.
    made: usize,
    /// Bytes in buffers in use: the whole buffer while it is being filled, then only its content.
    out: u64,
    /// Maximum bytes in use, and when that was computed.
    allowed: Option<(u64, Instant)>,
    /// Number of threads waiting for room. Notifying without waiters would still cost a system
    /// call.
    waiting: usize,
    stopped: bool,
}

impl PoolState {
    fn has_room(&self) -> bool {
        let allowed = self.allowed.map_or(AHEAD_BYTES, |(bytes, _)| bytes);
        self.out < allowed && (!self.free.is_empty() || self.made < BUFFERS_MAX)
    }
}

impl Shared {
    /// Applies `change`, and wakes one waiting thread if there is room now.
    fn change(&self, change: impl FnOnce(&mut PoolState)) {
        let mut state = lock(&self.state);
        change(&mut state);
        let wake = state.waiting > 0 && state.has_room();
        drop(state);
        if wake {
            self.changed.notify_one();
        }
    }
}

/// Returns the bytes worth having in use on one path: [`AHEAD_BYTES`] plus twice the data in
/// flight. Data that only fills queues along the path is not included. A growing window is never
/// held back by the result.
fn worth(path: &ConnectionStats) -> u64 {
    let (rtt, min_rtt) = (path.rtt.as_micros().max(1), path.min_rtt.as_micros());
    let held = u128::from(path.congestion_window) * min_rtt.min(rtt) / rtt;
    AHEAD_BYTES.saturating_add(u64::try_from(2 * held).unwrap_or(u64::MAX))
}

impl BufferPool {
    /// Returns a buffer of [`BUFFER_BYTES`] with unspecified content. Waits until a buffer is
    /// available and the buffers in use hold less than twice the data in flight on `paths`. `None`
    /// once the pool is stopped.
    pub(crate) fn take<Paths>(&self, paths: impl FnOnce() -> Paths) -> Option<Buffer>
    where
        Paths: IntoIterator<Item = ConnectionStats>,
    {
        let now = Instant::now();
        let looked = lock(&self.0.state).allowed;
        // Computed outside the lock: `paths` may wait for a thread that is returning a buffer.
        let allowed = match looked {
            Some((_, at)) if now - at < ESTIMATE_MAX_AGE => None,
            _ => Some((paths().into_iter().map(|path| worth(&path)).sum(), now)),
        };
        let mut state = lock(&self.0.state);
        state.allowed = allowed.or(state.allowed);
        while !state.stopped && !state.has_room() {
            state.waiting += 1;
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        if state.stopped {
            return None;
        }
        let bytes = state.free.pop().unwrap_or_else(|| {
            state.made += 1;
            vec![0; BUFFER_BYTES].into_boxed_slice()
        });
        state.out += BUFFER_BYTES as u64;
        Some(Buffer { bytes, out: BUFFER_BYTES as u64, pool: self.clone() })
    }

    /// Stops the pool and wakes all waiting threads.
    pub(crate) fn stop(&self) {
        lock(&self.0.state).stopped = true;
        self.0.changed.notify_all();
    }
}

/// A buffer that returns to its pool when dropped.
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    /// Its share of [`PoolState::out`].
    out: u64,
    pool: BufferPool,
}

impl Buffer {
    /// Returns the whole buffer.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Converts `range` to bytes; the buffer returns to the pool when the last reference to them is
    /// dropped.
    pub(crate) fn freeze(mut self, range: Range<usize>) -> Bytes {
        // A batch of small files may leave room for another buffer.
        self.pool.0.change(|state| state.out -= self.out - range.len() as u64);
        self.out = range.len() as u64;
        Bytes::from_owner(Frozen { buffer: self, range })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.0.change(|state| {
            state.free.push(std::mem::take(&mut self.bytes));
            state.out -= self.out;
        });
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

    fn path(congestion_window: u64, min_rtt_ms: u64, rtt_ms: u64) -> ConnectionStats {
        let (min_rtt, rtt) = (Duration::from_millis(min_rtt_ms), Duration::from_millis(rtt_ms));
        ConnectionStats { congestion_window, min_rtt, rtt, ..ConnectionStats::default() }
    }

    fn long() -> ConnectionStats {
        path(1 << 30, 100, 100)
    }

    /// Returns the number of buffers given out at once.
    fn at_once(path: ConnectionStats, fill: usize) -> usize {
        let pool = BufferPool::default();
        let mut frozen = Vec::new();
        while {
            let state = lock(&pool.0.state);
            state.allowed.is_none() || state.has_room()
        } {
            frozen.push(pool.take(|| [path]).unwrap().freeze(0..fill));
        }
        frozen.len()
    }

    #[test]
    fn a_buffer_comes_back_when_the_stream_lets_go_of_it() {
        let pool = BufferPool::default();
        let mut buffer = pool.take(|| [long()]).unwrap();
        buffer.bytes()[HEAD_ROOM] = 7;
        let bytes = buffer.freeze(HEAD_ROOM..HEAD_ROOM + 1);
        assert_eq!(&bytes[..], [7]);
        assert_eq!(lock(&pool.0.state).free.len(), 0);
        assert_eq!(lock(&pool.0.state).out, 1);
        drop(bytes);
        assert_eq!(lock(&pool.0.state).free.len(), 1);
        assert_eq!(lock(&pool.0.state).out, 0);
    }

    #[test]
    fn as_much_is_out_as_the_path_is_long() {
        let chunk = RECORD_BODY_BYTES_MAX;
        let ahead = AHEAD_BYTES as usize;
        assert_eq!(at_once(path(0, 0, 0), chunk), ahead / chunk);
        // Data that only fills queues, as on loopback, is not included.
        assert_eq!(at_once(path(16 << 20, 0, 5), chunk), ahead / chunk);
        assert_eq!(at_once(path(4 << 20, 50, 50), chunk), (ahead + (8 << 20)) / chunk);
        assert_eq!(at_once(long(), chunk), BUFFERS_MAX);
        // Of batches of small files that do not fill their buffer, only the content is included.
        assert_eq!(at_once(path(4 << 20, 50, 50), chunk / 2), 2 * (ahead + (8 << 20)) / chunk);
    }

    #[test]
    fn buffers_are_bounded_and_a_stop_wakes_waiting_threads() {
        let pool = BufferPool::default();
        let all: Vec<Buffer> = (0..BUFFERS_MAX).map(|_| pool.take(|| [long()]).unwrap()).collect();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pool.take(|| [long()]).is_some());
            drop(all);
            assert!(waiting.join().unwrap());
        });
        let _all: Vec<Buffer> = (0..BUFFERS_MAX).map(|_| pool.take(|| [long()]).unwrap()).collect();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pool.take(|| [long()]).is_none());
            pool.stop();
            assert!(waiting.join().unwrap());
        });
    }
}
