//! Large files: written in any order, from several threads, resumed, mixed up, finished once.

#![allow(clippy::single_range_in_vec_init)] // lists of ranges

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::common::*;
use wraith_files::*;

const KEY: [u8; 32] = [1; 32];

impl Stage {
    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.dir.path().join(name)).unwrap()
    }

    fn open(&self, entry: &Entry) -> PartFile {
        again(|| self.target.open_or_resume(entry, &KEY)).unwrap()
    }
}

#[test]
fn chunks_from_several_threads_in_any_order_make_the_file() {
    let stage = Stage::new();
    let bytes = content(1, 9 * CHUNK_BYTES + 77);
    let entry = file("f", bytes.len());
    let part = stage.open(&entry);
    assert_eq!((part.chunks(), part.path()), (10, &entry.path));
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (part, bytes) = (&part, &bytes);
            scope.spawn(move || {
                for index in (0..10).rev().filter(|index| index % 3 == thread) {
                    put(part, bytes, index).unwrap();
                }
            });
        }
    });
    assert_eq!(part.have().iter().collect::<Vec<_>>(), [0..10]);
    let committed = part
        .finish(&small_root(&bytes), CommitOptions { sync: true, ..CommitOptions::default() })
        .unwrap();
    assert_eq!((committed.outcome, &committed.path), (Outcome::Created, &entry.path));
    assert_eq!(stage.read("f"), bytes);
    let meta = fs::metadata(stage.dir.path().join("f")).unwrap();
    assert_eq!(meta.mode() & 0o7777, 0o640);
    assert_eq!((meta.mtime(), meta.mtime_nsec()), (MTIME.s, MTIME.ns.into()));
    let stamp = committed.stamp.unwrap();
    assert_eq!((stamp.ino, stamp.size, stamp.mtime), (meta.ino(), meta.len(), MTIME));
    assert_eq!(stamp.ctime, Mtime { s: meta.ctime(), ns: meta.ctime_nsec() as u32 });
    assert!(matches!(part.finish(&[0; 32], CommitOptions::default()), Err(Error::Misuse { .. })));
    assert!(matches!(put(&part, &bytes, 0), Err(Error::Misuse { .. })));
    drop(part);
    stage.target.finish_dirs().unwrap();
    assert_eq!(stage.names(), ["f"]);
}

#[test]
fn a_dropped_part_is_resumed_with_its_verified_chunks_only() {
    let stage = Stage::new();
    let bytes = content(2, 6 * CHUNK_BYTES + 1);
    let entry = file("d/f", bytes.len());
    assert!(again(|| stage.target.resume(&entry, &KEY)).unwrap().is_none());
    let part = stage.open(&entry);
    for index in [6, 0, 1, 4] {
        put(&part, &bytes, index).unwrap();
    }
    drop(part);
    let part = again(|| stage.target.resume(&entry, &KEY)).unwrap().unwrap();
    assert!(!part.needs_recheck());
    assert_eq!(part.have().iter().collect::<Vec<_>>(), [0..2, 4..5, 6..7]);
    let have = part.have();
    assert_eq!(have.missing(part.chunks()).collect::<Vec<_>>(), [2..4, 5..6]);
    // A chunk that was received is not written again, even if other content arrives for it.
    let other = content(3, CHUNK_BYTES);
    part.write_chunk(0, &[&other], Tree::Blake3.chunk_cv(0, &[&other])).unwrap();
    assert!(matches!(
        part.finish(&small_root(&bytes), CommitOptions::default()),
        Err(Error::Misuse { .. })
    ));
    for index in [2, 3, 5] {
        put(&part, &bytes, index).unwrap();
    }
    part.finish(&small_root(&bytes), CommitOptions::default()).unwrap();
    assert_eq!(stage.read("d/f"), bytes);
    assert!(again(|| stage.target.resume(&entry, &KEY)).unwrap().is_none());
}

