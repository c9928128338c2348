//! A full disk ends the transfer with exit code 7 on both sides. With free space again, the
//! transfer resumes.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::disk_image::{FileSystem, disk, images};
use crate::support::journal::wait_until_verified;
use crate::support::{self, World, expect_arrival, is_root, skipped, tree};

/// A file system of its own. Drop unmounts it.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, options: &str) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(at)
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then(|| Self(at.to_owned()))
    }

    fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        let done = Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap();
        assert!(done.success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn small_disk(at: &Path, options: &str) -> Option<SmallDisk> {
    let disk = if is_root() { SmallDisk::mount(at, options) } else { None };
    if disk.is_none() {
        skipped("mounting a tmpfs needs root and the right to mount");
    }
    disk
}

#[test]
fn a_code_that_cannot_be_recorded_as_tried_causes_a_notice() {
    let world = World::new();
    let home = world.path("home-receiver");
    fs::create_dir_all(&home).unwrap();
    let Some(_disk) = small_disk(&home, "size=64k,mode=700") else { return };
    assert!(world.wraith("receiver").arg("id").output().unwrap().status.success());
    // The remaining space is filled, so that opening a file succeeds and a write fails.
    let _ = fs::write(home.join("filler"), vec![0; 1 << 20]);
    let (_server, address) = world.rendezvous();
    let film = world.file("film.mov", 1, 1);
    let sender = world.send_by_code(&[&film], &["--rendezvous", &address]);
    let mut sender = sender;
    let wrong = support::other_words(&sender.code());
    let received = world.receive_with(&wrong, &["--rendezvous", &address]).finish();
    received.expect_error(5);
    let notes: Vec<_> = received.all("note").map(|note| note["message"].to_string()).collect();
    assert!(
        notes.iter().any(|note| note.contains("the attempt with this code was not recorded")),
        "{notes:?}"
    );
    sender.finish().expect_error(5);
}

#[test]
fn a_disk_without_room_is_reported_before_anything_is_written() {
    let world = World::new();
    let Some(_disk) = small_disk(&world.target(), "size=8m") else { return };
    let film = world.file("film.mov", 1, 32 << 20);
    let mut sender = world.send(&[film]);
    let received = world.receive(&sender.ticket()).finish();
    let message = received.expect_error(7)["message"].as_str().unwrap().to_owned();
    assert!(message.to_lowercase().contains("space"), "{message}");
    sender.finish().expect_error(7);
    assert_eq!(tree::names(&world.target()), Vec::<PathBuf>::new());
}

#[test]
fn a_disk_that_fills_up_keeps_what_is_verified() {
    let world = World::new();
    // Inodes run out long before bytes, so no check in advance can detect it.
    let Some(disk) = small_disk(&world.target(), "size=64m,nr_inodes=100") else { return };
    let root = world.source().join("tree");
    for n in 0..300 {
        tree::file(&root.join(format!("file-{n:03}")), n, 5000);
    }
    let mut sender = world.send(&[&root]);
    let received = world.receive(&sender.ticket()).finish();
    received.expect_error(7);
    sender.finish().expect_error(7);
    let kept = tree::names(&world.target().join("tree"));
    assert!(!kept.is_empty());
    for name in kept.iter().filter(|n| !n.to_string_lossy().starts_with('.')) {
        let (there, here) = (world.target().join("tree").join(name), root.join(name));
        assert_eq!(std::fs::read(there).unwrap(), std::fs::read(here).unwrap());
    }

    disk.remount("nr_inodes=1000");
    let (_, again) = world.transfer(&[&root]);
    tree::assert_same(&root, &world.target().join("tree"));
    assert!(again.all("file").any(|f| f["status"] == "already-here"));
}

#[test]
fn space_that_an_interrupted_file_has_reserved_is_available_to_it() {
    let (world, images) = (World::new(), images());
    let Some(_disk) = disk(FileSystem::Ext4, &world.target(), images.path()) else { return };
    let film = world.file("film.mov", 1, 64 << 20);
    let mut sender = world.send_with(&[&film], &["--reconnect", "600"]);
    let ticket = sender.ticket();
    let receiver = world.receive_with(&ticket, &["--rate", "20M"]);
    wait_until_verified(&world.target(), "film.mov", 20);
    receiver.kill();
    expect_arrival(world.receive(&ticket), sender, &film, &world.target());
}

/// The receiver checks before it calls the sender, so the sender keeps waiting.
#[test]
fn a_read_only_target_ends_with_7_and_the_ticket_stays_good() {
    let world = World::new();
    let Some(_disk) = small_disk(&world.target(), "size=8m,ro") else { return };
    let film = world.file("film.mov", 1, 100_000);
    let mut sender = world.send(&[&film]);
    let ticket = sender.ticket();
    let received = world.receive(&ticket).finish();
    let message = received.expect_error(7)["message"].as_str().unwrap().to_owned();
    assert!(message.to_lowercase().contains("read-only"), "{message}");
    let elsewhere = world.path("elsewhere");
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "--yes", &ticket, "-o"]).arg(&elsewhere);
    support::Process::start("receive", &mut command).succeed();
    sender.succeed();
    tree::assert_same(&film, &elsewhere.join("film.mov"));
}

#[test]
fn a_target_that_is_a_file_ends_with_7() {
    let (world, film) = World::with_file("film.mov", 1, 1000);
    let mut sender = world.send(&[film]);
    let target = world.path("a file");
    tree::file(&target, 1, 1);
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "--yes", &sender.ticket(), "-o"]).arg(&target);
    support::Process::start("receive", &mut command).finish().expect_error(7);
}

#[test]
fn a_deleted_target_folder_is_reported() {
    let world = World::new();
    let root = world.source().join("tree");
    tree::files(&root, 40, 100_000, |n| n.to_string());
    let mut sender = world.send_with(&[&root], &["--rate", "1M"]);
    let mut receiver = world.receive(&sender.ticket());
    receiver.event("file");
    // The receiver may create a file in the folder while this empties it.
    while let Err(error) = fs::remove_dir_all(world.target()) {
        assert_eq!(error.kind(), ErrorKind::DirectoryNotEmpty);
    }
    let received = receiver.finish();
    let message = received.expect_error(7)["message"].as_str().unwrap();
    assert_eq!(message, "this machine's disk: the target folder was deleted");
    let sent = sender.finish();
    let message = sent.expect_error(7)["message"].as_str().unwrap();
    assert_eq!(message, "the receiver's disk: the target folder was deleted");
}
