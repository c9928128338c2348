//! Delta matching: finds pieces of a new file in an old copy and assembles chunks from them.
//!
//! Matches are never trusted. A fully matched chunk must have the chaining value (the hash of the
//! chunk) that the sender announced. For a partly matched chunk, each piece is read again and
//! compared with its hash before use. An old copy that changes meanwhile costs only additional
//! fetching.

use std::ops::Range;

use crate::content_defined_chunking::{Piece, PieceHash, PieceSize, piece_hash};
use crate::earlier_content::OldContent;

/// Maximum number of pieces of an old copy (6 MiB). Later pieces are not found.
const OLD_PIECES_MAX: usize = 256 * 1024;

/// Value of [`MatchedPiece::old`] for a piece of zeros, which needs no old copy.
const ZEROS: u64 = u64::MAX;

/// A piece of the new file and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewPiece {
    /// Offset in the new file.
    pub at: u64,
    /// Length and hash.
    pub piece: Piece,
}

/// A piece of the new file that the old copy contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchedPiece {
    new: u64,
    old: u64,
    piece: Piece,
}

impl MatchedPiece {
    fn end(&self) -> u64 {
        self.new + u64::from(self.piece.len)
    }

    fn follows(&self, before: &Self) -> bool {
        before.end() == self.new
            && (before.old == ZEROS) == (self.old == ZEROS)
            && (self.old == ZEROS || before.old + u64::from(before.piece.len) == self.old)
    }
}

/// Index of the pieces of an old copy by their hash.
#[derive(Debug, Default)]
pub struct OldPieces {
    /// Sorted by hash and offset once sealed.
    pieces: Vec<(PieceHash, u64, u32)>,
}

impl OldPieces {
    /// Adds the piece at `offset`. Returns false if the index is full.
    pub fn push(&mut self, offset: u64, piece: Piece) -> bool {
        if self.pieces.len() >= OLD_PIECES_MAX {
            return false;
        }
        self.pieces.push((piece.hash, offset, piece.len));
        true
    }

    /// Sorts the index; required before a lookup.
    pub fn seal(&mut self) {
        self.pieces.sort_unstable();
    }

    /// Returns the offset of an equal piece, preferring `expected`.
    fn find(&self, piece: &Piece, expected: u64) -> Option<u64> {
        let at = |offset: u64| self.pieces.partition_point(|p| (p.0, p.1) < (piece.hash, offset));
        let fits = |index: usize| {
            let found = self.pieces.get(index);
            found.filter(|p| (p.0, p.2) == (piece.hash, piece.len)).map(|p| p.1)
        };
        fits(at(expected)).or_else(|| fits(at(0)))
    }

    /// Looks up the `new` pieces, which are in ascending order, and appends the matches to `known`.
    /// Returns the ranges without a match.
    pub fn compare(
        &self,
        new: &[NewPiece],
        size: PieceSize,
        known: &mut Vec<MatchedPiece>,
    ) -> Vec<Range<u64>> {
        let zeros = piece_hash(&vec![0; size.max() as usize]);
        let (mut unknown, mut expected): (Vec<Range<u64>>, _) = (Vec::new(), 0);
        for &NewPiece { at, piece } in new {
            let is_zeros = piece == Piece { len: size.max(), hash: zeros };
            let found = if is_zeros { Some(ZEROS) } else { self.find(&piece, expected) };
            let end = at + u64::from(piece.len);
            match (found, unknown.last_mut()) {
                (Some(old), _) => {
                    known.push(MatchedPiece { new: at, old, piece });
                    expected = if is_zeros { expected } else { old } + u64::from(piece.len);
                }
                (None, Some(last)) if last.end == at => last.end = end,
                (None, _) => unknown.push(at..end),
            }
        }
        unknown
    }
}

/// Returns the ranges of an old copy of `old_size` bytes without any match, in ascending order.
pub fn unused(known: &[MatchedPiece], old_size: u64) -> Vec<Range<u64>> {
    let of_old = known.iter().filter(|known| known.old != ZEROS);
    let mut used: Vec<(u64, u32)> = of_old.map(|known| (known.old, known.piece.len)).collect();
    used.sort_unstable();
    let (mut gaps, mut at) = (Vec::new(), 0);
    for (start, len) in used {
        if start > at {
            gaps.push(at..start);
        }
        at = at.max(start + u64::from(len));
    }
    if at < old_size {
        gaps.push(at..old_size);
    }
    gaps
}

/// Assembles chunks of a new file from an old copy.
#[derive(Debug)]
pub struct Assembler<'a> {
    old: Option<&'a dyn OldContent>,
    /// Ascending and disjoint.
    known: Vec<MatchedPiece>,
    scratch: Vec<u8>,
}

impl<'a> Assembler<'a> {
    /// Takes `known` in any order, without overlaps. Without an `old` copy, none of its pieces is
    /// read.
    pub fn new(old: Option<&'a dyn OldContent>, mut known: Vec<MatchedPiece>) -> Self {
        known.sort_unstable_by_key(|known| known.new);
        Self { old, known, scratch: Vec::new() }
    }

