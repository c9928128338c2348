//! The durability in a receipt matches the state of the disk.

use std::fs;
use std::path::Path;

use crate::common::*;
use wraith_files::OnConflict;
use wraith_transfer::{Durability, SendOptions, StreamSource};

/// Sends a few files of each size to `to`. Returns the durability in the receipt, which is the same
/// on both sides.
fn reached(to: &Path, sender_waits: bool, receiver_waits: bool) -> Option<Durability> {
    let folders = Folders::new();
    for n in 0..40usize {
        folders.file(&format!("tree/{}/{n}", n % 3), &noise(n as u8, n * 100));
    }
    folders.file("tree/large", &noise(1, 3 * CHUNK + 1));
    folders.file("tree/larger", &noise(2, 200 * CHUNK));
    let mut send = SendOptions::new(roots(&folders.from()), SECRET);
    send.sync = sender_waits;
    let mut options = receive_options(to);
    options.sync = receiver_waits;
    let (sent, received) = transfer(&send, options);
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!(tree(to), tree(&folders.from()));
    assert_eq!(sent.receipt, received.receipt);
    assert_eq!((received.files, received.failed), (42, 0));
    received.receipt.durability()
}

#[test]
fn the_receipt_reports_the_durability() {
    let to = || tempfile::tempdir_in(".").unwrap();
    assert_eq!(reached(to().path(), true, true), Some(Durability::OnDisk));
    assert_eq!(reached(to().path(), false, true), Some(Durability::NotAwaited));
    assert_eq!(reached(to().path(), true, false), Some(Durability::NotAwaited));
}

#[test]
fn a_file_system_in_memory_is_no_disk() {
    let Ok(to) = tempfile::tempdir_in("/dev/shm") else {
        return skipped("there is no /dev/shm");
    };
    assert_eq!(reached(to.path(), true, true), Some(Durability::CannotSync));
}

#[test]
fn the_receipt_reports_the_durability_of_files_already_present() {
    let folders = Folders::new();
    folders.file("tree/same", &noise(1, 5000));
    folders.file("tree/large", &noise(2, 3 * CHUNK));
    let to = tempfile::tempdir_in(".").unwrap();
    for _ in 0..2 {
        let send = SendOptions::new(roots(&folders.from()), SECRET);
        let (sent, received) = transfer(&send, receive_options(to.path()));
        let (sent, received) = (sent.unwrap(), received.unwrap());
        assert_eq!(sent.receipt.durability(), Some(Durability::OnDisk));
        assert_eq!(received.files + received.already_here, 2);
        assert_eq!(fs::read(to.path().join("tree/same")).unwrap(), noise(1, 5000));
    }
}

#[test]
fn a_stream_that_is_not_kept_is_nowhere_on_the_disk() {
    for (on_conflict, durability) in
        [(OnConflict::Rename, Durability::OnDisk), (OnConflict::Skip, Durability::CannotSync)]
    {
        let to = tempfile::tempdir_in(".").unwrap();
        fs::write(to.path().join("stdin"), "mine").unwrap();
        let mut send = SendOptions::new(Vec::new(), SECRET);
        send.stream = Some(StreamSource::new("stdin".into(), None, &b"something else"[..]));
        let mut options = receive_options(to.path());
        options.on_conflict = on_conflict;
        let (sent, received) = transfer(&send, options);
        let (sent, received) = (sent.unwrap(), received.unwrap());
        assert_eq!(received.skipped, u64::from(on_conflict == OnConflict::Skip));
        assert_eq!(sent.receipt.durability(), Some(durability), "{on_conflict:?}");
        assert_eq!(fs::read(to.path().join("stdin")).unwrap(), b"mine");
    }
}
