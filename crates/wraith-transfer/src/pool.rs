//! Send buffers: one chunk with room for its header in front, reused when the stream has let go of them.
//!
//! A worker reads the file into the buffer and hands it to the stream as it is; the packets are cut from it. The
//! transport's queues bound how many are in flight, the pool only how many are kept.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use crate::limits::WHOLE_BYTES_MAX;
use crate::record::HEADER_BYTES_MAX;
use crate::session::lock;

/// Buffers kept for reuse (4 MiB): as many as two workers and two streams' queues hold at once.
const KEEP_MAX: usize = 16;

/// Room in front of the data, for one header.
pub(crate) const HEAD_ROOM: usize = HEADER_BYTES_MAX;

/// Bytes of a buffer.
pub(crate) const BUFFER_BYTES: usize = HEAD_ROOM + WHOLE_BYTES_MAX;

/// A bounded free list, shared by clones.
#[derive(Clone, Default)]
pub(crate) struct Pool(Arc<Mutex<Vec<Box<[u8]>>>>);

impl Pool {
    /// A buffer of [`BUFFER_BYTES`] with unspecified content.
    pub(crate) fn take(&self) -> Buffer {
        let reused = lock(&self.0).pop();
        let bytes = reused.unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice());
        Buffer { bytes, pool: self.clone() }
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
        let mut free = lock(&self.pool.0);
        if free.len() < KEEP_MAX {
            free.push(std::mem::take(&mut self.bytes));
        }
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
        let mut buffer = pool.take();
        buffer.bytes()[HEAD_ROOM] = 7;
        let bytes = buffer.freeze(HEAD_ROOM..HEAD_ROOM + 1);
        assert_eq!(&bytes[..], [7]);
        assert_eq!(lock(&pool.0).len(), 0);
        drop(bytes);
        assert_eq!(lock(&pool.0).len(), 1);
    }
}
