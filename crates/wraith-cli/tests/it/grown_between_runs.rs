//! A file that changes between two runs of a transfer: what the first run received and is still
//! equal is not fetched again.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::support::journal::wait_until_verified;
use crate::support::{Process, World, tree};

const CHUNK: u64 = 256 << 10;
/// Whole chunks and a remainder.
const LOG_BYTES: u64 = 80 * CHUNK + 1234;
/// Chunks that the first run receives at least.
const FIRST: u64 = 50;
const APPENDED: usize = 700_000;
/// Bytes fetched in addition to the missing ones: the pieces at the ends of equal ranges.
const AROUND: u64 = 2 * CHUNK;

struct Transfer {
    world: World,
    log: PathBuf,
}

impl Transfer {
    fn new() -> Self {
        let world = World::new();
        let log = world.source().join("logs/big.log");
        tree::file(&log, 1, LOG_BYTES as usize);
        tree::file(&world.source().join("logs/other.log"), 2, 10_000);
        Self { world, log }
    }

    fn target(&self) -> PathBuf {
        self.world.target().join("logs")
    }

    fn sender(&self) -> (Process, String) {
        let source = self.world.source().join("logs");
        let mut sender = self.world.send_with(&[source], &["--rate", "20M"]);
        let ticket = sender.ticket();
        (sender, ticket)
    }

    /// Runs until `chunks` of the log are verified, and kills both sides.
    fn interrupted(&self, chunks: u64) {
        let (sender, ticket) = self.sender();
        let receiver = self.world.receive_with(&ticket, &["--reconnect", "0"]);
        wait_until_verified(&self.target(), "big.log", chunks);
        receiver.kill();
        sender.kill();
    }

    /// Runs to the end. Returns the bytes that were fetched.
    fn completed(&self, options: &[&str]) -> u64 {
        let (sender, ticket) = self.sender();
        let received = self.world.receive_with(&ticket, options).finish();
        received.expect_exit(0);
        sender.finish().expect_exit(0);
        tree::assert_same(&self.world.source().join("logs"), &self.target());
        assert_eq!(tree::leftovers(&self.world.target()), Vec::<PathBuf>::new());
        received.last("done")["bytes_moved"].as_u64().unwrap()
    }
}

fn append(path: &Path, bytes: usize) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(&tree::noise(3, bytes)).unwrap();
}

#[test]
fn an_appended_file_keeps_what_it_has() {
    let transfer = Transfer::new();
    transfer.interrupted(FIRST);
    append(&transfer.log, APPENDED);
    let most = LOG_BYTES - FIRST * CHUNK + APPENDED as u64 + AROUND;
    let moved = transfer.completed(&[]);
    assert!(moved <= most, "{moved} bytes were fetched, at most {most} expected");
}

#[test]
fn a_file_that_was_changed_in_its_middle_keeps_the_rest() {
    let transfer = Transfer::new();
    transfer.interrupted(FIRST);
    let log = OpenOptions::new().write(true).open(&transfer.log).unwrap();
    log.write_all_at(b"changed", 20 * CHUNK + 5).unwrap();
    let most = LOG_BYTES - FIRST * CHUNK + AROUND;
    let moved = transfer.completed(&[]);
    assert!(moved <= most, "{moved} bytes were fetched, at most {most} expected");
}

#[test]
fn a_file_that_was_only_touched_keeps_everything() {
    let transfer = Transfer::new();
    transfer.interrupted(FIRST);
    let log = fs::File::options().write(true).open(&transfer.log).unwrap();
    log.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let moved = transfer.completed(&[]);
    let most = LOG_BYTES - FIRST * CHUNK + AROUND;
    assert!(moved <= most, "{moved} bytes were fetched, at most {most} expected");
}

/// The second run is interrupted too, before and after it has copied what it needs.
#[test]
fn a_file_that_grows_between_all_runs_loses_nothing() {
    let transfer = Transfer::new();
    transfer.interrupted(FIRST);
    append(&transfer.log, APPENDED);
    transfer.interrupted(5);
    append(&transfer.log, APPENDED);
    transfer.interrupted(FIRST);
    let moved = transfer.completed(&[]);
    let most = LOG_BYTES - FIRST * CHUNK + 2 * APPENDED as u64 + AROUND;
    assert!(moved <= most, "{moved} bytes were fetched, at most {most} expected");
}

#[test]
fn another_file_under_the_name_is_no_reason_to_fetch_again() {
    let transfer = Transfer::new();
    transfer.interrupted(FIRST);
    append(&transfer.log, APPENDED);
    // An older version, which has less in common with the new one.
    let old = fs::read(&transfer.log).unwrap();
    fs::write(transfer.target().join("big.log"), &old[..5 << 20]).unwrap();
    let most = LOG_BYTES - FIRST * CHUNK + APPENDED as u64 + AROUND;
    let moved = transfer.completed(&["--on-conflict", "overwrite"]);
    assert!(moved <= most, "{moved} bytes were fetched, at most {most} expected");
}
