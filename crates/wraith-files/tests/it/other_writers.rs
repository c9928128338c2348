//! Somebody else writes into a part while it is received. What it says then is never called what was verified.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::common::*;
use wraith_files::*;

const KEY: [u8; 32] = [1; 32];

fn scribble(part: &Path, at: u64) {
    let part = File::options().write(true).open(part).unwrap();
    part.write_all_at(b"of another hand", at).unwrap();
}

#[test]
fn a_part_that_is_changed_while_a_hole_is_entered_is_never_confirmed() {
    // Chunks of zeros enough to be hashed for a while.
    let (data, chunks) = (4, 8000);
    let size = chunks * CHUNK_BYTES as u64;
    let bytes = content(1, data * CHUNK_BYTES);
    let mut root = RootBuilder::new();
    for index in 0..data as u64 {
        root.push(chunk_cv(index, &[chunk(&bytes, index)]));
    }
    root.set_zeros(data as u64..chunks, size);
    let root = root.finish(size).unwrap();
    for spoiled in [2, chunks / 2] {
        let dir = tempfile::tempdir_in(".").unwrap();
        let target = TargetDir::open(dir.path()).unwrap();
        let part = again(|| target.open_or_resume(&sparse_file("f", size), &KEY)).unwrap();
        (0..data as u64).for_each(|index| put(&part, &bytes, index).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // It counts before it is hashed.
                while part.have().count() < chunks {
                    std::thread::yield_now();
                }
                scribble(&dir.path().join(".f.wraith-part"), spoiled * CHUNK_BYTES as u64 + 9);
            });
            part.write_hole(data as u64..chunks).unwrap();
        });
        let finished = part.finish(&root, CommitOptions::default());
        assert!(matches!(finished, Err(Error::Changed { .. })), "chunk {spoiled}: {finished:?}");
    }
}