    /// Fills `out` with the known bytes of the new file from offset `start` on. Returns the missing
    /// ranges of `out`; their content is unspecified. If ranges are missing, all other bytes were
    /// verified against their piece hashes. If no range is missing, the caller must verify the
    /// whole chunk.
    pub fn fill(&mut self, start: u64, out: &mut [u8]) -> Vec<Range<usize>> {
        let end = start + out.len() as u64;
        let first = self.known.partition_point(|known| known.end() <= start);
        let count = self.known[first..].partition_point(|known| known.new < end);
        let here = first..first + count;
        let mut at = start;
        let covered = self.known[here.clone()].iter().all(|known| {
            let is_next = known.new <= at;
            at = known.end();
            is_next
        });
        if covered && at >= end && self.copy(here.clone(), start, out) {
            return Vec::new();
        }
        let mut missing: Vec<Range<usize>> = Vec::new();
        let mut miss = |from: u64, to: u64| {
            let range = (from - start) as usize..(to - start) as usize;
            match missing.last_mut() {
                _ if range.is_empty() => {}
                Some(last) if last.end == range.start => last.end = range.end,
                _ => missing.push(range),
            }
        };
        let mut at = start;
        for index in here {
            let known = self.known[index];
            let (from, to) = (known.new.max(start), known.end().min(end));
            miss(at, from);
            let place = (from - start) as usize..(to - start) as usize;
            if !self.copy_checked(&known, from, &mut out[place]) {
                miss(from, to);
            }
            at = to;
        }
        miss(at, end);
        missing
    }

    /// Copies known pieces that cover `out`, reading contiguous ones in one call. Returns false if
    /// they cannot be read.
    fn copy(&self, mut pieces: Range<usize>, start: u64, out: &mut [u8]) -> bool {
        let end = start + out.len() as u64;
        while let Some(first) = pieces.next() {
            let head = self.known[first];
            let mut last = head;
            while let Some(next) = self.known.get(pieces.start).filter(|_| !pieces.is_empty())
                && next.follows(&last)
            {
                last = *next;
                pieces.next();
            }
            let (from, to) = (head.new.max(start), last.end().min(end));
            let place = &mut out[(from - start) as usize..(to - start) as usize];
            if head.old == ZEROS {
                place.fill(0);
                continue;
            }
            let read = self.old.map(|old| old.read_at(head.old + (from - head.new), place));
            if !matches!(read, Some(Ok(()))) {
                return false;
            }
        }
        true
    }