#[test]
fn another_sender_or_version_does_not_continue_a_part() {
    let stage = Stage::new();
    let (ours, theirs) = (content(1, 3 * CHUNK_BYTES), content(2, 3 * CHUNK_BYTES));
    let entry = file("f", ours.len());
    let part = stage.open(&entry);
    put(&part, &ours, 0).unwrap();
    // While it is open, no other receiver gets it, but another transfer of that name is possible
    // beside it.
    assert!(matches!(stage.target.open_or_resume(&entry, &KEY), Err(Error::InUse { .. })));
    assert!(matches!(stage.target.resume(&entry, &KEY), Err(Error::InUse { .. })));
    let other = again(|| stage.target.open_or_resume(&entry, &[2; 32])).unwrap();
    put(&other, &theirs, 1).unwrap();
    drop((part, other));
    // Both are still there, each with its own content.
    let other = again(|| stage.target.resume(&entry, &[2; 32])).unwrap().unwrap();
    assert_eq!(other.have().iter().collect::<Vec<_>>(), [1..2]);
    let part = again(|| stage.target.resume(&entry, &KEY)).unwrap().unwrap();
    assert_eq!(part.have().iter().collect::<Vec<_>>(), [0..1]);
    for index in 0..3 {
        put(&part, &ours, index).unwrap();
        put(&other, &theirs, index).unwrap();
    }
    part.finish(&small_root(&ours), CommitOptions::default()).unwrap();
    let committed = other.finish(&small_root(&theirs), CommitOptions::default()).unwrap();
    assert_eq!(committed.path, path("f (1)"));
    assert_eq!((stage.read("f"), stage.read("f (1)")), (ours.clone(), theirs));
    drop((part, other));

    // The sender's file has changed, so the old content is useless.
    let entry = file("g", ours.len());
    let part = stage.open(&entry);
    put(&part, &ours, 0).unwrap();
    drop(part);
    let newer = Entry { mtime: Mtime { s: 9, ns: 9 }, ..entry.clone() };
    assert!(again(|| stage.target.resume(&newer, &KEY)).unwrap().is_none());
    let part = stage.open(&newer);
    assert!(part.have().is_empty());
    put(&part, &ours, 2).unwrap();
    drop(part);
    let longer = file("g", ours.len() + 1);
    assert!(stage.open(&longer).have().is_empty());
}

#[test]
fn the_wrong_root_leaves_nothing_behind() {
    let stage = Stage::new();
    let bytes = content(1, 2 * CHUNK_BYTES);
    let part = stage.open(&file("f", bytes.len()));
    put(&part, &bytes, 0).unwrap();
    put(&part, &bytes, 1).unwrap();
    assert!(matches!(part.finish(&[0; 32], CommitOptions::default()), Err(Error::Mismatch { .. })));
    drop(part);
    drop(stage.target);
    assert_eq!(names(stage.dir.path()), [""; 0]);
}

#[test]
fn a_part_of_which_nothing_is_verified_is_not_left_behind() {
    let stage = Stage::new();
    let bytes = content(1, 2 * CHUNK_BYTES);
    drop(stage.open(&file("f", bytes.len())));
    let discarded = stage.open(&file("g", bytes.len()));
    put(&discarded, &bytes, 0).unwrap();
    discarded.discard().unwrap();
    drop(discarded);
    let swept = stage.open(&file("h", bytes.len()));
    put(&swept, &bytes, 0).unwrap();
    drop(swept);
    stage.target.sweep(&file("h", bytes.len()), &[9; 32]).unwrap();
    assert!(stage.target.resume(&file("h", bytes.len()), &KEY).unwrap().is_some(), "another's");
    stage.target.sweep(&file("h", bytes.len()), &KEY).unwrap();
    drop(stage.target);
    assert_eq!(names(stage.dir.path()), [""; 0]);
}

#[test]
fn a_stale_part_beside_a_complete_file_is_removed_by_a_sweep() {
    let stage = Stage::new();
    let entry = file("f", 3 * CHUNK_BYTES);
    // A pooled journal, an incomplete journal, and a journal without its part.
    for leftover in ["", "wraith journal 1 torn"] {
        fs::write(stage.dir.path().join(".f.wraith-journal"), leftover).unwrap();
        assert!(again(|| stage.target.resume(&entry, &KEY)).unwrap().is_none());
        assert_eq!(stage.names(), [""; 0]);
    }
    let part = stage.open(&entry);
    put(&part, &content(1, 3 * CHUNK_BYTES), 0).unwrap();
    drop(part);
    fs::remove_file(stage.dir.path().join(".f.wraith-part")).unwrap();
    assert!(again(|| stage.target.resume(&entry, &KEY)).unwrap().is_none());
    assert_eq!(stage.names(), [""; 0]);
}

