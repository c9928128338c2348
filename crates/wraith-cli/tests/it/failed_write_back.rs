//! A disk that accepts writes and loses them later, like an exhausted thin pool. Both sides end
//! with exit code 7, without a receipt or a final name. With a good disk, everything arrives.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::support::disk_image::{Disk, FileSystem, disk, succeeds};
use crate::support::{World, is_root, skipped, tree};

/// A file system of 128 MiB on a device with space for a quarter of it.
struct ThinDisk {
    disk: Option<Disk>,
    pool: PathBuf,
}

impl ThinDisk {
    fn mount(world: &World) -> Option<Self> {
        let pool = world.path("pool");
        fs::create_dir(&pool).unwrap();
        let options = ["-t", "tmpfs", "-o", "size=32m", "tmpfs"];
        if !is_root() || !succeeds(Command::new("mount").args(options).arg(&pool)) {
            skipped("mounting a tmpfs needs root and the right to mount");
            return None;
        }
        let mut thin = Self { disk: None, pool };
        thin.disk = disk(FileSystem::Ext4, &world.target(), &thin.pool);
        thin.disk.is_some().then_some(thin)
    }
}

impl Drop for ThinDisk {
    fn drop(&mut self) {
        drop(self.disk.take());
        let _ = Command::new("umount").arg("-l").arg(&self.pool).status();
    }
}

/// Checks that both sides end with 7, without a signature. The kernel decides whether a sync fails,
/// or a later write to a file system in an error state.
fn expect_failure(world: &World, root: &std::path::Path) {
    let mut sender = world.send(&[root]);
    let received = world.receive(&sender.ticket()).finish();
    received.expect_error(7);
    assert_eq!(received.all("done").count(), 0);
    let sent = sender.finish();
    sent.expect_error(7);
    assert_eq!(sent.all("done").count(), 0);
}

#[test]
fn a_large_file_that_the_disk_loses_is_not_confirmed_and_gets_no_name() {
    let world = World::new();
    let Some(thin) = ThinDisk::mount(&world) else { return };
    let film = world.file("film.mov", 1, 80 << 20);
    expect_failure(&world, &film);
    assert!(!world.target().join("film.mov").exists());
    drop(thin);
    world.transfer(&[&film]);
    tree::assert_same(&film, &world.target().join("film.mov"));
}

#[test]
fn small_files_that_the_disk_loses_are_not_confirmed() {
    let world = World::new();
    let Some(_thin) = ThinDisk::mount(&world) else { return };
    let root = world.source().join("tree");
    for n in 0..600 {
        tree::file(&root.join(format!("small-{n}")), n, 130_000);
    }
    expect_failure(&world, &root);
}
