//! Content-defined chunking: cuts files into pieces so that an old and a new copy can find the
//! pieces they share (SPEC §10.11).
//!
//! A boundary depends on the 64 bytes before it and on the start of its piece. An edit therefore
//! moves only nearby boundaries; insertions and deletions shift pieces without changing them. The
//! algorithm is FastCDC (Xia et al., USENIX ATC 2016) with one mask.
//!
//! It is implemented here because both sides must cut at the same positions. If a library changed
//! its table or mask between versions, no piece of an old copy would match any more, without any
//! error. Pieces are only hints: content is accepted by its chaining values (the hashes of its
//! chunks) and its root (the hash of the file).
//!
//! Invariant: the pieces of a byte string do not depend on how it is split between calls of `feed`.

use std::sync::LazyLock;

/// Smallest average length in bytes. Below it, naming a piece costs more than a hundredth of its
/// length.
pub const PIECE_AVERAGE_MIN: u32 = 1024;

/// Largest average length in bytes. A piece then has at most 4 MiB.
pub const PIECE_AVERAGE_MAX: u32 = 1024 * 1024;

/// Number of bytes that determine a boundary.
const WINDOW: u32 = 64;

/// Gear table: one random number per byte value. Big-endian words of BLAKE3's derive-key output for
/// the empty input.
static GEAR: LazyLock<[u64; 256]> = LazyLock::new(|| {
    let mut bytes = [0; 256 * 8];
    blake3::Hasher::new_derive_key("wraith/1 gear").finalize_xof().fill(&mut bytes);
    let words = bytes.as_chunks::<8>().0;
    std::array::from_fn(|n| u64::from_be_bytes(words[n]))
});

/// First bytes of a piece's BLAKE3 hash. They rule out accidental collisions. An attacker who
/// forges one only gets a file that fails verification.
pub type PieceHash = [u8; 8];

/// Length and hash of a piece, without its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Length in bytes, at least 1.
    pub len: u32,
    /// See [`PieceHash`].
    pub hash: PieceHash,
}

/// Length bounds of pieces: from half the average to four times the average, except for the last
/// piece of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceSize {
    average: u32,
}

impl PieceSize {
    /// Returns `None` unless `average` is a power of two from [`PIECE_AVERAGE_MIN`] to
    /// [`PIECE_AVERAGE_MAX`].
    pub fn new(average: u32) -> Option<Self> {
        let is_known =
            average.is_power_of_two() && (PIECE_AVERAGE_MIN..=PIECE_AVERAGE_MAX).contains(&average);
        is_known.then_some(Self { average })
    }

    /// Returns the average length of a piece of random bytes.
    pub fn average(self) -> u32 {
        self.average
    }

    /// Returns the minimum length; only the last piece of a run may be shorter.
    pub fn min(self) -> u32 {
        self.average / 2
    }

    /// Returns the maximum length.
    pub fn max(self) -> u32 {
        4 * self.average
    }
}

/// Cuts a stream of bytes into pieces.
#[derive(Debug)]
pub struct Cutter {
    size: PieceSize,
    /// Length of the current piece so far.
    len: u32,
    gear: u64,
    hasher: blake3::Hasher,
}

impl Cutter {
    /// Creates a cutter at the beginning of a run of bytes.
    pub fn new(size: PieceSize) -> Self {
        Self { size, len: 0, gear: 0, hasher: blake3::Hasher::new() }
    }

    /// Feeds the next bytes. Calls `each` with every piece that ends in them.
    pub fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Piece)) {
        while !bytes.is_empty() {
            let (taken, ends) = self.scan(bytes);
            let (of_piece, rest) = bytes.split_at(taken);
            self.hasher.update(of_piece);
            self.len += taken as u32;
            if ends {
                each(self.end());
            }
            bytes = rest;
        }
    }

    /// Returns the last piece if bytes are left. The next bytes start a new run.
    pub fn finish(&mut self) -> Option<Piece> {
        (self.len > 0).then(|| self.end())
    }

    fn end(&mut self) -> Piece {
        let piece = Piece { len: self.len, hash: shortened(&self.hasher.finalize()) };
        (self.len, self.gear) = (0, 0);
        self.hasher.reset();
        piece
    }

    /// Returns how many of `bytes` belong to the current piece, and whether the piece ends with
    /// them.
    fn scan(&mut self, bytes: &[u8]) -> (usize, bool) {
        let up_to = |len: u32| (len.saturating_sub(self.len) as usize).min(bytes.len());
        let warm = up_to(self.size.min() - WINDOW);
        let first = up_to(self.size.min());
        let last = up_to(self.size.max());
        let gear = &*GEAR;
        let mut hash = self.gear;
        for &byte in &bytes[warm..first] {
            hash = (hash << 1).wrapping_add(gear[usize::from(byte)]);
        }
        // A random hash is below this value once in half an average.
        let border = u64::MAX / u64::from(self.size.average / 2) + 1;
        for (at, &byte) in bytes[first..last].iter().enumerate() {
            hash = (hash << 1).wrapping_add(gear[usize::from(byte)]);
            if hash < border {
                return (first + at + 1, true);
            }
        }
        self.gear = hash;
        (last, self.len + last as u32 == self.size.max())
    }
}

