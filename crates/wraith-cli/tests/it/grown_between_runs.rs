//! A transfer is interrupted, the file changes, and the transfer is run again. Only the rest of the
//! file and its changes are fetched.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::support::journal::{verified_chunks, wait_until_verified};
use crate::support::{Outcome, Process, World, tree};

const MB: usize = 1 << 20;
const CHUNK: usize = 256 << 10;
/// Not a multiple of any block size.
const BYTES: usize = 24 * MB + 12_345;
/// Chunks after which the first run is interrupted: about two thirds.
const FIRST_RUN: u64 = 64;

/// Bytes fetched around a change, and for a piece that the end of the content cuts in two.
const AROUND: usize = 140_000;

/// Slow enough to be interrupted on a busy machine: a third of the file takes more than a second.
const RATE: &[&str] = &["--rate", "6M", "--reconnect", "600"];
const OVERWRITE: &[&str] = &["--on-conflict", "overwrite", "--reconnect", "0"];

struct Film {
    world: World,
    old: Vec<u8>,
}

impl Film {
    fn new() -> Self {
        let film = Self { world: World::new(), old: tree::noise(1, BYTES) };
        fs::write(film.source(), &film.old).unwrap();
        film
    }

    fn source(&self) -> PathBuf {
        self.world.source().join("film")
    }

    fn target(&self) -> PathBuf {
        self.world.target().join("film")
    }

    fn verified(&self) -> u64 {
        verified_chunks(&self.world.target(), "film")
    }

    /// Starts both sides, and kills both once `chunks` are verified.
    fn interrupt_at(&self, chunks: u64) {
        let mut sender = self.world.send_with(&[self.source()], RATE);
        let receiver = self.world.receive_with(&sender.ticket(), OVERWRITE);
        wait_until_verified(&self.world.target(), "film", chunks);
        receiver.kill();
        sender.kill();
        assert!(!tree::leftovers(&self.world.target()).is_empty(), "nothing was left to continue");
    }

    fn run(&self, send: &[&str], receive: &[&str]) -> Outcome {
        let mut sender = self.world.send_with(&[self.source()], send);
        let received = self.world.receive_with(&sender.ticket(), receive).succeed();
        sender.succeed();
        received
    }

    /// Checks that the next run fetches at most `most` bytes, and leaves the new content alone.
    #[track_caller]
    fn complete(&self, new: &[u8], most: usize) {
        let received = self.run(&[], OVERWRITE);
        self.check(&received, new, most);
    }

    #[track_caller]
    fn check(&self, received: &Outcome, new: &[u8], most: usize) {
        assert!(fs::read(self.target()).unwrap() == new, "another content");
        assert_eq!(tree::names(&self.world.target()), [PathBuf::from("film")]);
        let done = received.last("done");
        assert_eq!((&done["bytes"], &done["files"]), (&new.len().into(), &1.into()), "{done}");
        let moved = done["bytes_moved"].as_u64().unwrap() as usize;
        assert!(moved <= most, "{most} expected: {done}");
    }

    /// Bytes of the old content that the first run did not fetch.
    fn rest(&self) -> usize {
        BYTES - self.verified() as usize * CHUNK
    }
}

fn append(path: &Path, bytes: &[u8]) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn only_the_rest_and_the_appended_bytes_are_fetched() {
    let film = Film::new();
    film.interrupt_at(FIRST_RUN);
    let rest = film.rest();
    let more = tree::noise(2, MB);
    append(&film.source(), &more);
    film.complete(&[&film.old[..], &more].concat(), rest + MB + AROUND);
}

#[test]
fn changes_in_the_middle_are_all_that_is_fetched_of_the_beginning() {
    let edit = |film: &mut Vec<u8>| film[5 * MB..5 * MB + 9].fill(7);
    let insert = |film: &mut Vec<u8>| {
        film.splice(3 * MB + 7..3 * MB + 7, tree::noise(3, 100_001));
    };
    let remove = |film: &mut Vec<u8>| {
        film.drain(4 * MB..5 * MB + 1);
    };
    for (change, bytes) in [(&edit as &dyn Fn(&mut Vec<u8>), 9), (&insert, 100_001), (&remove, 0)] {
        let film = Film::new();
        film.interrupt_at(FIRST_RUN);
        let rest = film.rest();
        let mut new = [&film.old[..], &tree::noise(2, MB)].concat();
        change(&mut new);
        fs::write(film.source(), &new).unwrap();
        film.complete(&new, rest + MB + bytes + 2 * AROUND);
    }
}

