//! Parts of a file that changed between two runs. The part becomes one of the new version in place,
//! and its content is an old copy that is never trusted.

#![allow(clippy::single_range_in_vec_init)] // lists of ranges

use std::fs::{self, File};
use std::ops::Range;

use proptest::prelude::*;

use crate::common::*;
use wraith_files::*;

const KEY: [u8; 32] = [1; 32];
const CHUNK: u64 = CHUNK_BYTES as u64;

impl Stage {
    /// Leaves a part with these chunks of `bytes`.
    fn leave(&self, bytes: &[u8], chunks: impl IntoIterator<Item = u64>) {
        let part = again(|| self.target.open_or_resume(&version(bytes.len()), &KEY)).unwrap();
        chunks.into_iter().for_each(|index| put(&part, bytes, index).unwrap());
    }

    /// Renews the part for a version of `len` bytes, and opens it.
    fn renew(&self, len: usize) -> Option<PartFile> {
        let entry = version(len);
        again(|| self.target.resume_or_renew(&entry, &KEY)).unwrap()
    }

    fn part_bytes(&self) -> Vec<u8> {
        fs::read(self.dir.path().join(".f.wraith-part")).unwrap()
    }
}

/// Returns the entry of a version; every length has another time.
fn version(len: usize) -> Entry {
    Entry { mtime: Mtime { s: len as i64, ns: 0 }, ..file("f", len) }
}

fn earlier(part: &PartFile) -> Vec<Range<u64>> {
    part.earlier().iter().collect()
}

#[test]
fn a_renewed_part_keeps_its_bytes_and_counts_none_of_them_as_received() {
    let stage = Stage::new();
    let old = content(1, 5 * CHUNK_BYTES + 9);
    stage.leave(&old, [0, 1, 3, 5]);
    let before = stage.part_bytes();
    let new = [&old[..], &content(2, CHUNK_BYTES)].concat();
    let part = stage.renew(new.len()).unwrap();
    assert!(part.have().is_empty() && !part.needs_recheck());
    let ranges = [0..2 * CHUNK, 3 * CHUNK..4 * CHUNK, 5 * CHUNK..5 * CHUNK + 9];
    assert_eq!(earlier(&part), ranges);
    let now = stage.part_bytes();
    assert!(now.len() == new.len() && now[..before.len()] == before);
    // A received chunk is no longer earlier content.
    put(&part, &new, 0).unwrap();
    assert_eq!(earlier(&part)[0], CHUNK..2 * CHUNK);
    drop(part);
    let part = again(|| stage.target.resume(&version(new.len()), &KEY)).unwrap().unwrap();
    assert_eq!((part.have().count(), earlier(&part).len()), (1, 3));
    (1..part.chunks()).for_each(|index| put(&part, &new, index).unwrap());
    part.finish(&small_root(&new), CommitOptions::default()).unwrap();
    drop((part, stage.target));
    assert!(fs::read(stage.dir.path().join("f")).unwrap() == new);
    assert_eq!(names(stage.dir.path()), ["f"]);
}

#[test]
fn what_several_versions_left_adds_up() {
    let stage = Stage::new();
    let bytes = content(1, 8 * CHUNK_BYTES);
    stage.leave(&bytes[..6 * CHUNK_BYTES], [0, 1]);
    let part = stage.renew(7 * CHUNK_BYTES).unwrap();
    put(&part, &bytes[..7 * CHUNK_BYTES], 4).unwrap();
    drop(part);
    // A renewed part of which nothing was received yet stays, too.
    drop(stage.renew(8 * CHUNK_BYTES).unwrap());
    let part = stage.renew(8 * CHUNK_BYTES - 5).unwrap();
    assert_eq!(earlier(&part), [0..2 * CHUNK, 4 * CHUNK..5 * CHUNK]);
    drop(part);
    // A shorter version has room for less.
    let part = stage.renew(4 * CHUNK_BYTES + 7).unwrap();
    assert_eq!(earlier(&part), [0..2 * CHUNK, 4 * CHUNK..4 * CHUNK + 7]);
    drop(part);
    let part = stage.renew(9 * CHUNK_BYTES).unwrap();
    assert_eq!(earlier(&part), [0..2 * CHUNK, 4 * CHUNK..4 * CHUNK + 7]);
}

