//! Delta transfer: of a file with an older copy at the receiver, only the differences are fetched.
//! Existing files are not fetched at all.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::support::journal::verified_chunks;
use crate::support::random::Random;
use crate::support::{Outcome, World, tree};

const MB: usize = 1 << 20;
/// Not a multiple of any block size.
const BYTES: usize = 32 * MB + 12_345;

/// Cost of the MTU probes on loopback, which takes datagrams of 64 KiB. Real networks need a
/// hundredth of it.
const PROBES: usize = 600_000;

const OVERWRITE: &[&str] = &["--on-conflict", "overwrite"];

/// A sender with a `film`, and a receiver with another version of it.
struct Pair {
    world: World,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Pair {
    fn new(old: Vec<u8>, new: Vec<u8>) -> Self {
        let pair = Self { world: World::new(), old, new };
        fs::write(pair.source(), &pair.new).unwrap();
        fs::write(pair.target(), &pair.old).unwrap();
        pair
    }

    fn source(&self) -> PathBuf {
        self.world.source().join("film")
    }

    fn target(&self) -> PathBuf {
        self.world.target().join("film")
    }

    fn run(&self, send: &[&str], receive: &[&str]) -> Outcome {
        let mut sender = self.world.send_with(&[self.source()], send);
        let received = self.world.receive_with(&sender.ticket(), receive).succeed();
        sender.succeed();
        received
    }

    /// Checks that the new file replaces the old one, that no other file is left, and that at most
    /// `most` bytes were fetched.
    #[track_caller]
    fn overwrite(&self, most: usize) {
        let received = self.run(&[], OVERWRITE);
        assert!(fs::read(self.target()).unwrap() == self.new, "another content");
        assert_eq!(tree::names(&self.world.target()), [PathBuf::from("film")]);
        let done = received.last("done");
        let of_done = |key: &str| done[key].as_u64().unwrap() as usize;
        assert!(of_done("bytes_moved") <= most, "{most} expected: {done}");
        // Pieces, chaining values, packet headers, and the probes on loopback.
        let wire_most = most + BYTES / 200 + PROBES;
        assert!(of_done("wire_bytes") <= wire_most, "{wire_most} expected: {done}");
    }
}

/// Applies the changes of one day: a hundred small edits, one inserted block, one removed block.
fn edited(old: &[u8]) -> Vec<u8> {
    let mut new = old.to_vec();
    for n in 0..100 {
        let at = n * 7919 * 41 % (new.len() - 100);
        new[at..at + 50].copy_from_slice(&tree::noise(n as u64, 50));
    }
    new.splice(9 * MB..9 * MB, tree::noise(500, 40_000));
    new.drain(20 * MB..20 * MB + 77_777);
    new
}

/// Bytes fetched in addition to an edit.
const AROUND: usize = 3000;

#[test]
fn only_the_appended_bytes_are_fetched() {
    let old = tree::noise(1, BYTES);
    let new = [&old[..], &tree::noise(2, 100_000)].concat();
    Pair::new(old, new).overwrite(100_000 + AROUND);
}

#[test]
fn only_the_prepended_bytes_are_fetched() {
    let old = tree::noise(1, BYTES);
    let new = [&tree::noise(2, 100_001), &old[..]].concat();
    Pair::new(old, new).overwrite(100_001 + AROUND);
}

#[test]
fn scattered_edits_are_all_that_is_fetched() {
    let old = tree::noise(1, BYTES);
    let new = edited(&old);
    Pair::new(old, new).overwrite(45_000 + 102 * AROUND);
}

#[test]
fn edits_that_keep_the_size_are_all_that_is_fetched() {
    let old = tree::noise(1, BYTES);
    let mut new = old.clone();
    new[5 * MB..5 * MB + 9].fill(7);
    Pair::new(old, new).overwrite(AROUND);
}

#[test]
fn a_truncated_file_needs_almost_no_transfer() {
    let old = tree::noise(1, BYTES);
    let new = old[..20 * MB].to_vec();
    Pair::new(old, new).overwrite(AROUND);
}

#[test]
fn a_copy_that_has_nothing_in_common_costs_little() {
    let pair = Pair::new(tree::noise(1, BYTES), tree::noise(2, BYTES));
    let received = pair.run(&[], OVERWRITE);
    assert!(fs::read(pair.target()).unwrap() == pair.new);
    let done = received.last("done");
    assert_eq!(done["bytes_moved"], BYTES);
    assert!(done["wire_bytes"].as_u64().unwrap() as usize <= BYTES + BYTES / 40 + PROBES, "{done}");
}

#[test]
fn an_old_copy_stays_where_both_are_kept() {
    let old = tree::noise(1, BYTES);
    let pair = Pair::new(old.clone(), edited(&old));
    let received = pair.run(&[], &[]);
    assert!(fs::read(pair.target()).unwrap() == pair.old);
    assert!(fs::read(pair.world.target().join("film (1)")).unwrap() == pair.new);
    assert!(received.last("done")["bytes_moved"].as_u64().unwrap() < MB as u64);
}

#[test]
fn either_side_can_want_whole_files() {
    let old = tree::noise(1, 3 * MB);
    let new = [&old[..], b"more"].concat();
    let whole = ["--on-conflict", "overwrite", "--whole-file"];
    for (send, receive) in [(&["-W"][..], OVERWRITE), (&[], &whole)] {
        let pair = Pair::new(old.clone(), new.clone());
        let received = pair.run(send, receive);
        assert_eq!(received.last("done")["bytes_moved"], new.len());
        assert!(fs::read(pair.target()).unwrap() == new);
    }
}

#[test]
fn the_same_content_with_another_time_is_not_fetched() {
    for len in [1, 300_000, 3 * MB] {
        let bytes = tree::noise(1, len);
        let pair = Pair::new(bytes.clone(), bytes);
        tree::set_time(&pair.source(), 1_000_000_000, 1);
        let received = pair.run(&[], &[]);
        let done = received.last("done");
        assert_eq!((&done["bytes_moved"], &done["already_here"]), (&0.into(), &1.into()), "{len}");
        assert!((done["wire_bytes"].as_u64().unwrap() as usize) < PROBES, "{len}: {done}");
        assert_eq!(tree::names(&pair.world.target()), [PathBuf::from("film")]);
    }
}

#[test]
fn holes_and_zeros_are_made_here() {
    let world = World::new();
    let (new, old) = (world.source().join("disk"), world.target().join("disk"));
    tree::sparse(&new, 64 * MB as u64, &[0, 30 * MB as u64]);
    tree::file(&old, 1, 40 * MB);
    let mut sender = world.send(&[&new]);
    let received = world.receive_with(&sender.ticket(), OVERWRITE).succeed();
    sender.succeed();
    tree::assert_same(&new, &old);
    assert!(received.last("done")["bytes_moved"].as_u64().unwrap() < MB as u64);
}

#[test]
fn kills_in_the_middle_cost_nothing_that_was_verified() {
    const CHUNKS: u64 = 400;
    let old = tree::noise(1, CHUNKS as usize * (256 << 10));
    let pair = Pair::new(old.clone(), edited(&old));
    let mut random = Random::fresh();
    let mut sender = pair.world.send_with(&[pair.source()], &["--reconnect", "600"]);
    let ticket = sender.ticket();
    let verified = || verified_chunks(&pair.world.target(), "film");
    let mut in_the_middle = 0;
    for _ in 0..12 {
        let before = verified();
        let goal = before + 1 + random.below(CHUNKS / 10);
        let more = ["--on-conflict", "overwrite", "--reconnect", "0"];
        let mut receiver = pair.world.receive_with(&ticket, &more);
        receiver.event("accept");
        while verified() < goal && !receiver.has_ended() {
            std::thread::yield_now();
        }
        let ended = receiver.has_ended();
        receiver.kill();
        let after = verified();
        // The file may have been complete before the kill, with its journal still there.
        if ended || after == 0 || fs::read(pair.target()).unwrap() == pair.new {
            break;
        }
        assert!(after >= before, "{before} chunks were verified, now {after}");
        assert!(fs::read(pair.target()).unwrap() == pair.old, "the old copy is touched too early");
        in_the_middle += 1;
    }
    assert!(in_the_middle > 0, "no kill came in the middle");
    if fs::read(pair.target()).unwrap() != pair.new {
        let received = pair.world.receive_with(&ticket, OVERWRITE).succeed();
        sender.succeed();
        assert!(received.last("done")["bytes_moved"].as_u64().unwrap() < 2 * MB as u64);
    }
    assert!(fs::read(pair.target()).unwrap() == pair.new);
}

#[test]
fn an_old_copy_that_changes_while_it_is_read_spoils_nothing() {
    let old = tree::noise(1, BYTES);
    let pair = Pair::new(old.clone(), edited(&old));
    let changing = fs::File::options().write(true).open(pair.target()).unwrap();
    let mut sender = pair.world.send(&[pair.source()]);
    let mut receiver = pair.world.receive_with(&sender.ticket(), OVERWRITE);
    receiver.event("accept");
    let over = AtomicBool::new(false);
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::fresh();
            while !over.load(Relaxed) {
                let at = random.below((BYTES - 100) as u64);
                changing.write_all_at(&tree::noise(at, 100), at).unwrap();
            }
        });
        let received = receiver.finish();
        over.store(true, Relaxed);
        received
    });
    received.expect_exit(0);
    sender.succeed();
    assert!(fs::read(pair.target()).unwrap() == pair.new);
}