#[test]
fn a_kill_after_the_file_grew_loses_nothing_of_either_run() {
    let film = Film::new();
    film.interrupt_at(FIRST_RUN);
    let rest = film.rest();
    let mut new = film.old.clone();
    for run in 0..3 {
        let more = tree::noise(2 + run, MB);
        append(&film.source(), &more);
        new.extend(more);
        // Chunks of this version: the kill may come while old content is still being compared.
        film.interrupt_at(20 * run + 5);
        assert!(!film.target().exists(), "it has its name too early");
    }
    // The last part of the old content was complete in the first run, or came in a later one.
    film.complete(&new, rest + 3 * MB + 4 * AROUND);
}

#[test]
fn a_waiting_receiver_keeps_the_content_of_a_sender_that_returns_with_a_longer_file() {
    let film = Film::new();
    let mut sender = film.world.send_with(&[film.source()], RATE);
    let more = ["--on-conflict", "overwrite"];
    let receiver = film.world.receive_with(&sender.ticket(), &more);
    wait_until_verified(&film.world.target(), "film", FIRST_RUN);
    sender.kill();
    let rest = film.rest();
    append(&film.source(), b"more");
    let sender: Process = film.world.send_with(&[film.source()], &[]);
    let received = receiver.succeed();
    sender.succeed();
    film.check(&received, &[&film.old[..], b"more"].concat(), rest + AROUND);
}

#[test]
fn a_folder_continues_with_its_grown_and_its_complete_files() {
    let world = World::new();
    let (from, to) = (world.source().join("all"), world.target().join("all"));
    for n in 0..30 {
        tree::file(&from.join(format!("a small {n}")), n, 5000);
    }
    tree::file(&from.join("b log"), 50, BYTES);
    tree::file(&from.join("c later"), 51, 2 * MB);
    let mut sender = world.send_with(&[&from], RATE);
    let receiver = world.receive_with(&sender.ticket(), OVERWRITE);
    wait_until_verified(&to, "b log", FIRST_RUN);
    receiver.kill();
    sender.kill();
    let rest = BYTES - verified_chunks(&to, "b log") as usize * CHUNK;
    append(&from.join("b log"), b"more");
    append(&from.join("a small 7"), b"more");
    let mut sender = world.send(&[&from]);
    let received = world.receive_with(&sender.ticket(), OVERWRITE).succeed();
    sender.succeed();
    tree::assert_same(&from, &to);
    assert_eq!(tree::leftovers(&world.target()), Vec::<PathBuf>::new());
    let moved = received.last("done")["bytes_moved"].as_u64().unwrap() as usize;
    assert!(moved <= rest + 2 * MB + 35 * 5000 + AROUND, "{moved}, with a rest of {rest}");
}

#[test]
fn a_whole_old_file_is_better_than_a_short_part() {
    let film = Film::new();
    fs::write(film.target(), &film.old).unwrap();
    let other = tree::noise(9, BYTES);
    fs::write(film.source(), &other).unwrap();
    film.interrupt_at(5);
    assert!(fs::read(film.target()).unwrap() == film.old, "the old file is touched too early");
    let new = [&film.old[..], b"more"].concat();
    fs::write(film.source(), &new).unwrap();
    film.complete(&new, AROUND);
}

#[test]
fn where_whole_files_are_wanted_all_is_fetched_and_nothing_is_left() {
    let film = Film::new();
    film.interrupt_at(FIRST_RUN);
    append(&film.source(), b"more");
    let received = film.run(&["--whole-file"], OVERWRITE);
    assert_eq!(received.last("done")["bytes_moved"], BYTES + 4);
    film.check(&received, &[&film.old[..], b"more"].concat(), BYTES + 4);
}

#[test]
fn a_part_of_a_file_that_is_skipped_now_is_removed() {
    let film = Film::new();
    film.interrupt_at(FIRST_RUN);
    fs::write(film.target(), b"mine").unwrap();
    append(&film.source(), b"more");
    film.run(&[], &["--on-conflict", "skip"]);
    assert!(fs::read(film.target()).unwrap() == b"mine");
    assert_eq!(tree::names(&film.world.target()), [PathBuf::from("film")]);
}

#[test]
fn a_file_that_was_only_touched_keeps_everything() {
    let film = Film::new();
    film.interrupt_at(FIRST_RUN);
    let rest = film.rest();
    let file = fs::OpenOptions::new().write(true).open(film.source()).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    film.complete(&film.old, rest + AROUND);
}
