//! A transfer between two endpoints on loopback: the tree arrives unchanged.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};

use crate::common::*;
use wraith_transfer::{Decision, ReceiveOptions, SendOptions, TransferError};

#[test]
fn a_tree_with_everything_arrives_as_it_was() {
    let folders = Folders::new();
    let from = folders.from();
    folders.file("tree/empty", b"");
    folders.file("tree/small", b"hello");
    folders.file("tree/one chunk", &noise(1, CHUNK));
    folders.file("tree/just more", &noise(2, CHUNK + 1));
    folders.file("tree/deep/er/large", &noise(3, 20 * CHUNK - 7));
    folders.file("tree/deep.er", b"sorts between");
    folders.file("single.bin", &noise(4, 3 * CHUNK));
    fs::create_dir_all(from.join("tree/nothing/inside")).unwrap();
    fs::set_permissions(from.join("tree/small"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::set_permissions(from.join("tree/nothing"), fs::Permissions::from_mode(0o700)).unwrap();
    symlink("../small", from.join("tree/nothing/link")).unwrap();
    symlink("/does/not/exist", from.join("tree/dangling")).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"n\xffot utf-8 \n");
    fs::write(from.join("tree").join(odd), b"odd").unwrap();

    let (sent, received) = transfer_all(&folders);
    assert_eq!(tree(&folders.to()), tree(&from));
    assert_eq!(sent.files, 8);
    assert_eq!(sent.failed, 0);
    assert_eq!(received.files, 8);
    assert_eq!(received.bytes_moved, sent.offer.bytes);
    assert!(received.confirmed);
    assert_eq!(sent.receipt, received.receipt);
    sent.receipt.verify(&receiver_identity().node_id()).unwrap();
    assert!(sent.receipt.verify(&sender_identity().node_id()).is_err());
}

#[test]
fn thousands_of_small_files_arrive() {
    let folders = Folders::new();
    for i in 0..3000usize {
        folders.file(&format!("many/{}/{i}", i % 17), &noise(i as u8, i * 7 % 9000));
    }
    let (sent, received) = transfer_all(&folders);
    assert_eq!(tree(&folders.to()), tree(&folders.from()));
    assert_eq!((sent.files, received.files), (3000, 3000));
}

#[test]
fn holes_of_a_sparse_file_stay_holes() {
    let folders = Folders::new();
    let path = folders.file("sparse", b"");
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_len(400 * CHUNK as u64 + 5).unwrap();
    file.write_all_at(b"island", 100 * CHUNK as u64 + 77).unwrap();
    drop(file);
    let (_, received) = transfer_all(&folders);
    assert_eq!(tree(&folders.to()), tree(&folders.from()));
    let sparse = fs::metadata(folders.from().join("sparse")).unwrap();
    if sparse.blocks() * 512 < sparse.len() {
        assert!(received.bytes_moved <= 2 * CHUNK as u64);
        let arrived = fs::metadata(folders.to().join("sparse")).unwrap();
        assert!(arrived.blocks() * 512 <= 4 * CHUNK as u64);
    }
}

#[test]
fn a_file_already_present_is_not_transferred_again() {
    let folders = Folders::new();
    folders.file("tree/small", b"hello");
    folders.file("tree/large", &noise(1, 5 * CHUNK));
    transfer_all(&folders);
    let before = tree(&folders.to());
    let (sent, received) = transfer_all(&folders);
    assert_eq!((received.files, received.already_here, received.bytes_moved), (0, 2, 0));
    assert_eq!(sent.files, 2);
    assert_eq!(tree(&folders.to()), before);
}

#[test]
fn a_different_file_of_the_same_size_is_kept() {
    let folders = Folders::new();
    let from = folders.file("a.txt", &noise(1, 2 * CHUNK));
    fs::write(folders.to().join("a.txt"), noise(2, 2 * CHUNK)).unwrap();
    let (_, received) = transfer_all(&folders);
    assert_eq!(received.files, 1);
    assert_eq!(fs::read(folders.to().join("a.txt")).unwrap(), noise(2, 2 * CHUNK));
    let names = roots(&folders.to());
    assert_eq!(names.len(), 2, "{names:?}");
    let renamed = names.iter().find(|name| !name.ends_with("a.txt")).unwrap();
    assert_eq!(fs::read(renamed).unwrap(), fs::read(from).unwrap());
}

#[test]
fn a_conflict_can_be_overwritten_or_skipped() {
    use wraith_files::OnConflict;
    for (policy, kept) in [(OnConflict::Overwrite, false), (OnConflict::Skip, true)] {
        let folders = Folders::new();
        folders.file("a.txt", b"theirs, longer");
        fs::write(folders.to().join("a.txt"), b"ours").unwrap();
        let send = SendOptions::new(roots(&folders.from()), SECRET);
        let mut options = receive_options(&folders.to());
        options.on_conflict = policy;
        let (sent, received) = transfer(&send, options);
        let (sent, received) = (sent.unwrap(), received.unwrap());
        assert_eq!(received.skipped, u64::from(kept));
        assert_eq!(sent.failed, 0);
        let expected: &[u8] = if kept { b"ours" } else { b"theirs, longer" };
        assert_eq!(fs::read(folders.to().join("a.txt")).unwrap(), expected);
        assert_eq!(roots(&folders.to()).len(), 1);
    }
}

#[test]
fn a_wrong_secret_gets_nothing_and_both_sides_know_why() {
    let (sent, received) = nothing_arrives([8; 16], |_| {});
    assert_eq!(sent, TransferError::WrongSecret);
    assert_eq!(received.exit_code(), 5);
}

/// Offers a file of 8 bytes under a secret, and receives it with other options. Returns both errors.
fn nothing_arrives(
    secret: [u8; 16],
    change: impl FnOnce(&mut ReceiveOptions<'_>),
) -> (TransferError, TransferError) {
    let folders = Folders::new();
    folders.file("a", b"unwanted");
    let send = SendOptions::new(roots(&folders.from()), secret);
    let mut options = receive_options(&folders.to());
    change(&mut options);
    let (sent, received) = transfer(&send, options);
    assert!(roots(&folders.to()).is_empty());
    (sent.unwrap_err(), received.unwrap_err())
}

#[test]
fn a_refusal_changes_nothing_and_reaches_the_sender() {
    let (sent, received) = nothing_arrives(SECRET, |options| {
        options.decide = Box::new(|proposal| {
            let offer = proposal.offer;
            assert_eq!((offer.name.as_str(), offer.files, offer.bytes), ("a", 1, 8));
            Decision::Refuse("not today".into())
        });
    });
    assert_eq!(sent, TransferError::Refused { why: "not today".into() });
    assert_eq!(received.exit_code(), 4);
}

#[test]
fn a_target_that_cannot_be_made_is_the_receivers_disk() {
    let folders = Folders::new();
    folders.file("a", b"x");
    let send = SendOptions::new(roots(&folders.from()), SECRET);
    let (sent, received) = transfer(&send, receive_options(&folders.from().join("a/below a file")));
    assert_eq!(received.unwrap_err().exit_code(), 7);
    let told = sent.unwrap_err();
    assert_eq!(told.exit_code(), 7);
    assert!(told.to_string().starts_with("the receiver's disk"), "{told}");
    let private = folders.from().display().to_string();
    assert!(!told.to_string().contains(&private), "the sender learns where: {told}");
}

#[test]
fn a_file_that_cannot_be_read_is_partial_and_the_rest_arrives() {
    let folders = Folders::new();
    folders.file("tree/good", b"good");
    let bad = folders.file("tree/bad", &noise(1, 3 * CHUNK));
    let send = SendOptions::new(roots(&folders.from()), SECRET);
    let mut options = receive_options(&folders.to());
    // Between the offer and the data: the manifest already lists it.
    options.decide = Box::new(move |_| {
        while fs::remove_file(&bad).is_ok() {}
        Decision::Accept
    });
    let (sent, received) = transfer(&send, options);
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!(fs::read(folders.to().join("tree/good")).unwrap(), b"good");
    // The manifest may have been walked before or after the file was removed.
    assert_eq!(sent.failed, received.failed);
    if received.failed == 1 {
        assert_eq!(sent.outcome().unwrap_err().exit_code(), 10);
        assert_eq!(received.outcome().unwrap_err().exit_code(), 10);
    }
}
