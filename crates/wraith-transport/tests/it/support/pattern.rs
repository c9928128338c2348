//! Bytes that encode their position.

use wraith_transport::Bytes;

/// A prime, so that misplaced bytes differ for every chunk size.
const PERIOD: usize = 1_000_003;
/// Length of the longest slice.
pub const PIECE: usize = 256 * 1024;

/// An endless sequence of bytes, different for each `seed`.
pub struct Pattern(Bytes);

impl Pattern {
    pub fn new(seed: u64) -> Self {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut bytes: Vec<u8> = (0..PERIOD)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            })
            .collect();
        bytes.extend_from_within(..PIECE);
        Self(bytes.into())
    }

    /// Returns `len` bytes (at most [`PIECE`]) from `offset` on, without a copy.
    pub fn slice(&self, offset: u64, len: usize) -> Bytes {
        let start = (offset % PERIOD as u64) as usize;
        self.0.slice(start..start + len)
    }
}
