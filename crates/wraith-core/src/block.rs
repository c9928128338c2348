//! Receive buffers: fixed-size blocks from a bounded free list, passed to the application without a
//! copy.
//!
//! A [`Block`] returns to its pool when it is dropped, on any thread. Invariant: the pool keeps at
//! most `keep_max` unused blocks and frees the rest. The pool's lock is taken once per 256 KiB,
//! never per packet.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes in one block: one file chunk, or 180 datagrams of 1452 bytes.
pub const BLOCK_BYTES: usize = 256 * 1024;

/// A bounded free list of blocks. Clones share it.
#[derive(Clone)]
pub struct BlockPool {
    shared: Arc<Shared>,
}

struct Shared {
    free: Mutex<Vec<Box<[u8]>>>,
    keep_max: usize,
}

impl BlockPool {
    /// Creates a pool that keeps at most `keep_max` unused blocks.
    pub fn new(keep_max: usize) -> Self {
        Self { shared: Arc::new(Shared { free: Mutex::new(Vec::new()), keep_max }) }
    }

    /// Returns a block of [`BLOCK_BYTES`] bytes. Its content is unspecified: old bytes or zeros.
    pub fn take(&self) -> Block {
        let reused = self.shared.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let bytes = reused.unwrap_or_else(|| vec![0; BLOCK_BYTES].into_boxed_slice());
        Block { bytes, pool: Some(self.clone()) }
    }

    /// Returns the number of unused blocks in the pool.
    #[cfg(test)]
    pub(crate) fn idle(&self) -> usize {
        self.shared.free.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Default for BlockPool {
    /// Keeps up to 32 blocks (8 MiB).
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
        let Some(pool) = self.pool.take() else { return };
        let mut free = pool.shared.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < pool.shared.keep_max {
            free.push(std::mem::take(&mut self.bytes));
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
        assert_eq!(pool.shared.free.lock().unwrap().len(), 1);
        assert_eq!(pool.take().as_ptr(), address);
    }
}