    /// Copies the part of a piece that begins at `from`. Returns false if the old copy no longer
    /// contains the piece.
    fn copy_checked(&mut self, known: &MatchedPiece, from: u64, out: &mut [u8]) -> bool {
        if known.old == ZEROS {
            out.fill(0);
            return true;
        }
        let Some(old) = self.old else { return false };
        let len = known.piece.len as usize;
        self.scratch.resize(len.max(self.scratch.len()), 0);
        let piece = &mut self.scratch[..len];
        let is_there =
            old.read_at(known.old, piece).is_ok() && piece_hash(piece) == known.piece.hash;
        if is_there {
            let skip = (from - known.new) as usize;
            out.copy_from_slice(&piece[skip..skip + out.len()]);
        }
        is_there
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "lists of ranges")]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::content_defined_chunking::Cutter;
    use crate::path::RelPath;
    use crate::source::SourceFile;
    use crate::target::TargetDir;

    fn noise(seed: u8, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
        bytes
    }

    fn size() -> PieceSize {
        PieceSize::new(1024).unwrap()
    }

    fn cut(bytes: &[u8]) -> Vec<NewPiece> {
        let (mut cutter, mut all, mut at) = (Cutter::new(size()), Vec::new(), 0);
        let mut add = |piece: Piece| {
            all.push(NewPiece { at, piece });
            at += u64::from(piece.len);
        };
        cutter.feed(bytes, &mut add);
        cutter.finish().into_iter().for_each(&mut add);
        all
    }

    fn index(bytes: &[u8]) -> OldPieces {
        let mut old = OldPieces::default();
        cut(bytes).iter().for_each(|p| assert!(old.push(p.at, p.piece)));
        old.seal();
        old
    }

    fn open(dir: &Path, bytes: &[u8]) -> SourceFile {
        fs::write(dir.join("old"), bytes).unwrap();
        let (target, path) = (TargetDir::open(dir).unwrap(), RelPath::parse(b"old").unwrap());
        let existing = target.existing(&path).unwrap().unwrap();
        target.open_existing(&path, &existing).unwrap()
    }

    /// Acts as a receiver: takes known bytes from the old copy and the rest from `new`. Returns the
    /// file and the number of bytes taken from `new`.
    fn rebuild(assembler: &mut Assembler<'_>, new: &[u8], chunk: usize) -> (Vec<u8>, usize) {
        let (mut built, mut fetched) = (Vec::new(), 0);
        for (n, original) in new.chunks(chunk).enumerate() {
            let mut out = vec![0xee; original.len()];
            for missing in assembler.fill((n * chunk) as u64, &mut out) {
                fetched += missing.len();
                out[missing.clone()].copy_from_slice(&original[missing]);
            }
            built.extend(out);
        }
        (built, fetched)
    }

    fn known_of(old: &[u8], new: &[u8]) -> Vec<MatchedPiece> {
        let mut known = Vec::new();
        index(old).compare(&cut(new), size(), &mut known);
        known
    }

    #[test]
    fn moved_content_is_found_in_the_old_copy() {
        let dir = tempfile::tempdir().unwrap();
        let old = noise(1, 300_000);
        let new = [&old[200_000..], b"in between", &old[..200_000]].concat();
        let source = open(dir.path(), &old);
        let mut assembler = Assembler::new(Some(&source), known_of(&old, &new));
        let (built, fetched) = rebuild(&mut assembler, &new, 64 * 1024);
        assert!(built == new && fetched < 12_000, "{fetched} bytes fetched");
    }

    #[test]
    fn an_old_copy_that_changes_is_noticed_piece_by_piece() {
        let dir = tempfile::tempdir().unwrap();
        let old = noise(1, 200_000);
        let mut new = old.clone();
        new.splice(100_000..100_000, noise(2, 5000));
        let known = known_of(&old, &new);
        let mut changed = old.clone();
        changed[30_000] ^= 1;
        let source = open(dir.path(), &changed);
        // One chunk: part of it is missing, so all of it is compared piece by piece.
        let (built, fetched) =
            rebuild(&mut Assembler::new(Some(&source), known.clone()), &new, 1 << 20);
        assert!(built == new && fetched < 20_000, "{fetched} bytes fetched");
        // The old copy is now shorter, or gone.
        fs::write(dir.path().join("old"), &old[..50_000]).unwrap();
        assert_eq!(
            rebuild(&mut Assembler::new(Some(&source), known.clone()), &new, 1 << 20).0,
            new
        );
        let (built, fetched) = rebuild(&mut Assembler::new(None, known), &new, 1 << 16);
        assert!(built == new && fetched == new.len());
    }

    #[test]
    fn zeros_need_no_old_copy() {
        let new = vec![0; 200_000];
        let known = known_of(&noise(1, 5000), &new);
        let (built, fetched) = rebuild(&mut Assembler::new(None, known), &new, 1 << 16);
        assert!(built == new && fetched < 4096, "{fetched} bytes fetched");
    }

    #[test]
    fn unused_ranges_of_the_old_copy_are_reported() {
        let old = noise(1, 100_000);
        let new = [&old[..40_000], &old[70_000..]].concat();
        let known = known_of(&old, &new);
        let gaps = unused(&known, 100_000);
        assert!(gaps.iter().any(|gap| gap.start <= 40_000 && gap.end >= 70_000), "{gaps:?}");
        assert!(gaps.iter().map(|gap| gap.end - gap.start).sum::<u64>() < 45_000);
        assert_eq!(unused(&[], 7), [0..7]);
        assert_eq!(unused(&[], 0), []);
    }

    #[test]
    fn only_so_many_pieces_of_an_old_copy_are_kept() {
        let mut old = OldPieces::default();
        let piece = Piece { len: 1, hash: [0; 8] };
        let kept = (0..OLD_PIECES_MAX as u64 + 5).filter(|&n| old.push(n, piece)).count();
        assert_eq!(kept, OLD_PIECES_MAX);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        #[test]
        fn any_old_copy_and_the_missing_bytes_make_the_new_file(
            len in 0usize..60_000,
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..3000, 0usize..3000), 0..8),
            zeros in 0usize..20_000,
            truth in any::<bool>(),
            chunk in 700usize..70_000,
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut old = noise(1, len);
            old.extend(vec![0; zeros]);
            let mut new = old.clone();
            for (n, (at, remove, insert)) in edits.iter().enumerate() {
                let at = at.index(new.len() + 1);
                let end = (at + remove).min(new.len());
                new.splice(at..end, noise(n as u8, *insert));
            }
            let known = known_of(&old, &new);
            // The old copy may have changed since it was compared.
            let there = if truth { old } else { noise(99, len) };
            let source = open(dir.path(), &there);
            let mut assembler = Assembler::new(Some(&source), known);
            let (mut built, mut fetched) = (Vec::new(), 0);
            for (n, original) in new.chunks(chunk).enumerate() {
                let mut out = vec![0xee; original.len()];
                let missing = assembler.fill((n * chunk) as u64, &mut out);
                // The caller verifies a fully known chunk as a whole.
                if missing.is_empty() && out != original {
                    prop_assert!(!truth);
                    out.copy_from_slice(original);
                }
                for missing in missing {
                    fetched += missing.len();
                    out[missing.clone()].copy_from_slice(&original[missing]);
                }
                built.extend(out);
            }
            prop_assert_eq!(built, new);
            if truth {
                prop_assert!(fetched <= edits.len() * 15_000 + 4096, "{} bytes fetched", fetched);
            }
        }
    }
}