#[test]
fn chunks_that_do_not_exist_or_do_not_fit_are_refused() {
    let stage = Stage::new();
    let bytes = content(1, 2 * CHUNK_BYTES + 5);
    let part = stage.open(&file("f", bytes.len()));
    let misuse = |result: Result<()>| assert!(matches!(result, Err(Error::Misuse { .. })));
    misuse(part.write_chunk(3, &[&bytes[..5]], [0; 32]));
    misuse(part.write_chunk(u64::MAX, &[&bytes[..5]], [0; 32]));
    misuse(part.write_chunk(0, &[&bytes[..5]], [0; 32]));
    misuse(part.write_chunk(2, &[&bytes[..6]], [0; 32]));
    misuse(part.write_chunk(2, &[], [0; 32]));
    misuse(part.write_hole(2..4));
    misuse(part.write_hole(1..1));
    put(&part, &bytes, 1).unwrap();
    misuse(part.write_hole(0..3));
    part.write_hole(1..2).unwrap();
    assert_eq!(part.have().count(), 1);
    let short = stage.target.write_small(&file("s", 2), &[b"x"], CommitOptions::default());
    assert!(matches!(short, Err(Error::Mismatch { .. })));
    assert!(matches!(
        stage.target.open_or_resume(&file("huge", usize::MAX >> 1), &KEY),
        Err(Error::Io { .. })
    ));
    drop(part);
    drop(stage.target);
    assert!(!names(stage.dir.path()).iter().any(|name| name.contains("huge")));
}

#[test]
fn the_file_that_is_there_already_stays_and_others_follow_the_policy() {
    let stage = Stage::new();
    let (old, new) = (content(1, 2 * CHUNK_BYTES), content(2, 2 * CHUNK_BYTES));
    let receive = |bytes: &[u8], on_conflict| {
        let part = stage.open(&file("f.bin", bytes.len()));
        put(&part, bytes, 0).unwrap();
        put(&part, bytes, 1).unwrap();
        let committed =
            part.finish(&small_root(bytes), CommitOptions { on_conflict, sync: false }).unwrap();
        (committed.outcome, committed.path.display().to_string())
    };
    let is = |outcome, name: &str| (outcome, name.to_owned());
    assert_eq!(receive(&old, OnConflict::Rename), is(Outcome::Created, "f.bin"));
    let ino = fs::metadata(stage.dir.path().join("f.bin")).unwrap().ino();
    assert_eq!(receive(&old, OnConflict::Overwrite), is(Outcome::AlreadyHere, "f.bin"));
    assert_eq!(fs::metadata(stage.dir.path().join("f.bin")).unwrap().ino(), ino);
    assert_eq!(receive(&new, OnConflict::Skip), is(Outcome::Skipped, "f.bin"));
    assert_eq!(receive(&new, OnConflict::Rename), is(Outcome::Renamed, "f (1).bin"));
    assert_eq!(receive(&new, OnConflict::Rename), is(Outcome::AlreadyHere, "f (1).bin"));
    assert_eq!(stage.read("f.bin"), old);
    assert_eq!(receive(&new, OnConflict::Overwrite), is(Outcome::Replaced, "f.bin"));
    assert_eq!((stage.read("f.bin"), stage.read("f (1).bin")), (new.clone(), new.clone()));
    assert_eq!(
        stage.target.root_of(&path("f.bin"), Tree::Blake3, || true).unwrap(),
        Some(small_root(&new))
    );
    assert_eq!(stage.target.root_of(&path("none/f.bin"), Tree::Blake3, || true).unwrap(), None);
    let existing = stage.target.existing(&path("f.bin")).unwrap().unwrap();
    assert_eq!((existing.kind, existing.stamp.size), (ExistingKind::File, new.len() as u64));
    stage.target.finish_dirs().unwrap();
    assert_eq!(stage.names(), ["f (1).bin", "f.bin"]);
}

