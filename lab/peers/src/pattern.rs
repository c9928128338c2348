//! The bytes that are moved: a period of noise, so that any byte in a wrong place is seen.

use bytes::Bytes;

/// Bytes of one write: what a file transfer uses.
pub const PIECE_BYTES: usize = 256 * 1024;
/// A prime, so that bytes in the wrong place differ whatever the piece size.
const PERIOD_BYTES: usize = 1_000_003;

/// An endless sequence of bytes of which any piece can be had without a copy.
#[derive(Clone, Debug)]
pub struct Pattern(Bytes);

impl Pattern {
    /// Always the same sequence.
    #[must_use]
    pub fn new() -> Self {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut bytes: Vec<u8> = (0..PERIOD_BYTES)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            })
            .collect();
        bytes.extend_from_within(..PIECE_BYTES);
        Self(bytes.into())
    }

    /// The `len` bytes at `offset`, at most [`PIECE_BYTES`], sharing the memory of all others.
    #[must_use]
    pub fn slice(&self, offset: u64, len: usize) -> Bytes {
        let start = Self::place(offset);
        self.0.slice(start..start + len)
    }

    /// The same bytes, borrowed.
    #[must_use]
    pub fn get(&self, offset: u64, len: usize) -> &[u8] {
        let start = Self::place(offset);
        &self.0[start..start + len]
    }

    /// Whether `bytes`, of any length, are those at `offset`.
    #[must_use]
    pub fn matches(&self, offset: u64, bytes: &[u8]) -> bool {
        let mut at = offset;
        bytes.chunks(PIECE_BYTES).all(|piece| {
            let same = self.get(at, piece.len()) == piece;
            at += piece.len() as u64;
            same
        })
    }

    const fn place(offset: u64) -> usize {
        (offset % PERIOD_BYTES as u64) as usize
    }
}

impl Default for Pattern {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_in_a_wrong_place_or_with_a_wrong_bit_is_seen() {
        let pattern = Pattern::new();
        let far = 7 * PERIOD_BYTES as u64 + 123;
        let mut bytes = pattern.slice(far, PIECE_BYTES).to_vec();
        assert!(pattern.matches(far, &bytes));
        assert!(!pattern.matches(far + 1, &bytes));
        assert!(!pattern.matches(far - PIECE_BYTES as u64, &bytes));
        bytes[PIECE_BYTES / 2] ^= 1;
        assert!(!pattern.matches(far, &bytes));
    }

    #[test]
    fn pieces_follow_each_other_across_the_end_of_the_period() {
        let pattern = Pattern::new();
        let start = PERIOD_BYTES as u64 - 5;
        let across = [pattern.get(start, 5), pattern.get(0, PIECE_BYTES)].concat();
        assert!(pattern.matches(start, &across));
    }
}
