//! Another program writes to a part while it is being received: its content is never accepted as
//! verified.

use std::fs::{self, File};
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
    // Enough chunks of zeros to be hashed for a while.
    let (data, chunks) = (4, 8000);
    let size = chunks * CHUNK_BYTES as u64;
    let bytes = content(1, data * CHUNK_BYTES);
    let mut root = RootBuilder::new();
    for index in 0..data as u64 {
        root.push(Tree::Blake3.chunk_cv(index, &[chunk(&bytes, index)]));
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
                // The hole is received before it is hashed.
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

/// Writes into every new part as soon as it can be opened, before or after anything else happens to
/// it.
fn scribble_into_new(dir: &Path, n: u64, at: u64) {
    let part = dir.join(format!(".{n}.wraith-part"));
    loop {
        if let Ok(part) = File::options().write(true).open(&part) {
            part.write_all_at(b"of another hand", at).unwrap();
            return;
        }
    }
}

#[test]
fn a_part_that_is_written_to_as_soon_as_it_is_made_is_never_confirmed() {
    const PARTS: u64 = 50;
    let size = 20 * CHUNK_BYTES;
    // Some data in the middle of zeros, and holes around it.
    let mut bytes = vec![0; size];
    bytes[9 * CHUNK_BYTES + 70_000] = 1;
    let root = small_root(&bytes);
    let dir = tempfile::tempdir_in(".").unwrap();
    let target = TargetDir::open(dir.path()).unwrap();
    let places = [0, 4 * CHUNK_BYTES + 5, 9 * CHUNK_BYTES + 5, size - 20].map(|at| at as u64);
    for n in 0..PARTS {
        let part = std::thread::scope(|scope| {
            let at = places[n as usize % places.len()];
            let dir = dir.path();
            scope.spawn(move || scribble_into_new(dir, n, at));
            again(|| target.open_or_resume(&sparse_file(&n.to_string(), size as u64), &KEY))
                .unwrap()
        });
        part.write_hole(0..9).unwrap();
        put(&part, &bytes, 9).unwrap();
        part.write_hole(10..20).unwrap();
        match part.finish(&root, CommitOptions::default()) {
            Ok(_) => {
                assert!(fs::read(dir.path().join(n.to_string())).unwrap() == bytes, "part {n}")
            }
            Err(error) => assert!(matches!(error, Error::Changed { .. }), "{error}"),
        }
    }
}
