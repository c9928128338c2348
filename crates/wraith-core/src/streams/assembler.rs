//! Reassembly of a stream's received bytes.
//!
//! Each payload is copied once, to its place in a block; the block itself is then passed to the
//! application. Blocks grow with the stream: no block is larger than what precedes it, so a byte
//! behind a gap costs no more memory than window. Invariants:
//!
//! - The first block begins at `base`, and each later one at the end of the one before it
//!   ([`block_end`]).
//! - `base <= read <= front()`, and `read` lies in the first block, if there is one.
//! - `received` holds every offset that arrived, read or not.
//! - Bytes below `front()` are never written again.

use std::collections::VecDeque;
use std::ops::Range;

use crate::block::BLOCK_BYTES_MIN;
use crate::range_set::clear_deque;
use crate::{BLOCK_BYTES, Block, BlockPool, RangeSet, RecvSlice};

/// Divisor: below this fraction of a block, bytes are copied out and the block stays. Otherwise a
/// trickle of small messages would leave one block each with the application.
const HAND_OVER_PART: usize = 8;

const BLOCK: u64 = BLOCK_BYTES as u64;
const BLOCK_MIN: u64 = BLOCK_BYTES_MIN as u64;

/// Returns the end of the block that begins at stream offset `start`. Blocks end at powers of two
/// up to [`BLOCK_BYTES`]; from there on, each has that length.
#[inline]
fn block_end(start: u64) -> u64 {
    if start >= BLOCK {
        return start + BLOCK;
    }
    BLOCK_MIN.max((start + 1).next_power_of_two())
}

#[derive(Debug, Default)]
pub(super) struct Assembler {
    received: RangeSet,
    read: u64,
    base: u64,
    blocks: VecDeque<Option<Block>>,
}

impl Assembler {
    /// Returns the offset below which every byte arrived.
    pub(super) fn front(&self) -> u64 {
        self.received.first().filter(|first| first.start == 0).map_or(0, |first| first.end)
    }

    /// Returns the number of bytes read.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// Returns true if bytes can be read.
    pub(super) fn is_readable(&self) -> bool {
        self.front() > self.read
    }

    /// Returns the number of separate received ranges.
    pub(super) fn ranges(&self) -> usize {
        self.received.len()
    }

    /// Returns true if the bytes at `range` would form a new separate range.
    pub(super) fn makes_range(&self, range: Range<u64>) -> bool {
        range.start > self.front() && !self.received.touches(&range)
    }

    /// Inserts the bytes at `offset`; their end must lie within the receive window. Repeated bytes
    /// are ignored.
    #[inline]
    pub(super) fn insert(&mut self, pool: &BlockPool, offset: u64, data: &[u8]) {
        let front = self.front();
        let end = offset + data.len() as u64;
        if !self.received.insert(offset..end) {
            return;
        }
        let known = front.saturating_sub(offset) as usize;
        let (mut offset, mut data) = (offset.max(front), &data[known..]);
        if self.blocks.is_empty() {
            self.base = self.read;
        }
        while !data.is_empty() {
            let (i, span) = self.locate(offset);
            if self.blocks.len() <= i {
                self.blocks.resize_with(i + 1, || None);
            }
            let block_len = (span.end - span.start) as usize;
            let block = self.blocks[i].get_or_insert_with(|| pool.take_for(block_len));
            let at = (offset - span.start) as usize;
            let n = data.len().min(block_len - at);
            block[at..at + n].copy_from_slice(&data[..n]);
            data = &data[n..];
            offset += n as u64;
        }
    }

    /// Returns the index and the offsets of the block that holds `offset`.
    #[inline]
    fn locate(&self, offset: u64) -> (usize, Range<u64>) {
        let (mut i, mut start) = (0, self.base);
        while start < BLOCK {
            let end = block_end(start);
            if offset < end {
                return (i, start..end);
            }
            (i, start) = (i + 1, end);
        }
        let whole = (offset - start) / BLOCK;
        start += whole * BLOCK;
        (i + whole as usize, start..start + BLOCK)
    }

    /// Returns the next bytes in order, at most up to the end of the first block.
    pub(super) fn take(&mut self) -> Option<RecvSlice> {
        let front = self.front();
        if front == self.read {
            return None;
        }
        let block_end = block_end(self.base);
        let range = (self.read - self.base) as usize..(front.min(block_end) - self.base) as usize;
        self.read = self.base + range.end as u64;
        // Bytes behind a gap keep the block in this buffer. If they are in a later block, only its
        // place is kept.
        let more_in_block = self.received.iter().nth(1).is_some_and(|next| next.start < block_end);
        let slot = self.blocks.front_mut().expect("unread bytes are in the first block");
        let large = slot.as_ref().is_some_and(|block| range.len() >= block.len() / HAND_OVER_PART);
        if large && (front >= block_end || !more_in_block) {
            let block = slot.take().expect("unread bytes are in the first block");
            self.drop_read_blocks();
            return Some(RecvSlice::new(block, range));
        }
        let block = slot.as_ref().expect("unread bytes are in the first block");
        let len = range.len();
        let copy = Block::copy_of(&block[range]);
        self.drop_read_blocks();
        Some(RecvSlice::new(copy, 0..len))
    }

