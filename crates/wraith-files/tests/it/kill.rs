//! `kill -9` at any instant: a second process continues with the verified chunks of the first and
//! finishes the file.
//!
//! The receiver is this test binary, started again with a role in its environment. It prints a line
//! for every chunk once the chunk is received for good. The test reads a random number of these
//! lines and kills the receiver during the work that follows.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::*;
use wraith_files::*;

const KEY: [u8; 32] = [3; 32];
const CHUNKS: u64 = 24;
/// Number of kills after which a receiver may run to its end.
const KILLS_MAX: u64 = 25;
const SMALL_FILES: usize = 300;

fn big() -> Vec<u8> {
    content(5, CHUNKS as usize * CHUNK_BYTES - 1000)
}

fn start(role: &str, dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::the_receiver_that_is_killed", "--nocapture", "--test-threads=1"])
        .env("WRAITH_TEST_ROLE", role)
        .env("WRAITH_TEST_DIR", dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the receiver's lines that start with `mark`, once there are `count` such lines or the
/// receiver has ended.
fn wait_for(child: &mut Child, mark: &str, count: usize) -> Vec<String> {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let marked = lines.map_while(std::result::Result::ok).filter(|line| line.starts_with(mark));
    marked.take(count).collect()
}

/// Returns a reproducible pseudo-random number.
fn dice(seed: u64, sides: u64) -> u64 {
    let hash = blake3::hash(&seed.to_le_bytes());
    u64::from_le_bytes(*hash.as_bytes().first_chunk().unwrap()) % sides
}

#[test]
fn the_receiver_that_is_killed() {
    let (Ok(role), Ok(dir)) = (std::env::var("WRAITH_TEST_ROLE"), std::env::var("WRAITH_TEST_DIR"))
    else {
        return;
    };
    let target = TargetDir::open(dir.as_ref()).unwrap();
    match role.as_str() {
        "big" => receive_big(&target),
        "small" => receive_small(&target),
        "hold" => hold(&target),
        role => panic!("{role}"),
    }
}

/// Two threads write the missing chunks and print each received chunk.
fn receive_big(target: &TargetDir) {
    let bytes = big();
    let mut part = target.open_or_resume(&file("d/f", bytes.len()), &KEY).unwrap();
    part.recheck(|_| true).unwrap();
    println!("\nhave {}", part.have().count());
    let missing: Vec<u64> = part.have().missing(CHUNKS).flatten().collect();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (part, bytes, missing) = (&part, &bytes, &missing);
            scope.spawn(move || {
                for index in missing.iter().filter(|index| **index % 2 == thread) {
                    put(part, bytes, *index).unwrap();
                    println!("\nchunk {index}");
                }
            });
        }
    });
    println!("\nfinishing");
    part.finish(&small_root(&bytes), CommitOptions::default()).unwrap();
    println!("\nfinished");
}

/// Writes one chunk and waits to be killed.
fn hold(target: &TargetDir) {
    let bytes = big();
    let part = target.open_or_resume(&file("d/f", bytes.len()), &KEY).unwrap();
    put(&part, &bytes, 0).unwrap();
    println!("\nchunk 0");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn small_content(n: usize) -> Vec<u8> {
    content(n as u8, 20_000 + n)
}

fn receive_small(target: &TargetDir) {
    for n in 0..SMALL_FILES {
        let bytes = small_content(n);
        let commit_options = CommitOptions { on_conflict: OnConflict::Overwrite, sync: false };
        target
            .write_small(&file(&format!("s/{n}"), bytes.len()), &[&bytes], commit_options)
            .unwrap();
        println!("\nfile {n}");
    }
    println!("\nfinished");
}

#[test]
fn a_large_file_survives_being_killed_again_and_again() {
    let bytes = big();
    for round in 0..12 {
        let dir = tempfile::tempdir().unwrap();
        let mut counted = 0;
        for attempt in 0.. {
            assert!(attempt <= KILLS_MAX, "left alone, it finishes");
            let mut child = start("big", dir.path());
            let have = wait_for(&mut child, "have", 1);
            let have: u64 = have[0]["have ".len()..].parse().unwrap();
            assert!(have >= counted, "round {round}: {have} chunks left of {counted} announced");
            let left = CHUNKS - have;
            let wait = dice(round * 1000 + attempt, left.min(7) + 2);
            let wait = if attempt < KILLS_MAX { wait as usize } else { usize::MAX };
            let seen = wait_for(&mut child, "", wait);
            child.kill().unwrap();
            let mut rest = String::new();
            child.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
            child.wait().unwrap();
            let announced = |text: &str| text.matches("chunk ").count() as u64;
            counted = have + announced(&seen.join("\n"));
            let name = dir.path().join("d/f");
            if name.exists() {
                assert_eq!(
                    fs::read(&name).unwrap(),
                    bytes,
                    "round {round}: half a file has the name"
                );
                break;
            }
        }
        // Leftovers beside the file are cleared by the process that finds the file complete.
        let target = TargetDir::open(dir.path()).unwrap();
        let entry = file("d/f", bytes.len());
        assert_eq!(
            target.root_of(&entry.path, Tree::Blake3, || true).unwrap(),
            Some(small_root(&bytes))
        );
        target.sweep(&entry, &KEY).unwrap();
        assert_eq!(names(&dir.path().join("d")), ["f"]);
    }
}

#[test]
fn small_files_are_there_whole_or_not_at_all() {
    for round in 0..12 {
        let dir = tempfile::tempdir().unwrap();
        let mut child = start("small", dir.path());
        let wait = 1 + dice(round, SMALL_FILES as u64 / 2) as usize;
        let seen = wait_for(&mut child, "file", wait);
        child.kill().unwrap();
        child.wait().unwrap();
        let there = names(&dir.path().join("s"));
        assert!(there.len() >= seen.len());
        for name in &there {
            let bytes = fs::read(dir.path().join("s").join(name)).unwrap();
            let n: usize = name.parse().expect("nothing hidden is left behind");
            assert_eq!(bytes, small_content(n), "round {round}: {name}");
        }
    }
}

#[test]
fn a_part_belongs_to_the_living() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = start("hold", dir.path());
    assert_eq!(wait_for(&mut child, "chunk", 1), ["chunk 0"]);
    let target = TargetDir::open(dir.path()).unwrap();
    let entry = file("d/f", big().len());
    assert!(matches!(target.open_or_resume(&entry, &KEY), Err(Error::InUse { .. })));
    assert!(matches!(target.resume(&entry, &KEY), Err(Error::InUse { .. })));
    target.sweep(&entry, &KEY).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let mut part = again(|| target.open_or_resume(&entry, &KEY)).unwrap();
    assert!(part.needs_recheck() && part.have().is_empty(), "another process's word is not taken");
    part.recheck(|_| true).unwrap();
    assert_eq!(part.have().iter().next(), Some(0..1));
}
