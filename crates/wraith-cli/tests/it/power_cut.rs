//! A power cut, simulated by an image of the target's disk at that moment. No final name refers to
//! a partial file, no confirmed file is missing or wrong, and the transfer resumes from the image.
//!
//! The disk is a file system in a file: ext4, XFS or btrfs. A snapshot of that file, taken during
//! the transfer, holds the data written to the disk, without the kernel's cache. It does not detect
//! a missing flush, because all data handed to the device counts as written. Meanwhile another
//! program makes the file system commit its journal. So no rename waits for its content by chance.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::support::disk_image::{Disk, FileSystem, Shelf, disk};
use crate::support::random::Random;
use crate::support::{World, cases, tree};

/// Number of cuts in each test on ext4; a quarter of it on the others. `WRAITH_POWER_CUTS`
/// overrides it.
const CUTS: u64 = 4;

const SMALL_FILES: u64 = 150;
const MIDDLE_FILES: u64 = 12;
const FILM_BYTES: usize = 12 << 20;

fn cuts(on: FileSystem) -> u64 {
    let usual = if matches!(on, FileSystem::Ext4) { CUTS } else { CUTS / 4 };
    let said = std::env::var("WRAITH_POWER_CUTS").ok();
    said.map_or(usual, |said| said.parse().expect("WRAITH_POWER_CUTS is a number"))
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

/// Makes the file system commit its journal repeatedly until `done`. On btrfs an `fsync` would
/// write a log of one file, so there the whole file system is synced.
fn commit_journal(on: FileSystem, at: &Path, done: &AtomicBool) {
    let other = File::create(at.join("other program")).unwrap();
    let mut len = 0;
    while !done.load(Relaxed) {
        len += 1;
        other.set_len(len % 4096).unwrap();
        match on {
            FileSystem::Ext4 | FileSystem::Ext4SmallInodes | FileSystem::Xfs => {
                other.sync_all().unwrap()
            }
            FileSystem::Btrfs => rustix::fs::syncfs(&other).unwrap(),
        }
    }
}

/// Sets the flag when dropped, even if the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Returns the number of files under final names in `there`. All of them must equal those in
/// `here`.
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

/// A source, and a target on a disk of its own, which is bound last to be unmounted first.
struct Cuts {
    world: World,
    root: PathBuf,
    /// For an image of the disk at a cut.
    copy: PathBuf,
    _shelf: Shelf,
    disk: Disk,
}

impl Cuts {
    /// Returns `None` where no such disk can be made.
    fn new(on: FileSystem) -> Option<Self> {
        let (world, shelf) = (World::new(), Shelf::new()?);
        let disk = disk(on, &world.target(), shelf.path())?;
        let (root, copy) = (world.source().join("tree"), shelf.path().join("copy.img"));
        make_source(&root);
        Some(Self { world, root, copy, _shelf: shelf, disk })
    }
}

cases! {
    confirmed_files_are_on_disk_when_the_sender_exits: cut_at_the_exit(FileSystem::Ext4);
    confirmed_files_are_on_disk_when_the_sender_exits_with_xfs: cut_at_the_exit(FileSystem::Xfs);
    confirmed_files_are_on_disk_when_the_sender_exits_with_btrfs:
        cut_at_the_exit(FileSystem::Btrfs);
}

fn cut_at_the_exit(on: FileSystem) {
    let Some(Cuts { world, root, copy, _shelf, disk }) = Cuts::new(on) else { return };
    for _ in 0..cuts(on) {
        let mut sender = world.send(&[&root]);
        let mut receiver = world.receive(&sender.ticket());
        receiver.event("done");
        let sent = sender.finish();
        disk.cut(&copy);
        sent.expect_exit(0);
        assert_eq!(sent.last("done")["durability"], "on-disk");
        receiver.succeed();
        let after = disk.mount_cut(&copy, &world.path("after"));
        tree::assert_same(&root, &after.at.join("tree"));
        drop(after);
        fs::remove_dir_all(world.target().join("tree")).unwrap();
    }
}

cases! {
    a_power_cut_at_any_moment_leaves_nothing_half_written_and_the_rest_is_fetched:
        cut_at_any_moment(FileSystem::Ext4);
    a_power_cut_at_any_moment_leaves_nothing_half_written_with_xfs:
        cut_at_any_moment(FileSystem::Xfs);
    a_power_cut_at_any_moment_leaves_nothing_half_written_with_btrfs:
        cut_at_any_moment(FileSystem::Btrfs);
}

fn cut_at_any_moment(on: FileSystem) {
    let Some(Cuts { world, root, copy, _shelf, disk }) = Cuts::new(on) else { return };
    let mut random = Random::fresh();
    let mut mid_way = 0;
    for _ in 0..cuts(on) {
        let done = AtomicBool::new(false);
        let (sender, ticket) = std::thread::scope(|scope| {
            let _stop = Stop(&done);
            scope.spawn(|| commit_journal(on, &world.target(), &done));
            let mut sender = world.send_with(&[&root], &["-n", "2", "--rate", "10M"]);
            let ticket = sender.ticket();
            let mut receiver = world.receive(&ticket);
            for _ in 0..1 + random.below(SMALL_FILES + MIDDLE_FILES) {
                receiver.event("file");
            }
            disk.cut(&copy);
            receiver.succeed();
            (sender, ticket)
        });
        let after = disk.mount_cut(&copy, &world.path("after"));
        let there = after.at.join("tree");
        let whole = whole_files(&root, &there);
        mid_way += u64::from(whole < SMALL_FILES + MIDDLE_FILES + 1);
        let mut command = world.wraith("receiver");
        command.args(["receive", "--json", "--yes", &ticket, "-o"]).arg(&after.at);
        crate::support::Process::start("receive", &mut command).succeed();
        sender.succeed();
        tree::assert_same(&root, &there);
        assert_eq!(tree::leftovers(&after.at), Vec::<PathBuf>::new());
        drop(after);
        fs::remove_dir_all(world.target().join("tree")).unwrap();
    }
    assert!(mid_way > 0, "no cut came while files were missing");
}
