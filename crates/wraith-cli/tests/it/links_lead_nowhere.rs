//! Links, sent or existing, never lead out of the target: nothing is written through one.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread::{self, JoinHandle};

use crate::lying;
use crate::lying::CHUNK;
use crate::lying::canaries::Canaries;
use crate::lying::sender::{Liar, LyingSender, file, folder, link, offer_of};
use crate::support::{World, tree};

/// Starts a sender that lists and sends `folder/x`, for any existing entry named `folder`.
fn send_into_folder(sender: LyingSender, size: usize) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut liar = sender.offer(offer_of(2, 10 << 20));
        liar.list(&folder("folder"));
        liar.list(&file("folder/x", size));
        liar.end_manifest();
        liar.decided();
        send_content(&mut liar, &vec![7; size]);
        liar.part_well();
    })
}

/// Sends the content of entry 1, requested or not.
fn send_content(liar: &mut Liar, content: &[u8]) {
    if content.len() <= CHUNK {
        return liar.whole(1, content);
    }
    for (index, bytes) in content.chunks(CHUNK).enumerate() {
        liar.record(lying::sender::chunk(1, index as u64, bytes), bytes);
    }
    liar.complete(1, content);
}

#[test]
fn a_link_from_an_earlier_transfer_is_not_followed_by_a_later_one() {
    let world = World::new();
    let canaries = Canaries::around(&world);
    let outside = world.path("outside");
    let target = outside.as_os_str().as_encoded_bytes().to_vec();
    let sender = LyingSender::listen();
    let receiver = world.receive(&sender.ticket());
    let first = thread::spawn(move || {
        let mut liar = sender.offer(offer_of(2, 0));
        liar.list(&link("folder", &target));
        liar.list(&link("x", &[&target[..], b"/x"].concat()));
        liar.end_manifest();
        liar.part_well();
    });
    receiver.succeed();
    first.join().unwrap();
    assert!(world.target().join("folder").is_symlink());

    let files = [("rename", 6, "folder (1)/x"), ("overwrite", 6, "folder/x")];
    let large = [("overwrite", 3 * CHUNK, "folder/x")];
    for (policy, size, place) in files.into_iter().chain(large) {
        let sender = LyingSender::listen();
        let arguments = ["--reconnect", "0", "--on-conflict", policy];
        let receiver = world.receive_with(&sender.ticket(), &arguments);
        let second = send_into_folder(sender, size);
        let outcome = receiver.finish();
        second.join().unwrap();
        outcome.expect_exit(0);
        assert_eq!(fs::metadata(world.target().join(place)).unwrap().len(), size as u64);
        assert_eq!(world.target().join("folder").is_symlink(), policy == "rename");
        canaries.expect_untouched();
    }
}

#[test]
fn a_file_in_place_of_a_link_replaces_the_link_and_not_its_target() {
    let world = World::new();
    let canaries = Canaries::around(&world);
    symlink(world.path("x"), world.target().join("x")).unwrap();
    for (policy, name) in [("rename", "x (1)"), ("overwrite", "x")] {
        let sender = LyingSender::listen();
        let receiver = world.receive_with(&sender.ticket(), &["--on-conflict", policy]);
        let sending = thread::spawn(move || {
            let mut liar = sender.offer(offer_of(1, 6));
            liar.list(&file("x", 6));
            liar.end_manifest();
            liar.decided();
            liar.whole(0, b"gotcha");
            liar.part_well();
        });
        receiver.succeed();
        sending.join().unwrap();
        canaries.expect_untouched();
        assert_eq!(fs::read(world.target().join(name)).unwrap(), b"gotcha");
    }
    assert!(!world.target().join("x").is_symlink());
}

#[test]
fn a_folder_that_turns_into_a_link_during_the_transfer_is_not_followed() {
    let world = World::new();
    let canaries = Canaries::around(&world);
    let sender = LyingSender::listen();
    let receiver = world.receive_with(&sender.ticket(), &["--reconnect", "0"]);
    let mut liar = sender.offer(offer_of(3, 100));
    liar.list(&folder("folder"));
    liar.list(&file("folder/a", 6));
    liar.list(&file("folder/x", 6));
    liar.end_manifest();
    liar.decided();
    liar.whole(1, b"gotcha");
    let folder = world.target().join("folder");
    fs::rename(&folder, world.target().join("moved")).unwrap();
    symlink(world.path("outside"), &folder).unwrap();
    liar.whole(2, b"gotcha");
    let ended = thread::spawn(move || liar.part_well());
    receiver.finish();
    ended.join().unwrap();
    canaries.expect_untouched();
    assert!(folder.is_symlink());
    assert!(tree::leftovers(&world.path("outside")).is_empty());
}

#[test]
fn traps_under_the_hidden_names_of_unfinished_files_are_not_written_to() {
    let world = World::new();
    let canaries = Canaries::around(&world);
    let folder = world.target().join("folder");
    fs::create_dir(&folder).unwrap();
    for name in [".x.wraith-part", ".x.wraith-journal", ".x.wraith-new"] {
        symlink(world.path("x"), folder.join(name)).unwrap();
    }
    let sender = LyingSender::listen();
    let receiver = world.receive(&sender.ticket());
    let sending = thread::spawn(move || {
        let mut liar = sender.offer(offer_of(2, 10 << 20));
        liar.list(&self::folder("folder"));
        liar.list(&file("folder/x", 3 * CHUNK));
        liar.end_manifest();
        liar.decided();
        send_content(&mut liar, &vec![7; 3 * CHUNK]);
        liar.part_well();
    });
    receiver.succeed();
    sending.join().unwrap();
    assert_eq!(fs::read(folder.join("x")).unwrap(), vec![7; 3 * CHUNK]);
    canaries.expect_untouched();
}
