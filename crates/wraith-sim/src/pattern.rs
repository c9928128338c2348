//! Content of simulated streams: random bytes, known to both sides, without copies.
//!
//! The content is one block of random bytes, of prime length, repeated for ever; a stream starts at
//! some position in the block. Every misplaced or repeated byte range is detected, unless it is off
//! by a multiple of the block's length (the period).

use std::sync::OnceLock;

use bytes::Bytes;

use crate::Rng;

/// The period: a prime, so that offset errors of powers of two are detected.
const PERIOD: u64 = 1_048_573;
/// Maximum length of a piece.
pub(crate) const PIECE_MAX: usize = 256 * 1024;

/// The endless content of one direction of one stream.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    start: u64,
}

impl Pattern {
    /// Returns content number `number` of `seed`.
    pub fn new(seed: u64, number: u64) -> Self {
        Self { start: Rng::new(seed, number).below(PERIOD) }
    }

    /// Returns up to `len` bytes from `offset`; at most [`PIECE_MAX`].
    pub fn piece(self, offset: u64, len: usize) -> Bytes {
        let from = ((self.start + offset % PERIOD) % PERIOD) as usize;
        block().slice(from..from + len.min(PIECE_MAX))
    }

    /// Returns whether `bytes` is the content from `offset` on.
    pub fn is_at(self, mut offset: u64, bytes: &[u8]) -> bool {
        bytes.chunks(PIECE_MAX).all(|part| {
            let expected = self.piece(offset, part.len());
            offset += part.len() as u64;
            expected == part
        })
    }
}

fn block() -> &'static Bytes {
    static BLOCK: OnceLock<Bytes> = OnceLock::new();
    BLOCK.get_or_init(|| {
        let mut bytes = vec![0; PERIOD as usize + PIECE_MAX];
        let (period, again) = bytes.split_at_mut(PERIOD as usize);
        Rng::new(0, 0).fill(period);
        again.copy_from_slice(&period[..PIECE_MAX]);
        bytes.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_across_the_period_and_a_shift_is_noticed() {
        let pattern = Pattern::new(3, 4);
        let mut whole = Vec::new();
        let mut offset = 0;
        while whole.len() < 3 * PERIOD as usize {
            let piece = pattern.piece(offset, 200_001);
            offset += piece.len() as u64;
            whole.extend_from_slice(&piece);
        }
        assert!(pattern.is_at(0, &whole));
        assert!(pattern.is_at(777, &whole[777..]));
        assert!(!pattern.is_at(778, &whole[777..]));
        assert!(!Pattern::new(3, 5).is_at(0, &whole[..100]));
    }
}
