//! A sparse file of a terabyte with a few megabytes of data. It survives a kill and a resume, is
//! verified, and is recognised when it is sent again.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::support::journal::wait_until_verified;
use crate::support::{Process, World, skipped, tree};

const TB: u64 = 1 << 40;
const ISLAND: u64 = 2_000_000;

/// Offsets of the data: at the start, in the middle, and up to the last byte.
const ISLANDS: [u64; 3] = [0, 700_000_000_123, TB - ISLAND];

/// Makes the file. Returns false if the file system cannot store it.
fn make(path: &Path) -> bool {
    let file = File::create(path).unwrap();
    if let Err(error) = file.set_len(TB) {
        skipped(&format!("no terabyte can be made here: {error}"));
        return false;
    }
    for at in ISLANDS {
        file.write_all_at(&tree::noise(at, ISLAND as usize), at).unwrap();
    }
    file.sync_all().unwrap();
    let has_holes = file.metadata().unwrap().blocks() * 512 < TB / 2;
    if !has_holes {
        skipped("this file system has no holes");
    }
    has_holes
}

/// Returns the data ranges that the file system reports.
fn data_of(file: &File) -> Vec<Range<u64>> {
    let seek = |at: u64, whence| {
        // SAFETY: lseek only moves the file position, and no code reads this file by its position.
        unsafe { libc::lseek(file.as_raw_fd(), at as i64, whence) }
    };
    let (mut all, mut at) = (Vec::new(), 0);
    while let Ok(start) = u64::try_from(seek(at, libc::SEEK_DATA)) {
        at = seek(start, libc::SEEK_HOLE) as u64;
        all.push(start..at);
    }
    all
}

/// Checks that both files have the same bytes, without reading common holes.
fn assert_same_content(a: &Path, b: &Path) {
    let (a, b) = (File::open(a).unwrap(), File::open(b).unwrap());
    for file in [&a, &b] {
        let meta = file.metadata().unwrap();
        assert_eq!(meta.len(), TB);
        assert!(meta.blocks() * 512 < 4 * ISLAND, "{} blocks", meta.blocks());
    }
    for range in data_of(&a).into_iter().chain(data_of(&b)) {
        let mut left = vec![0; (range.end - range.start) as usize];
        let mut right = left.clone();
        a.read_exact_at(&mut left, range.start).unwrap();
        b.read_exact_at(&mut right, range.start).unwrap();
        assert!(left == right, "other bytes in {range:?}");
    }
}

#[test]
fn a_sparse_terabyte_survives_a_kill_is_verified_and_known_again() {
    let world = World::new();
    let (image, receipt) = (world.source().join("disk.img"), world.path("receipt"));
    if !make(&image) {
        return;
    }
    let options = ["--rate", "10M", "--receipt", receipt.to_str().unwrap()];
    let mut sender = world.send_with(&[&image], &options);
    let ticket = sender.ticket();
    let mut receiver = world.receive(&ticket);
    receiver.event("accept");
    // The chunks at the start, the hole behind them, and some chunks of the next data.
    wait_until_verified(&world.target(), "disk.img", 11);
    receiver.kill();
    let copy = world.target().join("disk.img");
    assert!(!copy.exists(), "it has its name before it is whole");

    let received = world.receive(&ticket).succeed();
    let sent = sender.succeed();
    assert_same_content(&image, &copy);
    let moved = received.last("done")["bytes_moved"].as_u64().unwrap();
    assert!(moved < 2 * ISLAND, "{moved} bytes were moved again");
    assert_eq!(received.last("done")["bytes"], TB);
    // The reported root differs from the output of b3sum.
    let (here, there) = (received.last("file"), sent.last("file"));
    assert!(here["root"].is_null() && here["position_free_root"].is_string(), "{here}");
    assert_eq!(here["position_free_root"], there["position_free_root"]);

    let verify = |more: &[&str]| {
        let mut command = world.wraith("receiver");
        Process::start("verify", command.args(["verify", "--json"]).args(more)).finish()
    };
    let target = world.target();
    let (target, receipt) = (target.to_str().unwrap(), receipt.to_str().unwrap());
    verify(&[target]).expect_exit(0);
    verify(&["--receipt", receipt, target]).expect_exit(0);

    let (sent, received) = world.transfer(&[&image]);
    for outcome in [&sent, &received] {
        assert_eq!(outcome.last("file")["status"], "already-here");
    }
    assert_eq!(received.last("done")["bytes_moved"], 0);

    // One more byte in the last hole.
    File::options().write(true).open(&copy).unwrap().write_all_at(&[1], TB - TB / 8).unwrap();
    verify(&[target]).expect_error(8);
    verify(&["--receipt", receipt, target]).expect_error(8);
}