/// Returns the [`Piece::hash`] of `bytes`.
pub fn piece_hash(bytes: &[u8]) -> PieceHash {
    shortened(&blake3::hash(bytes))
}

fn shortened(hash: &blake3::Hash) -> PieceHash {
    *hash.as_bytes().first_chunk().expect("a hash has 32 bytes")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn noise(seed: u8, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
        bytes
    }

    fn size(average: u32) -> PieceSize {
        PieceSize::new(average).unwrap()
    }

    fn pieces(bytes: &[u8], average: u32, feed: usize) -> Vec<Piece> {
        let (mut cutter, mut all) = (Cutter::new(size(average)), Vec::new());
        bytes.chunks(feed).for_each(|part| cutter.feed(part, |piece| all.push(piece)));
        all.extend(cutter.finish());
        all
    }

    #[test]
    fn pieces_have_the_length_that_is_promised() {
        let bytes = noise(1, 8 << 20);
        for average in [1024, 32 * 1024, 256 * 1024] {
            let all = pieces(&bytes, average, bytes.len());
            let (last, others) = all.split_last().unwrap();
            let lens = || others.iter().map(|piece| piece.len);
            assert!(lens().all(|len| len > size(average).min() && len <= size(average).max()));
            assert!(last.len <= size(average).max());
            let mean = bytes.len() / all.len();
            assert!(mean.abs_diff(average as usize) < average as usize / 4, "{mean} for {average}");
        }
        assert!(pieces(&vec![0; 1 << 20], 1024, 999).iter().all(|piece| piece.len == 4096));
    }

    #[test]
    fn an_average_must_be_a_power_of_two_within_bounds() {
        for average in [0, 1, 512, 1023, 1025, 3000, PIECE_AVERAGE_MAX * 2, u32::MAX] {
            assert_eq!(PieceSize::new(average), None, "{average}");
        }
    }

    /// The table and the rule are part of the protocol: every version must find these boundaries.
    #[test]
    fn the_borders_are_those_of_the_specification() {
        let bytes = noise(7, 9000);
        let gear = |byte: u8| {
            let mut words = [0; 256 * 8];
            blake3::Hasher::new_derive_key("wraith/1 gear").finalize_xof().fill(&mut words);
            let at = usize::from(byte) * 8;
            u64::from_be_bytes(words[at..at + 8].try_into().unwrap())
        };
        // Reference implementation: hashes the last 64 bytes anew at each byte.
        let mut expected = Vec::new();
        let mut start = 0;
        for end in 1..=bytes.len() {
            let len = end - start;
            let sum = |at: usize| gear(bytes[at]).wrapping_shl((end - 1 - at) as u32);
            let hash = || (end - 64..end).map(sum).fold(0, u64::wrapping_add);
            if len == 4096 || (len > 512 && hash() < 1 << 55) || end == bytes.len() {
                expected.push(Piece { len: len as u32, hash: piece_hash(&bytes[start..end]) });
                start = end;
            }
        }
        assert_eq!(pieces(&bytes, 1024, 9000), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn pieces_do_not_depend_on_how_bytes_are_fed(
            seed in any::<u8>(), len in 0usize..40_000, feed in 1usize..5000,
        ) {
            let bytes = noise(seed, len);
            let all = pieces(&bytes, 1024, feed);
            prop_assert_eq!(&all, &pieces(&bytes, 1024, 40_000));
            let mut at = 0;
            for piece in all {
                let end = at + piece.len as usize;
                prop_assert_eq!(piece.hash, piece_hash(&bytes[at..end]));
                at = end;
            }
            prop_assert_eq!(at, len);
        }

        #[test]
        fn an_edit_changes_few_pieces(at in 0usize..60_000, insert in 1usize..300) {
            let old = noise(1, 64 * 1024);
            let mut new = old.clone();
            new.splice(at..at, noise(2, insert));
            let known = pieces(&old, 1024, 70_000);
            let unknown = pieces(&new, 1024, 70_000).iter().filter(|p| !known.contains(p)).count();
            prop_assert!(unknown < 16, "{} pieces", unknown);
        }
    }
}