#[test]
fn a_kill_at_any_step_of_a_renewal_loses_nothing() {
    let old = content(1, 4 * CHUNK_BYTES);
    for (is_truncated, is_journal_begun) in [(false, true), (true, true), (true, false)] {
        let stage = Stage::new();
        stage.leave(&old, [0, 2]);
        if is_journal_begun {
            fs::write(stage.dir.path().join(".f.journal.wraith-new"), "begun").unwrap();
        }
        if is_truncated {
            let part = stage.dir.path().join(".f.wraith-part");
            File::options().write(true).open(part).unwrap().set_len(6 * CHUNK).unwrap();
        }
        // The source may have its old version again.
        for len in [6 * CHUNK_BYTES, 5 * CHUNK_BYTES, 4 * CHUNK_BYTES] {
            let part = stage.renew(len).unwrap();
            assert_eq!(earlier(&part), [0..CHUNK, 2 * CHUNK..3 * CHUNK], "{len}");
        }
        assert_eq!(stage.names().len(), 2, "{:?}", stage.names());
    }
}

#[test]
fn only_the_own_transfer_renews_a_part_and_a_useless_one_is_removed() {
    let stage = Stage::new();
    let old = content(1, 4 * CHUNK_BYTES);
    stage.leave(&old, [0, 2]);
    let newer = version(5 * CHUNK_BYTES);
    assert!(stage.target.resume_or_renew(&newer, &[2; 32]).unwrap().is_none());
    assert!(stage.target.resume_or_remove(&newer, &[2; 32]).unwrap().is_none());
    // This version is resumed, not renewed.
    let part = stage.renew(old.len()).unwrap();
    assert_eq!((part.have().count(), part.earlier().count()), (2, 0));
    // The living process keeps its part.
    for entry in [&version(old.len()), &newer] {
        let renewed = stage.target.resume_or_renew(entry, &KEY);
        assert!(matches!(renewed, Err(Error::InUse { .. })), "{renewed:?}");
        let removed = stage.target.resume_or_remove(entry, &KEY);
        assert!(matches!(removed, Err(Error::InUse { .. })), "{removed:?}");
    }
    assert_eq!(stage.part_bytes().len(), old.len());
    drop(part);
    // A look at another version changes nothing.
    assert!(again(|| stage.target.resume(&newer, &KEY)).unwrap().is_none());
    assert_eq!(stage.names().len(), 2);
    assert!(again(|| stage.target.resume_or_remove(&newer, &KEY)).unwrap().is_none());
    assert_eq!(stage.names(), [""; 0]);
    // Without a renewal, a new part takes the place of the earlier one.
    stage.leave(&old, [1]);
    let part = again(|| stage.target.open_or_resume(&newer, &KEY)).unwrap();
    assert!(part.have().is_empty() && part.earlier().is_empty());
    drop(part);
    // Not even zeros of an earlier version are content.
    let entry = Entry { mtime: MTIME, ..sparse_file("f", 4 * CHUNK) };
    let part = again(|| stage.target.open_or_resume(&entry, &KEY)).unwrap();
    part.write_hole(0..3).unwrap();
    drop(part);
    assert!(stage.renew(5 * CHUNK_BYTES).is_none());
    assert_eq!(stage.names(), [""; 0]);
}

#[test]
fn a_recheck_keeps_the_earlier_content() {
    let stage = Stage::new();
    let new = content(1, 5 * CHUNK_BYTES);
    stage.leave(&new[..4 * CHUNK_BYTES], [0, 2]);
    let part = stage.renew(new.len()).unwrap();
    put(&part, &new, 4).unwrap();
    drop(part);
    // A copy of the part must be verified first.
    let hidden = stage.dir.path().join(".f.wraith-part");
    let copied = fs::read(&hidden).unwrap();
    fs::rename(&hidden, stage.dir.path().join("away")).unwrap();
    fs::write(&hidden, copied).unwrap();
    for is_rechecked in [false, true] {
        let resumed = again(|| stage.target.resume(&version(new.len()), &KEY)).unwrap();
        let mut part = resumed.unwrap();
        assert_eq!(part.needs_recheck(), !is_rechecked);
        part.recheck(|_| true).unwrap();
        assert_eq!(part.have().iter().collect::<Vec<_>>(), [4..5]);
        assert_eq!(earlier(&part), [0..CHUNK, 2 * CHUNK..3 * CHUNK]);
    }
}

const SIZE: u32 = 16 * 1024;

fn cut(bytes: &[u8]) -> Vec<(u64, Piece)> {
    let (mut cutter, mut all, mut at) = (Cutter::new(PieceSize::new(SIZE).unwrap()), Vec::new(), 0);
    let mut add = |piece: Piece| {
        all.push((at, piece));
        at += u64::from(piece.len);
    };
    cutter.feed(bytes, &mut add);
    cutter.finish().into_iter().for_each(&mut add);
    all
}

