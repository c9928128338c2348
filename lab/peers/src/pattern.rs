//! The moved bytes: repeated noise, so that any misplaced byte is detected.

use bytes::Bytes;

/// Bytes of one write, as in a file transfer.
pub const PIECE_BYTES: usize = 256 * 1024;
/// A prime, so that misplaced bytes differ at any piece size.
const PERIOD_BYTES: usize = 1_000_003;

/// An endless sequence of bytes, any piece of which is available without a copy.
#[derive(Clone, Debug)]
pub struct Pattern(Bytes);

impl Pattern {
    /// Creates the sequence, which is always the same.
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

    /// Returns the `len` bytes at `offset`, at most [`PIECE_BYTES`], which share the memory of all
    /// others.
    #[must_use]
    pub fn slice(&self, offset: u64, len: usize) -> Bytes {
        let start = Self::place(offset);
        self.0.slice(start..start + len)
    }

    /// Borrows the same bytes.
    #[must_use]
    pub fn get(&self, offset: u64, len: usize) -> &[u8] {
        let start = Self::place(offset);
        &self.0[start..start + len]
    }

    /// Returns whether `bytes`, of any length, are those at `offset`.
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
