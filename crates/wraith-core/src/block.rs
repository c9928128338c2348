//! Receive buffers: blocks from bounded free lists, passed to the application without a copy.
//!
//! The sizes of blocks are powers of two, from [`BLOCK_BYTES_MIN`] for a stream of few bytes to
//! [`BLOCK_BYTES`]. A [`Block`] returns to its pool when it is dropped, on any thread. Invariant: of
//! each size the pool keeps at most a fixed number of unused blocks and frees the rest. The pool's
//! lock is taken once per block, never per packet of a long stream.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes in one block of a long stream: one file chunk, or 180 datagrams of 1452 bytes.
pub const BLOCK_BYTES: usize = 256 * 1024;

/// Bytes in the smallest block: most requests, and one datagram of 1452 bytes.
pub(crate) const BLOCK_BYTES_MIN: usize = 2 * 1024;

/// Number of sizes.
const SIZES: usize = (BLOCK_BYTES / BLOCK_BYTES_MIN).trailing_zeros() as usize + 1;

/// Maximum bytes of unused blocks that the pool keeps of each size below [`BLOCK_BYTES`]: 128 of
/// the smallest.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// Bounded free lists of blocks. Clones share them.
#[derive(Clone)]
pub struct BlockPool {
    shared: Arc<Shared>,
}

struct Shared {
    /// One list per size, the smallest first.
    free: Mutex<[Vec<Box<[u8]>>; SIZES]>,
    keep_max: usize,
}

impl BlockPool {
    /// Creates a pool that keeps at most `keep_max` unused blocks of [`BLOCK_BYTES`], and 2 MiB of
    /// smaller ones.
    pub fn new(keep_max: usize) -> Self {
        Self { shared: Arc::new(Shared { free: Mutex::default(), keep_max }) }
    }

    /// Returns a block of [`BLOCK_BYTES`] bytes. Its content is unspecified: old bytes or zeros.
    pub fn take(&self) -> Block {
        self.take_for(BLOCK_BYTES)
    }

    /// Returns a block of at least `bytes` bytes, at most [`BLOCK_BYTES`]. Its content is
    /// unspecified.
    pub(crate) fn take_for(&self, bytes: usize) -> Block {
        let i = size_index(bytes);
        let reused = self.shared.free.lock().unwrap_or_else(PoisonError::into_inner)[i].pop();
        let bytes = reused.unwrap_or_else(|| vec![0; BLOCK_BYTES_MIN << i].into_boxed_slice());
        Block { bytes, pool: Some(self.clone()) }
    }

    /// Takes back the memory of a block.
    fn put(&self, bytes: Box<[u8]>) {
        let i = size_index(bytes.len());
        let keep_max = if bytes.len() == BLOCK_BYTES {
            self.shared.keep_max
        } else {
            KEPT_BYTES_MAX / bytes.len()
        };
        let mut free = self.shared.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free[i].len() < keep_max {
            free[i].push(bytes);
        }
    }

    /// Returns the number of unused blocks of [`BLOCK_BYTES`] in the pool.
    #[cfg(test)]
    pub(crate) fn idle(&self) -> usize {
        self.shared.free.lock().unwrap_or_else(PoisonError::into_inner)[SIZES - 1].len()
    }
}

/// Returns the index of the smallest size that holds `bytes`.
fn size_index(bytes: usize) -> usize {
    bytes.div_ceil(BLOCK_BYTES_MIN).next_power_of_two().trailing_zeros() as usize
}

impl Default for BlockPool {
    /// Keeps up to 32 blocks of [`BLOCK_BYTES`] (8 MiB).
    fn default() -> Self {
        Self::new(32)
    }
}

impl fmt::Debug for BlockPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockPool").field("keep_max", &self.shared.keep_max).finish()
    }
}

/// A buffer that returns to its pool when dropped.
pub struct Block {
    bytes: Box<[u8]>,
    pool: Option<BlockPool>,
}

impl Block {
    /// Returns a small buffer outside any pool with a copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.into(), pool: None }
    }
}

impl Deref for Block {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.put(std::mem::take(&mut self.bytes));
        }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("len", &self.bytes.len()).finish()
    }
}

/// A slice of received bytes inside a block, in stream order.
#[derive(Debug)]
pub struct RecvSlice {
    block: Block,
    range: Range<usize>,
}

impl RecvSlice {
    /// Returns the slice `range` of `block`. Panics if the range is out of bounds.
    pub fn new(block: Block, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= block.len(), "range outside the block");
        Self { block, range }
    }

    /// Removes the first `n` bytes from the slice. Panics if it is shorter.
    pub fn advance(&mut self, n: usize) {
        assert!(n <= self.range.len(), "advanced past the end");
        self.range.start += n;
    }
}

impl Deref for RecvSlice {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.block[self.range.clone()]
    }
}

impl AsRef<[u8]> for RecvSlice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_block_is_used_again_and_the_pool_stays_bounded() {
        let pool = BlockPool::new(1);
        let (a, b) = (pool.take(), pool.take());
        let address = a.as_ptr();
        drop(a);
        drop(b);
        assert_eq!(pool.idle(), 1);
        assert_eq!(pool.take().as_ptr(), address);
    }

    #[test]
    fn small_blocks_have_lists_of_their_own() {
        let pool = BlockPool::new(1);
        for (bytes, len) in [(1, 2048), (2048, 2048), (2049, 4096), (200_000, BLOCK_BYTES)] {
            let block = pool.take_for(bytes);
            assert_eq!(block.len(), len);
            let address = block.as_ptr();
            drop(block);
            assert_eq!(pool.take_for(bytes).as_ptr(), address);
        }
        drop((0..1000).map(|_| pool.take_for(1)).collect::<Vec<_>>());
        assert_eq!(pool.shared.free.lock().unwrap()[0].len(), KEPT_BYTES_MAX / BLOCK_BYTES_MIN);
    }
}
