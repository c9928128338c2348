//! Random trees with names that collide, sent to file systems with random habits: every content
//! arrives under some name, or the receiver reports the file and both sides exit with 10.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

use crate::support::odd_disk::{Habits, odd_disk};
use crate::support::{Outcome, Process, World, rounds, tree};

/// Names of which some are one name on some file system, or are refused by one.
const NAMES: [&str; 28] = [
    "a",
    "A",
    "a (1)",
    "A (1)",
    "a (2)",
    "file.txt",
    "File.txt",
    "FILE.TXT",
    "file (1).txt",
    "File (1).TXT",
    "caf\u{e9}",
    "cafe\u{301}",
    "CAFE\u{301}",
    "CAF\u{c9}",
    "stra\u{df}e",
    "STRASSE",
    "longfilename.txt",
    "LONGFI~1.TXT",
    "dir",
    "Dir",
    "DIR",
    "b:c",
    "dot.",
    "dot",
    "que?stion",
    "e\u{301}",
    "\u{e9}",
    "film.mov",
];

/// Sizes in bytes: small files, and files of several chunks.
const SIZES: [usize; 5] = [0, 100, 100, 3000, 600_000];

struct Round {
    rng: ChaCha20Rng,
    seed: u64,
    files: u64,
}

impl Round {
    fn below(&mut self, end: usize) -> usize {
        (self.rng.next_u64() % end as u64) as usize
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn habits(&mut self) -> Habits {
        Habits {
            folds_case: !self.one_in(3),
            normalises: self.one_in(2),
            cuts_names: self.one_in(3).then_some(143),
            refuses_long_names: self.one_in(4).then_some(143),
            refuses_characters: self.one_in(3),
            has_short_names: self.one_in(2),
            inodes_by_path: self.one_in(2),
            no_links: self.one_in(3),
            no_noreplace: self.one_in(3),
            no_modes: self.one_in(3),
            coarse_times: self.one_in(3),
            size_max: self.one_in(2).then_some(u32::MAX.into()),
        }
    }

    fn name(&mut self) -> String {
        match self.below(NAMES.len() + 3) {
            at if at < NAMES.len() => NAMES[at].to_owned(),
            at => format!("{}{}", "long ".repeat(33), at - NAMES.len()),
        }
    }

    /// Fills a folder with entries of random names.
    fn fill(&mut self, folder: &Path, entries: usize, depth: usize) {
        // The file system of the target may refuse a name.
        if fs::create_dir_all(folder).is_err() {
            return;
        }
        for _ in 0..entries {
            let path = folder.join(self.name());
            if path.symlink_metadata().is_ok() {
                continue;
            }
            match self.below(8) {
                0 | 1 if depth > 0 => self.fill(&path, entries / 2, depth - 1),
                2 => drop(symlink("nowhere", &path)),
                _ => self.write(&path),
            }
        }
    }

    /// Writes a file, often with the content of another one.
    fn write(&mut self, path: &Path) {
        self.files += 1;
        let number = if self.one_in(4) { self.rng.next_u64() % self.files } else { self.files };
        let size = SIZES[number as usize % SIZES.len()];
        let _ = fs::write(path, tree::noise(self.seed << 20 | number, size));
    }
}

/// Returns the paths and contents of the regular files below `folder`. A file above the size limit
/// has the content of its beginning.
fn files(folder: &Path, all: &mut Vec<(PathBuf, Vec<u8>)>) {
    for item in fs::read_dir(folder).unwrap() {
        let item = item.unwrap();
        let kind = item.file_type().unwrap();
        if kind.is_dir() {
            files(&item.path(), all);
        } else if kind.is_file() {
            let is_huge = item.metadata().unwrap().len() > 1 << 30;
            let content = if is_huge { b"huge".to_vec() } else { fs::read(item.path()).unwrap() };
            all.push((item.path(), content));
        }
    }
}

/// Checks that each file of the source is in the target or was reported.
fn check(world: &World, what: &str, sent: &Outcome, received: &Outcome) {
    let (mut source, mut target) = (Vec::new(), Vec::new());
    files(&world.source(), &mut source);
    files(&world.target(), &mut target);
    let there: HashSet<_> = target.iter().map(|(_, content)| content).collect();
    let statuses = |status: &'static [&str]| {
        let files =
            received.all("file").filter(|file| status.contains(&file["status"].as_str().unwrap()));
        files.map(|file| file["path"].as_str().unwrap().to_owned()).collect::<HashSet<_>>()
    };
    let (placed, skipped) = (statuses(&["done", "already-here"]), statuses(&["skipped"]));
    let reported =
        statuses(&["done", "already-here", "skipped", "blocked", "changed", "unreadable", "stale"]);
    for (path, content) in &source {
        let path = path.strip_prefix(world.source()).unwrap().to_str().unwrap();
        if placed.contains(path) || sent.status.code() == Some(0) && !skipped.contains(path) {
            assert!(there.contains(content), "{what}: {path} is lost");
        }
        assert!(reported.contains(path), "{what}: {path} is not reported");
    }
    let code = received.status.code().unwrap();
    assert!([0, 10].contains(&code), "{what}: {code} {:?}", received.last("error"));
    assert_eq!(sent.status.code(), Some(code), "{what}: both sides");
    let mut left = tree::leftovers(&world.target());
    // After a failure, the list of completed files stays for the next attempt.
    left.retain(|path| code == 0 || path.extension().is_none_or(|extension| extension != "state"));
    assert!(left.is_empty(), "{what}: {left:?}");
    let mut verify = world.wraith("receiver");
    let verified = Process::start("verify", verify.args(["verify", "--json"]).arg(world.target()));
    let verified = verified.finish();
    let differs: Vec<_> = verified.all("differs").collect();
    assert!(differs.is_empty(), "{what}: {differs:?}");
    assert_eq!(verified.status.code(), Some(code), "{what}: {:?}", verified.last("error"));
}

fn round(seed: u64) -> Option<()> {
    let mut round = Round { rng: ChaCha20Rng::seed_from_u64(seed), seed, files: 0 };
    let (world, habits) = (World::new(), round.habits());
    let _disk = odd_disk(habits, &world.target())?;
    let tree = world.source().join("tree");
    if round.one_in(2) {
        round.fill(&world.target().join("tree"), 12, 1);
    }
    round.fill(&tree, 24, 2);
    if habits.size_max.is_some() {
        tree::sparse(&tree.join("huge"), 1 << 32, &[7]);
    }
    for _ in 0..3 {
        let policy = ["rename", "overwrite", "overwrite", "skip"][round.below(4)];
        let what = format!("seed {seed}, {policy}, {habits:?}");
        // The list of an earlier transfer in the same second could count as the last one.
        let _ = fs::remove_dir_all(world.path("home-receiver").join("received"));
        let mut sender = world.send(&[&tree]);
        let received = world.receive_with(&sender.ticket(), &["--on-conflict", policy]).finish();
        check(&world, &what, &sender.finish(), &received);
        let mut all = Vec::new();
        files(&tree, &mut all);
        for (path, _) in all.iter().filter(|(path, _)| !path.ends_with("huge")) {
            if round.one_in(6) {
                round.write(path);
            }
        }
    }
    Some(())
}

#[test]
fn every_content_arrives_or_its_file_is_reported() {
    for seed in 0..rounds(3) {
        if round(seed).is_none() {
            return;
        }
    }
}