#[test]
fn several_old_copies_at_once_come_out_right() {
    let world = World::new();
    let (from, to) = (world.source().join("all"), world.target().join("all"));
    let old: Vec<_> = (0..6).map(|n| tree::noise(n, 3 * MB + n as usize)).collect();
    fs::create_dir_all(&from).unwrap();
    fs::create_dir_all(&to).unwrap();
    for (n, old) in old.iter().enumerate() {
        let new = [&tree::noise(77, 100 * n), &old[..2 * MB], b"tail"].concat();
        fs::write(from.join(n.to_string()), new).unwrap();
        fs::write(to.join(n.to_string()), old).unwrap();
    }
    for n in 0..50 {
        tree::file(&from.join(format!("small {n}")), n, 5000);
    }
    tree::file(&from.join("new"), 99, 2 * MB);
    let mut sender = world.send(&[&from]);
    let received = world.receive_with(&sender.ticket(), OVERWRITE).succeed();
    sender.succeed();
    for name in fs::read_dir(&from).unwrap().map(|entry| entry.unwrap().file_name()) {
        assert!(
            fs::read(from.join(&name)).unwrap() == fs::read(to.join(&name)).unwrap(),
            "{name:?}"
        );
    }
    assert!(received.last("done")["bytes_moved"].as_u64().unwrap() < 4 * MB as u64);
}
