//! Received bytes between the stream and the record parser: a queue of receive blocks, read in
//! place.
//!
//! A record of 256 KiB lies in two or three blocks. It is hashed and written as that many slices,
//! without a copy. Only pieces under [`SMALL_PIECE_BYTES`] are copied together, which bounds the
//! number of slices against any peer.

use std::collections::VecDeque;
use std::ops::Deref;

use smallvec::SmallVec;
use wraith_core::RecvSlice;

use crate::limits::SMALL_PIECE_BYTES;

/// Length in bytes at which a buffer of copied pieces is full and a new one begins.
const TAIL_BYTES_MAX: usize = 64 * 1024;

/// Slices of one record.
pub type Slices<'a> = SmallVec<[&'a [u8]; 4]>;

/// Received bytes in stream order.
#[derive(Debug, Default)]
pub struct RecordBuffer {
    pieces: VecDeque<Piece>,
    /// Bytes already taken from the first piece.
    taken: usize,
    len: usize,
}

#[derive(Debug)]
enum Piece {
    Block(RecvSlice),
    Copied(Vec<u8>),
}

impl Deref for Piece {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::Block(chunk) => chunk,
            Self::Copied(bytes) => bytes,
        }
    }
}

impl RecordBuffer {
    /// Returns the number of buffered bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Appends a slice from the stream.
    pub fn push(&mut self, chunk: RecvSlice) {
        self.len += chunk.len();
        if chunk.len() >= SMALL_PIECE_BYTES {
            self.pieces.push_back(Piece::Block(chunk));
            return;
        }
        match self.pieces.back_mut() {
            Some(Piece::Copied(tail)) if tail.len() < TAIL_BYTES_MAX => {
                tail.extend_from_slice(&chunk);
            }
            _ => self.pieces.push_back(Piece::Copied(chunk.to_vec())),
        }
    }

    /// Returns the first byte.
    pub fn first(&self) -> Option<u8> {
        self.slices(1.min(self.len)).first().map(|s| s[0])
    }

    /// Returns the first `n` bytes in place. Panics if there are fewer.
    pub fn slices(&self, n: usize) -> Slices<'_> {
        assert!(n <= self.len, "more bytes asked for than are buffered");
        let mut slices = Slices::new();
        let (mut skip, mut left) = (self.taken, n);
        for piece in &self.pieces {
            if left == 0 {
                break;
            }
            let part = &piece[skip..];
            skip = 0;
            let part = &part[..part.len().min(left)];
            left -= part.len();
            if !part.is_empty() {
                slices.push(part);
            }
        }
        slices
    }

    /// Copies the first `out.len()` bytes. Panics if there are fewer.
    pub fn copy_to(&self, out: &mut [u8]) {
        let mut at = 0;
        for slice in self.slices(out.len()) {
            out[at..at + slice.len()].copy_from_slice(slice);
            at += slice.len();
        }
    }

    /// Removes the first `n` bytes and returns consumed blocks to their pool. Panics if there are
    /// fewer.
    pub fn advance(&mut self, n: usize) {
        assert!(n <= self.len, "more bytes dropped than are buffered");
        self.len -= n;
        self.taken += n;
        while let Some(front) = self.pieces.front() {
            if self.taken < front.len() {
                break;
            }
            self.taken -= front.len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wraith_core::Block;

    fn chunk(bytes: &[u8]) -> RecvSlice {
        let block = Block::copy_of(bytes);
        RecvSlice::new(block, 0..bytes.len())
    }

    proptest! {
        #[test]
        fn bytes_come_out_as_they_went_in(
            pieces in prop::collection::vec(0usize..20_000, 1..12), take in 1usize..30_000,
        ) {
            let mut buffer = RecordBuffer::default();
            let mut all = Vec::new();
            for (i, len) in pieces.iter().enumerate() {
                let bytes: Vec<u8> = (0..*len).map(|j| (i * 31 + j) as u8).collect();
                buffer.push(chunk(&bytes));
                all.extend(bytes);
            }
            let mut rest = &all[..];
            while !rest.is_empty() {
                prop_assert_eq!(buffer.len(), rest.len());
                prop_assert_eq!(buffer.first(), Some(rest[0]));
                let n = take.min(rest.len());
                prop_assert_eq!(buffer.slices(n).concat(), &rest[..n]);
                buffer.advance(n);
                rest = &rest[n..];
            }
            prop_assert_eq!(buffer.len(), 0);
            prop_assert_eq!(buffer.first(), None);
        }
    }

    #[test]
    fn a_peer_that_sends_single_bytes_costs_few_slices() {
        let mut buffer = RecordBuffer::default();
        (0..200_000).for_each(|_| buffer.push(chunk(&[7])));
        assert!(buffer.slices(200_000).len() < 8);
    }
}
