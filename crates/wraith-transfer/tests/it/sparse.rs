//! Files of a terabyte that are nearly all hole: their data is transferred, and the holes are not
//! hashed.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use wraith_files::{FILE_BYTES_MAX, Tree};

use crate::common::*;
use wraith_transfer::{Event, FileStatus, SendOptions};

const TB: u64 = 1 << 40;
const ISLAND: usize = 100_000;

/// Positions of the data: at the front, across a boundary of chunks, and up to the last byte.
fn islands(size: u64) -> [u64; 3] {
    [0, 3 * (TB / 4) - 10, size - ISLAND as u64]
}

/// Creates a file that is a hole except for its islands. Returns `None` where the file system
/// cannot hold it.
fn sparse(path: &Path, size: u64) -> Option<PathBuf> {
    let file = File::create(path).unwrap();
    if let Err(error) = file.set_len(size) {
        skipped(&format!("no file of {size} bytes can be made here: {error}"));
        return None;
    }
    for at in islands(size) {
        file.write_all_at(&noise(at as u8, ISLAND), at).unwrap();
    }
    file.sync_all().unwrap();
    if file.metadata().unwrap().blocks() * 512 > TB / 2 {
        skipped("this file system has no holes");
        return None;
    }
    Some(path.to_path_buf())
}

#[track_caller]
fn assert_is_sparse(path: &Path, size: u64) {
    let file = File::open(path).unwrap();
    let meta = file.metadata().unwrap();
    assert_eq!(meta.len(), size);
    // With so little on disk, everything except the islands is a hole.
    assert!(meta.blocks() * 512 <= 2 << 20, "{} blocks", meta.blocks());
    for at in islands(size) {
        let mut bytes = vec![0; ISLAND];
        file.read_exact_at(&mut bytes, at).unwrap();
        assert!(bytes == noise(at as u8, ISLAND), "other bytes at {at}");
    }
}

type Roots = Arc<Mutex<Vec<(FileStatus, Tree, [u8; 32])>>>;

/// Sends everything. Returns the bytes moved, and the receiver's results with their roots.
fn transfer_roots(folders: &Folders) -> (u64, Vec<(FileStatus, Tree, [u8; 32])>) {
    let ended = Roots::default();
    let send = SendOptions::new(roots(&folders.from()), SECRET);
    let mut options = receive_options(&folders.to());
    let seen = Arc::clone(&ended);
    options.events = Arc::new(move |event: Event<'_>| {
        if let Event::File { status, root: Some((tree, root)), .. } = event {
            seen.lock().unwrap().push((status, tree, root));
        }
    });
    let (sent, received) = transfer(&send, options);
    assert_eq!(sent.unwrap().receipt, received.as_ref().unwrap().receipt);
    let ended = ended.lock().unwrap().clone();
    (received.unwrap().bytes_moved, ended)
}

#[test]
fn a_sparse_terabyte_arrives_and_is_known_the_next_time() {
    let folders = Folders::new();
    let size = TB + 12_345;
    if sparse(&folders.from().join("disk.img"), size).is_none() {
        return;
    }
    let (moved, ended) = transfer_roots(&folders);
    // Each island reaches into two chunks at most.
    assert!(moved <= 6 * CHUNK as u64, "{moved} bytes were moved");
    let [(FileStatus::Done, Tree::PositionFree, root)] = ended[..] else { panic!("{ended:?}") };
    assert_is_sparse(&folders.to().join("disk.img"), size);

    // Recognised once by its mark, and once by its content.
    for _ in 0..2 {
        let (moved, ended) = transfer_roots(&folders);
        assert_eq!(moved, 0);
        assert_eq!(ended, [(FileStatus::AlreadyHere, Tree::PositionFree, root)]);
        for hidden in roots(&folders.to()).iter().filter(|path| !path.ends_with("disk.img")) {
            fs::remove_file(hidden).unwrap();
        }
    }
    // A byte in a hole is a change.
    let copy = File::options().write(true).open(folders.to().join("disk.img")).unwrap();
    copy.write_all_at(&[1], TB / 2).unwrap();
    let (moved, ended) = transfer_roots(&folders);
    assert!(moved > 0);
    assert_eq!(ended, [(FileStatus::Done, Tree::PositionFree, root)]);
}

#[test]
fn a_file_with_few_holes_keeps_the_root_that_others_know() {
    let folders = Folders::new();
    let file = File::create(folders.from().join("disk.img")).unwrap();
    file.set_len(64 << 20).unwrap();
    file.write_all_at(b"island", 1 << 20).unwrap();
    let (_, ended) = transfer_roots(&folders);
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut File::open(folders.to().join("disk.img")).unwrap(), &mut hasher).unwrap();
    let root = *hasher.finalize().as_bytes();
    assert_eq!(ended, [(FileStatus::Done, Tree::Blake3, root)]);
}

#[test]
fn more_bytes_than_64_bits_count_are_offered_and_received_as_most_that_they_do() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        return skipped("no file system for files that large");
    };
    let folders = Folders::within(dir);
    for name in ["a", "b", "c"] {
        let file = File::create(folders.from().join(name)).unwrap();
        if let Err(error) = file.set_len(FILE_BYTES_MAX) {
            return skipped(&format!(
                "no file of {FILE_BYTES_MAX} bytes can be made here: {error}"
            ));
        }
    }
    let offered = Arc::new(Mutex::new(0));
    let send = SendOptions::new(roots(&folders.from()), SECRET);
    let mut options = receive_options(&folders.to());
    let seen = Arc::clone(&offered);
    options.events = Arc::new(move |event: Event<'_>| {
        if let Event::Offer(offer) = event {
            *seen.lock().unwrap() = offer.bytes;
        }
    });
    let progress = Arc::clone(&options.progress);
    let (sent, received) = transfer(&send, options);
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!((received.files, received.failed), (3, 0));
    assert_eq!(sent.receipt, received.receipt);
    let counted = [*offered.lock().unwrap(), progress.bytes(), received.receipt.bytes];
    assert_eq!(counted, [u64::MAX; 3]);
}