    fn drop_read_blocks(&mut self) {
        if self.received.len() == 1 && self.read == self.front() {
            self.blocks.clear();
        } else if self.read == block_end(self.base) {
            self.blocks.pop_front();
            self.base = self.read;
        }
    }

    /// Discards all unread bytes.
    pub(super) fn clear(&mut self) {
        clear_deque(&mut self.blocks);
        self.received.clear();
    }

    /// Makes this the buffer of a new stream.
    pub(super) fn renew(&mut self) {
        self.clear();
        self.read = 0;
        self.base = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(range: std::ops::Range<u64>) -> Vec<u8> {
        range.map(|offset| (offset * 7 % 253) as u8).collect()
    }

    /// Returns a buffer whose first [`BLOCK_BYTES`] were read, so that the next blocks are large.
    fn long_stream(pool: &BlockPool) -> Assembler {
        let mut assembler = Assembler::default();
        assembler.insert(pool, 0, &pattern(0..BLOCK));
        drain(&mut assembler, &mut vec![]);
        assembler
    }

    fn drain(assembler: &mut Assembler, out: &mut Vec<u8>) {
        while let Some(slice) = assembler.take() {
            assert!(!slice.is_empty());
            out.extend_from_slice(&slice);
        }
    }

    #[test]
    fn bytes_in_any_order_come_out_in_order() {
        // Deterministic shuffles of overlapping pieces over five blocks, read at irregular moments.
        for seed in 0..20u64 {
            let total = 5 * BLOCK + 12_345;
            let step = 1_000 + seed * 977;
            let mut pieces: Vec<u64> = (0..total).step_by(step as usize).collect();
            let n = pieces.len();
            for i in 0..n {
                let j = (i as u64 * 2_654_435_761 + seed * 40_503) as usize % n;
                let near = i.saturating_sub(20).max(j.min(i));
                pieces.swap(i, near);
            }
            let (pool, mut assembler, mut out) =
                (BlockPool::default(), Assembler::default(), vec![]);
            for (i, &offset) in pieces.iter().enumerate() {
                let end = (offset + step + seed * 3).min(total);
                assembler.insert(&pool, offset, &pattern(offset..end));
                if (i as u64).is_multiple_of(seed + 1) {
                    drain(&mut assembler, &mut out);
                }
            }
            drain(&mut assembler, &mut out);
            assert!(out == pattern(0..total), "seed {seed}");
            assert!(assembler.blocks.is_empty());
        }
    }

    #[test]
    fn a_large_front_is_handed_over_without_a_copy_and_a_small_one_is_copied() {
        let pool = BlockPool::default();
        let mut assembler = long_stream(&pool);
        let middle = BLOCK + 100_000;
        assembler.insert(&pool, BLOCK, &pattern(BLOCK..middle));
        let address = assembler.blocks[0].as_ref().unwrap().as_ptr();
        let slice = assembler.take().unwrap();
        assert_eq!((slice.as_ptr(), slice.len()), (address, 100_000));

        assembler.insert(&pool, middle, &pattern(middle..middle + 10));
        let address = assembler.blocks[0].as_ref().unwrap().as_ptr();
        let slice = assembler.take().unwrap();
        assert_eq!(&slice[..], &pattern(middle..middle + 10));
        assert_ne!(slice.as_ptr(), address);
        assert!(assembler.blocks.is_empty(), "an idle stream holds no block");
    }

    #[test]
    fn a_small_stream_holds_a_small_block() {
        let pool = BlockPool::default();
        for offset in [0, 1, 1000, 2047, 2048, 5000, 70_000, BLOCK - 1, BLOCK + 1] {
            let mut assembler = Assembler::default();
            assembler.insert(&pool, offset, b"x");
            let held: usize = assembler.blocks.iter().flatten().map(|block| block.len()).sum();
            assert!(held as u64 <= offset.max(BLOCK_MIN), "{held} bytes for one at {offset}");
        }
    }

    #[test]
    fn bytes_behind_a_gap_survive_a_read_before_it() {
        let pool = BlockPool::default();
        for (new, start) in [(true, 0), (false, BLOCK)] {
            for second in [start + 60_000, start + BLOCK + 60_000] {
                let mut assembler = if new { Assembler::default() } else { long_stream(&pool) };
                let (first, mut out) = (start + 50_000, vec![]);
                assembler.insert(&pool, second, &pattern(second..second + 10));
                assembler.insert(&pool, start, &pattern(start..first));
                drain(&mut assembler, &mut out);
                assembler.insert(&pool, first, &pattern(first..second));
                drain(&mut assembler, &mut out);
                assert!(out == pattern(start..second + 10));
            }
        }
    }

    #[test]
    fn a_repeat_with_other_content_does_not_change_what_arrived() {
        let (pool, mut assembler) = (BlockPool::default(), Assembler::default());
        assembler.insert(&pool, 0, b"truth");
        assembler.insert(&pool, 0, b"lies and more");
        assert_eq!(&assembler.take().unwrap()[..], b"truthand more");
        assembler.insert(&pool, 0, b"lies");
        assert!(assembler.take().is_none());
    }
}