#[test]
fn holes_and_zeros_take_no_space_and_stale_bytes_under_them_are_gone() {
    let stage = Stage::new();
    let size = 40 * CHUNK_BYTES + 100;
    let mut bytes = vec![0; size];
    bytes[5 * CHUNK_BYTES + 70_000] = 1;
    let entry = sparse_file("f", size as u64);
    let part = stage.open(&entry);
    put(&part, &bytes, 5).unwrap();
    // As if a kill had come between writing chunks 6 and 7 and recording them.
    let raw = File::options().write(true).open(stage.dir.path().join(".f.wraith-part")).unwrap();
    raw.write_all_at(&content(9, 2 * CHUNK_BYTES), 6 * CHUNK_BYTES as u64).unwrap();
    drop(part);
    // The journal does not record these writes, so all its chunks are hashed again.
    let mut part = stage.open(&entry);
    assert!(part.needs_recheck() && part.have().is_empty());
    part.recheck(|_| true).unwrap();
    assert_eq!(part.have().iter().collect::<Vec<_>>(), [5..6]);
    put(&part, &bytes, 6).unwrap();
    part.write_hole(7..8).unwrap();
    part.write_hole(0..5).unwrap();
    drop(part);
    let part = stage.open(&entry);
    assert_eq!(part.have().iter().collect::<Vec<_>>(), [0..8]);
    part.write_hole(8..41).unwrap();
    part.finish(&small_root(&bytes), CommitOptions::default()).unwrap();
    assert_eq!(stage.read("f"), bytes);
    // Chunk 6 was written in full over stale bytes; everything else is hole, except for one block.
    let meta = fs::metadata(stage.dir.path().join("f")).unwrap();
    assert!(meta.blocks() * 512 <= 300 * 1024, "{} blocks", meta.blocks());
}

#[test]
fn hashing_the_holes_of_an_earlier_session_can_be_stopped_and_goes_on() {
    let stage = Stage::new();
    let chunks = 1000;
    let bytes = vec![0; chunks * CHUNK_BYTES];
    let mut entry = file("f", bytes.len());
    entry.kind = Kind::File { size: bytes.len() as u64, sparse: Some(Tree::Blake3) };
    stage.open(&entry).write_hole(0..chunks as u64).unwrap();
    let part = again(|| stage.target.resume(&entry, &KEY)).unwrap().unwrap();
    let asked = std::cell::Cell::new(0);
    let steps = |steps| {
        asked.set(0);
        let go_on = || {
            asked.set(asked.get() + 1);
            asked.get() <= steps
        };
        (part.hash_holes(go_on), asked.get())
    };
    assert_eq!(steps(0), (false, 1));
    assert_eq!(steps(2), (false, 3));
    let (done, rest) = steps(u32::MAX);
    assert!(done && rest > 0);
    assert_eq!(steps(0), (true, 0));
    part.finish(&small_root(&bytes), CommitOptions::default()).unwrap();
    assert_eq!(stage.read("f"), bytes);
}

#[test]
fn a_file_beyond_4_gib_is_resumed_and_finished() {
    let stage = Stage::new();
    let chunks = (4u64 << 30) / CHUNK_BYTES as u64 + 1;
    let size = (chunks - 1) * CHUNK_BYTES as u64 + 10;
    let entry = sparse_file("f", size);
    let middle = content(1, CHUNK_BYTES);
    let at = chunks - 5;
    let mut root = RootBuilder::new();
    for index in 0..chunks {
        let cv = Tree::Blake3.zero_chunk_cv(index, chunk_len(size, index));
        root.set(index, if index == at { Tree::Blake3.chunk_cv(index, &[&middle]) } else { cv });
    }
    let part = stage.open(&entry);
    part.write_chunk(
        at,
        &[&middle[..1000], &middle[1000..]],
        Tree::Blake3.chunk_cv(at, &[&middle]),
    )
    .unwrap();
    part.write_hole(0..at).unwrap();
    drop(part);
    let part = stage.open(&entry);
    assert_eq!(part.have().missing(chunks).collect::<Vec<_>>(), [at + 1..chunks]);
    part.write_hole(at + 1..chunks).unwrap();
    part.finish(&root.finish(size).unwrap(), CommitOptions::default()).unwrap();
    let finished = File::open(stage.dir.path().join("f")).unwrap();
    assert_eq!(finished.metadata().unwrap().len(), size);
    let mut back = vec![0; CHUNK_BYTES];
    finished.read_exact_at(&mut back, at * CHUNK_BYTES as u64).unwrap();
    assert_eq!(back, middle);
}