/// Acts as a receiver that assembles `new` from the part in place. Returns the number of bytes that
/// it takes from `new`.
fn rebuild(part: &PartFile, new: &[u8]) -> usize {
    let content = EarlierContent::of(part);
    let mut pieces = OldPieces::default();
    for range in content.ranges() {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        content.read_at(range.start, &mut bytes).unwrap();
        cut(&bytes)
            .into_iter()
            .for_each(|(at, piece)| assert!(pieces.push(range.start + at, piece)));
    }
    pieces.seal();
    let new_pieces: Vec<_> =
        cut(new).into_iter().map(|(at, piece)| NewPiece { at, piece }).collect();
    let mut known = Vec::new();
    pieces.compare(&new_pieces, PieceSize::new(SIZE).unwrap(), &mut known);
    let (mut assembler, have, mut fetched) =
        (Assembler::new(Some(&content), known), part.have(), 0);
    for (index, original) in (0..).zip(new.chunks(CHUNK_BYTES)) {
        if have.contains(index) {
            continue;
        }
        let mut chunk = vec![0xee; original.len()];
        let mut missing = assembler.fill(index * CHUNK, &mut chunk);
        content.before_write(index);
        let cv = Tree::Blake3.chunk_cv(index, &[original]);
        if missing.is_empty() && Tree::Blake3.chunk_cv(index, &[&chunk]) != cv {
            missing = std::iter::once(0..chunk.len()).collect();
        }
        for range in missing {
            fetched += range.len();
            chunk[range.clone()].copy_from_slice(&original[range]);
        }
        part.write_chunk(index, &[&chunk], cv).unwrap();
    }
    part.finish(&small_root(new), CommitOptions::default()).unwrap();
    fetched
}

#[test]
fn inserted_bytes_cost_only_themselves_although_the_part_is_rewritten() {
    let old = content(1, 40 * CHUNK_BYTES);
    // Less and more than a chunk.
    for inserted in [1, 70_000, 5 * CHUNK_BYTES + 1] {
        let stage = Stage::new();
        stage.leave(&old, 0..40);
        let mut new = old.clone();
        new.splice(300_000..300_000, content(2, inserted));
        let part = stage.renew(new.len()).unwrap();
        let fetched = rebuild(&part, &new);
        assert!(fetched <= inserted + 5 * SIZE as usize, "{fetched} fetched of {inserted}");
        drop(part);
        assert!(fs::read(stage.dir.path().join("f")).unwrap() == new);
    }
}

#[test]
fn content_that_moved_too_far_is_fetched_again() {
    let old = content(1, 80 * CHUNK_BYTES);
    let stage = Stage::new();
    stage.leave(&old, 0..80);
    // The window holds 64 chunks.
    let new = [&content(2, 70 * CHUNK_BYTES)[..], &old].concat();
    let part = stage.renew(new.len()).unwrap();
    rebuild(&part, &new);
    drop(part);
    assert!(fs::read(stage.dir.path().join("f")).unwrap() == new);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_edit_of_any_part_comes_out_right(
        edits in proptest::collection::vec((0usize..6 * CHUNK_BYTES, 0usize..500_000, any::<u8>(), 0..3u8), 0..4),
        complete in any::<u8>(), again_at in 0u64..8, damage in proptest::option::of(0u64..6 * CHUNK),
    ) {
        let stage = Stage::new();
        let old = content(1, 6 * CHUNK_BYTES - 100);
        stage.leave(&old, (0..6).filter(|index| complete >> index & 1 == 1));
        let mut new = old.clone();
        for (at, len, seed, kind) in edits {
            let at = at.min(new.len());
            let end = (at + len).min(new.len());
            match kind {
                0 => drop(new.splice(at..at, content(seed, len))),
                1 => drop(new.drain(at..end)),
                _ => new[at..end].copy_from_slice(&content(seed, end - at)),
            }
        }
        // A version that one chunk holds has no part.
        new.resize(new.len().max(2 * CHUNK_BYTES), 7);
        if let Some(at) = damage.filter(|_| complete & 63 != 0) {
            // Another program writes to it.
            use std::os::unix::fs::FileExt;
            let part = File::options().write(true).open(stage.dir.path().join(".f.wraith-part"));
            part.unwrap().write_all_at(b"x", at.min(old.len() as u64 - 1)).unwrap();
        }
        // An edit may keep the size.
        let entry = Entry { mtime: MTIME, ..version(new.len()) };
        drop(again(|| stage.target.resume_or_renew(&entry, &KEY)).unwrap());
        let part = again(|| stage.target.open_or_resume(&entry, &KEY)).unwrap();
        // Some of it came already.
        if again_at < part.chunks() {
            put(&part, &new, again_at).unwrap();
        }
        let fetched = rebuild(&part, &new);
        prop_assert!(fetched <= new.len());
        drop((part, stage.target));
        prop_assert!(fs::read(stage.dir.path().join("f")).unwrap() == new);
        prop_assert_eq!(names(stage.dir.path()), ["f"]);
    }
}
