//! A power cut, as an image of the target's disk at that moment: nothing stands half-written under a final name, nothing that was
//! confirmed is missing or wrong, and the transfer continues from what is there.
//!
//! The disk is ext4 in a file. A copy of that file holds what had been written to the disk, and not what the kernel still kept. It does
//! not show a flush that is missing: what was handed to the device counts as written here. All the while another program
//! makes the file system commit its journal, so that a name does not wait for its content by chance.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::support::random::Random;
use crate::support::{World, is_root, skipped, tree};

/// Cuts of each test, unless `WRAITH_POWER_CUTS` says how many.
const CUTS: u64 = 4;

const SMALL_FILES: u64 = 150;
const MIDDLE_FILES: u64 = 12;
const FILM_BYTES: usize = 12 << 20;

fn cuts() -> u64 {
    let said = std::env::var("WRAITH_POWER_CUTS").ok();
    said.map_or(CUTS, |said| said.parse().expect("WRAITH_POWER_CUTS is a number"))
}

/// A mounted image; unmounted in the end.
struct Disk {
    image: PathBuf,
    at: PathBuf,
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

impl Disk {
    fn mount(image: &Path, at: &Path) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let mounted = succeeds(Command::new("mount").args(["-o", "loop"]).arg(image).arg(at));
        mounted.then(|| Self { image: image.to_owned(), at: at.to_owned() })
    }

    /// What would be there after a power cut now, in `image`.
    fn cut(&self, image: &Path) {
        fs::copy(&self.image, image).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

/// A new file system, mounted at the target of `world`. In memory where that is possible, so that the machine's own disk has no
/// part in it.
fn disk(world: &World, images: &Path) -> Option<Disk> {
    if !is_root() {
        skipped("mounting an image needs root");
        return None;
    }
    let image = images.join("disk.img");
    File::create(&image).unwrap().set_len(128 << 20).unwrap();
    let options = ["-q", "-F", "-m", "0", "-J", "size=16"];
    if !succeeds(Command::new("mkfs.ext4").args(options).arg(&image)) {
        skipped("there is no mkfs.ext4");
        return None;
    }
    let disk = Disk::mount(&image, &world.target());
    if disk.is_none() {
        skipped("no loop device can be mounted");
    }
    disk
}

fn images() -> tempfile::TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

fn make_source(root: &Path) {
    for n in 0..SMALL_FILES {
        tree::file(&root.join(format!("{}/small-{n}", n % 7)), n, 1 + n as usize * 131);
    }
    for n in 0..MIDDLE_FILES {
        tree::file(&root.join(format!("middle/{n}")), n, 300_000 + n as usize * 10_007);
    }
    tree::file(&root.join("film.mov"), 1, FILM_BYTES);
}

/// Makes the file system commit its journal again and again until `done`.
fn commit_journal(at: &Path, done: &AtomicBool) {
    let other = File::create(at.join("other program")).unwrap();
    let mut len = 0;
    while !done.load(Relaxed) {
        len += 1;
        other.set_len(len % 4096).unwrap();
        other.sync_all().unwrap();
    }
}

/// Sets the flag, also when a test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Files under final names in `there`; all of them as in `here`.
fn whole_files(here: &Path, there: &Path) -> u64 {
    let mut count = 0;
    let Ok(entries) = fs::read_dir(there) else { return 0 };
    for entry in entries.map(|entry| entry.unwrap()) {
        let name = entry.file_name();
        let (here, there) = (here.join(&name), there.join(&name));
        if entry.file_type().unwrap().is_dir() {
            count += whole_files(&here, &there);
        } else if !name.to_string_lossy().contains(".wraith-") {
            let same = fs::read(&here).unwrap() == fs::read(&there).unwrap();
            assert!(same, "{} is wrong after a power cut", there.display());
            count += 1;
        }
    }
    count
}

#[test]
fn what_the_sender_was_told_is_on_the_disk_at_its_exit() {
    let (world, images) = (World::new(), images());
    let Some(disk) = disk(&world, images.path()) else { return };
    let root = world.source().join("tree");
    make_source(&root);
    let copy = images.path().join("copy.img");
    for _ in 0..cuts() {
        let mut sender = world.send(&[&root]);
        let mut receiver = world.receive(&sender.ticket());
        receiver.event("done");
        let sent = sender.finish();
        disk.cut(&copy);
        sent.expect_exit(0);
        assert_eq!(sent.last("done")["durability"], "on-disk");
        receiver.finish().expect_exit(0);
        let after = Disk::mount(&copy, &world.path("after")).expect("the copy mounts");
        tree::assert_same(&root, &after.at.join("tree"));
        drop(after);
        fs::remove_dir_all(world.target().join("tree")).unwrap();
    }
}

#[test]
fn a_power_cut_at_any_moment_leaves_nothing_half_written_and_the_rest_is_fetched() {
    let (world, images) = (World::new(), images());
    let Some(disk) = disk(&world, images.path()) else { return };
    let root = world.source().join("tree");
    make_source(&root);
    let copy = images.path().join("copy.img");
    let mut random = Random::fresh();
    let mut mid_way = 0;
    for _ in 0..cuts() {
        let done = AtomicBool::new(false);
        let (sender, ticket) = std::thread::scope(|scope| {
            let stop = Stop(&done);
            scope.spawn(|| commit_journal(&world.target(), &done));
            let mut sender = world.send_with(&[&root], &["-n", "2", "--rate", "10M"]);
            let ticket = sender.ticket();
            let mut receiver = world.receive(&ticket);
            for _ in 0..1 + random.below(SMALL_FILES + MIDDLE_FILES) {
                receiver.event("file");
            }
            disk.cut(&copy);
            drop(stop);
            receiver.finish().expect_exit(0);
            (sender, ticket)
        });
        let after = Disk::mount(&copy, &world.path("after")).expect("the copy mounts");
        let there = after.at.join("tree");
        let whole = whole_files(&root, &there);
        mid_way += u64::from(whole < SMALL_FILES + MIDDLE_FILES + 1);
        let mut command = world.wraith("receiver");
        command.args(["receive", "--json", "--yes", &ticket, "-o"]).arg(&after.at);
        let again = crate::support::Process::start("receive", &mut command).finish();
        again.expect_exit(0);
        sender.finish().expect_exit(0);
        tree::assert_same(&root, &there);
        assert_eq!(tree::leftovers(&after.at), Vec::<PathBuf>::new());
        drop(after);
        fs::remove_dir_all(world.target().join("tree")).unwrap();
    }
    assert!(mid_way > 0, "no cut came while files were missing");
}