#[test]
fn a_sparse_terabyte_is_resumed_rechecked_and_finished_without_reading_it() {
    let stage = Stage::new();
    let (tree, size) = (Tree::PositionFree, (1 << 40) + 77);
    let (chunks, at) = (chunk_count(size), 3_000_000);
    let kind = Kind::File { size, sparse: Some(tree) };
    let entry = Entry { kind, ..file("f", 0) };
    let island = content(1, CHUNK_BYTES);
    let cv = tree.chunk_cv(at, &[&island]);
    let mut root = RootBuilder::of(tree);
    root.set_zeros(0..at, size);
    root.push(cv);
    root.set_zeros(at + 1..chunks, size);
    let root = root.finish(size).unwrap();

    let part = stage.open(&entry);
    part.write_chunk(at, &[&island], cv).unwrap();
    part.write_hole(0..1000).unwrap();
    part.write_hole(at + 1..chunks).unwrap();
    drop(part);
    // A part that has not changed after it was closed is used at once, without a recheck.
    let part = stage.open(&entry);
    assert!(!part.needs_recheck());
    assert_eq!(part.have().missing(chunks).collect::<Vec<_>>(), [1000..at]);
    part.write_hole(1000..2000).unwrap();
    drop(part);
    // Another program wrote into the last hole.
    let raw = File::options().write(true).open(stage.dir.path().join(".f.wraith-part")).unwrap();
    let spoiled = chunks - 5;
    raw.write_all_at(&[1], spoiled * CHUNK_BYTES as u64 + 9).unwrap();
    let mut part = stage.open(&entry);
    assert!(part.needs_recheck());
    let mut looks = 0;
    part.recheck(|read| {
        looks = read;
        true
    })
    .unwrap();
    assert!(looks < 10, "{looks} chunks were read");
    let missing: Vec<_> = part.have().missing(chunks).collect();
    assert_eq!(missing, [2000..at, spoiled..spoiled + 1]);
    missing.into_iter().for_each(|missing| part.write_hole(missing).unwrap());
    part.finish(&root, CommitOptions::default()).unwrap();
    let finished = File::open(stage.dir.path().join("f")).unwrap();
    assert!(finished.metadata().unwrap().blocks() * 512 <= 2 * CHUNK_BYTES as u64);
    assert_eq!(stage.target.root_of(&path("f"), tree, || true).unwrap(), Some(root));
}

#[test]
fn chunks_with_hashes_of_another_tree_are_not_continued() {
    let stage = Stage::new();
    let bytes = content(1, 3 * CHUNK_BYTES);
    let with = |tree| {
        let kind = Kind::File { size: bytes.len() as u64, sparse: Some(tree) };
        Entry { kind, ..file("f", 0) }
    };
    let part = stage.open(&with(Tree::Blake3));
    put(&part, &bytes, 1).unwrap();
    drop(part);
    let mut part = stage.open(&with(Tree::PositionFree));
    part.recheck(|_| true).unwrap();
    assert!(part.have().is_empty());
}

#[test]
fn small_and_empty_files_may_come_as_parts_too() {
    let stage = Stage::new();
    for len in [0, 1, CHUNK_BYTES] {
        let bytes = content(1, len);
        let part = stage.open(&file("f", len));
        if len > 0 {
            put(&part, &bytes, 0).unwrap();
        }
        let commit_options = CommitOptions { on_conflict: OnConflict::Overwrite, sync: false };
        part.finish(&small_root(&bytes), commit_options).unwrap();
        assert_eq!(stage.read("f"), bytes);
    }
}

#[test]
fn names_too_long_to_decorate_are_received_all_the_same() {
    let stage = Stage::new();
    let bytes = content(1, 2 * CHUNK_BYTES);
    for name in ["x".repeat(255), "é".repeat(127)] {
        let part = stage.open(&file(&name, bytes.len()));
        put(&part, &bytes, 0).unwrap();
        drop(part);
        let part = stage.open(&file(&name, bytes.len()));
        assert_eq!(part.have().count(), 1);
        put(&part, &bytes, 1).unwrap();
        part.finish(&small_root(&bytes), CommitOptions::default()).unwrap();
        assert_eq!(stage.read(&name), bytes);
        let commit_options = CommitOptions { on_conflict: OnConflict::Overwrite, sync: false };
        stage.target.write_small(&file(&name, 1), &[b"x"], commit_options).unwrap();
        assert_eq!(stage.read(&name), b"x");
    }
}

