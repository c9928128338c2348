//! Written bytes that are not acknowledged yet.
//!
//! A queue of the application's own buffers, each with the stream offset of its first byte. Nothing
//! is copied until a packet is built. Invariants: the segments are contiguous and cover `acked ..
//! end`. The first one holds at least one unacknowledged byte. `acked_above` holds acknowledged
//! ranges that start above `acked`.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;

use crate::RangeSet;
use crate::range_set::clear_deque;

/// Memory of a segment besides its bytes, so that many tiny writes fill a buffer too.
const SEGMENT_OVERHEAD_BYTES: u64 = 64;
/// Smallest slice to share. Fewer bytes are faster to copy.
const SLICE_BYTES_MIN: usize = 512;

#[derive(Debug)]
struct Segment {
    start: u64,
    bytes: Bytes,
}

impl Segment {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

#[derive(Debug, Default)]
pub(super) struct SendBuffer {
    segments: VecDeque<Segment>,
    end: u64,
    acked: u64,
    acked_above: RangeSet,
    /// Index of the segment where the last copy ended. Packets usually continue there.
    cursor: usize,
}

impl SendBuffer {
    /// Returns the offset after the last byte written.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the offset of the first unacknowledged byte.
    pub(super) fn acked(&self) -> u64 {
        self.acked
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn held(&self) -> u64 {
        self.end - self.acked + self.segments.len() as u64 * SEGMENT_OVERHEAD_BYTES
    }

    /// Returns true if every byte written was acknowledged.
    pub(super) fn is_acked(&self) -> bool {
        self.acked == self.end
    }

    /// Appends `bytes`.
    pub(super) fn push(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let start = self.end;
        self.end += bytes.len() as u64;
        self.segments.push_back(Segment { start, bytes });
    }

    /// Returns the `len` bytes from `offset` without a copy, if they lie in one segment and sharing
    /// is worthwhile. They must be in the buffer.
    #[inline]
    pub(super) fn slice(&mut self, offset: u64, len: usize) -> Option<Bytes> {
        if len < SLICE_BYTES_MIN {
            return None;
        }
        self.seek(offset);
        let segment = &self.segments[self.cursor];
        let start = (offset - segment.start) as usize;
        let all = segment.bytes.len() >= start + len;
        all.then(|| segment.bytes.slice(start..start + len))
    }

    /// Moves the cursor to the segment that contains `offset`.
    fn seek(&mut self, offset: u64) {
        let holds = |s: &Segment| s.start <= offset && offset < s.end();
        if !self.segments.get(self.cursor).is_some_and(holds) {
            self.cursor = self.segments.partition_point(|s| s.end() <= offset);
        }
    }

    /// Copies the bytes from `offset` into `target`. All of them must be in the buffer.
    pub(super) fn copy(&mut self, mut offset: u64, mut target: &mut [u8]) {
        self.seek(offset);
        while !target.is_empty() {
            let segment = &self.segments[self.cursor];
            let source = &segment.bytes[(offset - segment.start) as usize..];
            let n = source.len().min(target.len());
            let (head, tail) = target.split_at_mut(n);
            head.copy_from_slice(&source[..n]);
            target = tail;
            offset += n as u64;
            if n == source.len() {
                self.cursor += 1;
            }
        }
    }

    /// Handles the acknowledgement of `range`, and frees acknowledged segments.
    pub(super) fn ack(&mut self, range: Range<u64>) {
        if range.start > self.acked {
            self.acked_above.insert(range);
            return;
        }
        self.acked = self.acked.max(range.end);
        while let Some(next) = self.acked_above.first()
            && next.start <= self.acked
        {
            self.acked = self.acked.max(next.end);
            self.acked_above.pop_first();
        }
        while self.segments.front().is_some_and(|s| s.end() <= self.acked) {
            self.segments.pop_front();
            self.cursor = self.cursor.saturating_sub(1);
        }
    }

    /// Iterates over the unacknowledged parts of `range`.
    pub(super) fn unacked(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        self.acked_above.gaps(range.start.max(self.acked)..range.end)
    }

    /// Discards all bytes; `end` stays.
    pub(super) fn clear(&mut self) {
        clear_deque(&mut self.segments);
        self.acked_above.clear();
        self.acked = self.end;
        self.cursor = 0;
    }

    /// Makes the buffer that of a new stream.
    pub(super) fn reset(&mut self) {
        self.clear();
        self.end = 0;
        self.acked = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn byte(offset: u64) -> u8 {
        (offset % 251) as u8
    }

    #[test]
    fn a_slice_is_given_where_one_segment_holds_it_all() {
        let mut buffer = SendBuffer::default();
        for start in [0, 2000] {
            buffer.push((start..start + 2000).map(byte).collect::<Vec<_>>().into());
        }
        let expected: Vec<u8> = (2100..3500).map(byte).collect();
        assert_eq!(buffer.slice(2100, 1400).as_deref(), Some(&expected[..]));
        assert_eq!(buffer.slice(600, 1400).map(|slice| slice.len()), Some(1400));
        assert_eq!(buffer.slice(601, 1400), None);
        assert_eq!(buffer.slice(2600, 1400).map(|slice| slice.len()), Some(1400));
        assert_eq!(buffer.slice(0, SLICE_BYTES_MIN - 1), None);
    }

    proptest! {
        #[test]
        fn bytes_come_out_as_written_until_they_are_acked(
            writes in prop::collection::vec(0u64..50, 1..20),
            acks in prop::collection::vec((0u64..500, 1u64..60), 0..40),
        ) {
            let mut buffer = SendBuffer::default();
            for len in writes {
                let bytes: Vec<u8> = (buffer.end()..buffer.end() + len).map(byte).collect();
                buffer.push(bytes.into());
            }
            let end = buffer.end();
            let mut acked = vec![false; end as usize];
            for (start, len) in acks {
                let range = start.min(end)..(start + len).min(end);
                buffer.ack(range.clone());
                acked[range.start as usize..range.end as usize].fill(true);

                let mut listed = vec![true; end as usize];
                for gap in buffer.unacked(0..end).collect::<Vec<_>>() {
                    listed[gap.start as usize..gap.end as usize].fill(false);
                    let mut copy = vec![0; (gap.end - gap.start) as usize];
                    buffer.copy(gap.start, &mut copy);
                    prop_assert!(copy.iter().zip(gap).all(|(&b, offset)| b == byte(offset)));
                }
                prop_assert_eq!(&listed, &acked);
                prop_assert_eq!(buffer.is_acked(), acked.iter().all(|&a| a));
                let prefix = acked.iter().take_while(|&&a| a).count() as u64;
                prop_assert!(buffer.segments.front().is_none_or(|s| s.end() > prefix));
            }
        }
    }
}
