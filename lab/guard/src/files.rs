//! Files: verification of a chunk, computation of a root, and journal records.

use std::hint::black_box;

use wraith_files::{
    CHUNK_BYTES, Cv, Entry, Kind, Mtime, RelPath, RootBuilder, TargetDir, Tree, chunk_count,
};

use crate::MOST;

/// Chunks of one file in one repetition of [`compose`]: slightly more than 256 MiB.
pub(crate) const CHUNKS: u64 = 1027;
/// Chunks written, each with its record, in one repetition of [`journal`].
pub(crate) const RECORDS: u64 = 4;

/// Compares a chunk that arrived in two pieces with its chaining value.
pub(crate) fn verify(times: u64) {
    let chunk: Vec<u8> = (0..CHUNK_BYTES).map(|i| (i % 251) as u8).collect();
    let expected = Tree::Blake3.chunk_cv(5, &[&chunk]);
    let (a, b) = chunk.split_at(100_000);
    for _ in 0..times {
        assert_eq!(Tree::Blake3.chunk_cv(black_box(5), &[black_box(a), black_box(b)]), expected);
    }
}

/// Computes the root of a file from the chaining values of its chunks, in order except for swapped
/// neighbours.
pub(crate) fn compose(times: u64) {
    let cvs: Vec<Cv> = (0..CHUNKS).map(|i| [i as u8; 32]).collect();
    let size = CHUNKS * CHUNK_BYTES as u64 - 17;
    let mut first = None;
    for _ in 0..times {
        let mut builder = RootBuilder::new();
        for pair in (0..CHUNKS).collect::<Vec<_>>().chunks(2) {
            pair.iter().rev().for_each(|&i| builder.set(i, black_box(cvs[i as usize])));
        }
        let root = builder.finish(size).expect("all chunks are there");
        assert_eq!(root, *first.get_or_insert(root));
    }
}

/// Writes chunks and records them. Only our own instructions count, not the kernel's.
pub(crate) fn journal(times: u64) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let target = TargetDir::open(dir.path()).expect("it exists");
    let chunks = MOST * RECORDS;
    let entry = Entry {
        path: RelPath::parse(b"file").expect("a safe name"),
        kind: Kind::File { size: chunks * CHUNK_BYTES as u64, sparse: None },
        mode: 0o600,
        mtime: Mtime::default(),
    };
    assert_eq!(chunk_count(entry.size()), chunks);
    let content = vec![7; CHUNK_BYTES];
    let (a, b) = content.split_at(100_000);
    let cvs: Vec<Cv> = (0..chunks).map(|index| Tree::Blake3.chunk_cv(index, &[&content])).collect();
    let part = target.open_or_resume(&entry, &[1; 32]).expect("nothing is there");
    for index in 0..times * RECORDS {
        part.write_chunk(index, &[a, b], cvs[index as usize]).expect("written");
    }
    assert_eq!(part.have().count(), times * RECORDS);
    part.discard().expect("it can be removed");
}