#[test]
fn many_files_reuse_a_few_journals_and_folder_times_survive_it() {
    let stage = Stage::new();
    let bytes = content(1, CHUNK_BYTES + 1);
    stage.target.make_dir(&dir("d", 0o755)).unwrap();
    for n in 0..50 {
        let part = stage.open(&file(&format!("d/{n}"), bytes.len()));
        put(&part, &bytes, 0).unwrap();
        put(&part, &bytes, 1).unwrap();
        part.finish(&small_root(&bytes), CommitOptions::default()).unwrap();
        let inside = names(&stage.dir.path().join("d"));
        assert!(inside.iter().filter(|name| name.starts_with('.')).count() <= 1, "{inside:?}");
    }
    stage.target.finish_dirs().unwrap();
    drop(stage.target);
    let meta = fs::metadata(stage.dir.path().join("d")).unwrap();
    assert_eq!((meta.mtime(), meta.mtime_nsec()), (MTIME.s, MTIME.ns.into()));
    assert_eq!(names(&stage.dir.path().join("d")).len(), 50);
}

#[test]
fn everything_can_be_used_from_several_threads() {
    fn is_shared<T: Send + Sync + 'static>() {}
    fn is_sent<T: Send + 'static>() {}
    is_shared::<TargetDir>();
    is_shared::<PartFile>();
    is_shared::<SourceFile>();
    is_shared::<WalkEntry>();
    is_shared::<Error>();
    is_sent::<Walk>();
    is_sent::<RootBuilder>();
    let stage = Stage::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let target = &stage.target;
            scope.spawn(move || {
                for n in 0..50 {
                    let entry = file(&format!("d{}/e/{thread}-{n}", n % 7), 3);
                    let committed =
                        target.write_small(&entry, &[b"abc"], CommitOptions::default()).unwrap();
                    assert_eq!(committed.outcome, Outcome::Created);
                    // All threads want this name; one gets it, the others find it there.
                    let shared = file(&format!("shared/{n}"), 3);
                    target.write_small(&shared, &[b"abc"], CommitOptions::default()).unwrap();
                }
            });
        }
    });
    assert_eq!(names(&stage.dir.path().join("shared")).len(), 50);
}

/// Leaves an empty journal of a finished file in the folder `d`, as a killed process does.
fn leave_orphan(dir: &Path) -> PathBuf {
    let orphan = dir.join("d/.finished.wraith-journal");
    fs::create_dir_all(dir.join("d")).unwrap();
    File::create(&orphan).unwrap();
    fs::set_permissions(&orphan, fs::Permissions::from_mode(0o600)).unwrap();
    orphan
}

#[test]
fn orphaned_journals_of_the_folder_are_removed_by_a_new_and_by_a_resumed_file() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = content(1, 3 * CHUNK_BYTES);
    let entry = file("d/f", bytes.len());
    let orphan = leave_orphan(dir.path());
    let target = TargetDir::open(dir.path()).unwrap();
    assert!(target.resume(&entry, &KEY).unwrap().is_none());
    assert!(orphan.exists(), "a preview removes nothing");
    let part = target.open_or_resume(&entry, &KEY).unwrap();
    assert!(!orphan.exists());
    put(&part, &bytes, 0).unwrap();
    drop((part, target));

    let orphan = leave_orphan(dir.path());
    let target = TargetDir::open(dir.path()).unwrap();
    let part = target.resume_or_renew(&entry, &KEY).unwrap().expect("it was begun");
    assert!(!orphan.exists());
    assert!(part.have().contains(0));
}

#[test]
fn a_file_that_is_begun_while_orphans_are_removed_is_complete() {
    const FILES: usize = 300;
    let dir = tempfile::tempdir().unwrap();
    let bytes = content(2, 2 * CHUNK_BYTES);
    let target = TargetDir::open(dir.path()).unwrap();
    std::thread::scope(|scope| {
        let files = scope.spawn(|| {
            for n in 0..FILES {
                let name = format!("f{n}");
                let part = target.open_or_resume(&file(&name, bytes.len()), &KEY).unwrap();
                (0..2).for_each(|chunk| put(&part, &bytes, chunk).unwrap());
                part.finish(&small_root(&bytes), CommitOptions::default()).unwrap();
                assert!(fs::read(dir.path().join(&name)).unwrap() == bytes, "{name}");
            }
        });
        while !files.is_finished() {
            // Each target searches the folder anew.
            let other = TargetDir::open(dir.path()).unwrap();
            drop(other.open_or_resume(&file("other", CHUNK_BYTES * 2), &[9; 32]));
        }
    });
}
