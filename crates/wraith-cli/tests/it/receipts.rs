//! A receipt kept by a sender proves on any machine which files the receiver has signed for. The
//! proof needs only the file and the receiver's NodeId.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::{self, Outcome, Process, World, offering, tree};
use wraith::state::{ProofError, open_receipt};

/// Runs `wraith verify --json --receipt` on a machine without any state of the transfer.
fn verify(world: &World, file: &Path, more: &[&str]) -> Outcome {
    let mut command = world.wraith("elsewhere");
    Process::start("verify", command.args(["verify", "--json", "--receipt"]).arg(file).args(more))
        .finish()
}

/// Sends these paths with `--receipt`, to a receiver with these options.
fn send_and_keep(
    world: &World,
    paths: &[PathBuf],
    receive: &[&str],
) -> (PathBuf, Outcome, Outcome) {
    let file = world.path("kept.receipt");
    let mut sender = world.send_with(paths, &["--receipt", file.to_str().unwrap()]);
    let received = world.receive_with(&sender.ticket(), receive).finish();
    let sent = sender.finish();
    (file, sent, received)
}

fn lacking(outcome: &Outcome) -> Vec<(String, String)> {
    let of = |event: &serde_json::Value, field: &str| event[field].as_str().unwrap().to_owned();
    outcome.all("not_received").map(|event| (of(event, "path"), of(event, "reason"))).collect()
}

#[test]
fn a_receipt_proves_a_tree_with_everything_on_another_machine() {
    let world = World::new();
    let root = world.source().join("tree");
    tree::everything(&root);
    let (file, sent, received) = send_and_keep(&world, &[root], &[]);
    received.expect_exit(0);
    sent.expect_exit(0);
    assert_eq!(sent.last("receipt")["path"], file.to_str().unwrap());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let by = world.node_id("receiver");
    let target = world.target();
    let outcome = verify(&world, &file, &["--by", &by, target.to_str().unwrap()]);
    outcome.expect_exit(0);
    let signed = outcome.last("signed");
    assert_eq!((&signed["by"], &signed["differ"]), (&by.clone().into(), &0.into()));
    assert_eq!(signed["from"], world.node_id("sender"));
    assert_eq!((&signed["failed"], &signed["skipped"]), (&0.into(), &0.into()));
    assert_eq!(signed["files"], sent.last("done")["files"]);
    verify(&world, &file, &["--by", &by]).expect_exit(0);
    verify(&world, &file, &["--by", &world.node_id("sender")]).expect_error(8);
    let unknown = verify(&world, &file, &["--by", "receiver"]);
    assert!(unknown.expect_error(2)["message"].as_str().unwrap().contains("named receiver"));
    for name in ["receiver", "sender"] {
        world.know("elsewhere", name, None);
    }
    verify(&world, &file, &["--by", "Receiver"]).expect_exit(0);
    verify(&world, &file, &["--by", "sender"]).expect_error(8);

    // The receiver's own list is as good.
    let record = tree::names(&world.path("home-receiver/received")).remove(0);
    let record = world.path("home-receiver/received").join(record);
    verify(&world, &record, &["--by", &by, target.to_str().unwrap()]).expect_exit(0);

    tree::file(&target.join("tree/modes/odd"), 98, 77);
    let outcome = verify(&world, &file, &[target.to_str().unwrap()]);
    outcome.expect_error(8);
    assert_eq!(outcome.last("differs")["path"], "tree/modes/odd");
    assert_eq!(outcome.last("signed")["differ"], 1);
}

#[test]
fn no_byte_of_a_receipt_can_be_another() {
    let (world, root) = World::with_tree("t", &[("a", 10), ("b c", 1000)]);
    tree::sparse(&root.join("holes"), 8 << 20, &[0]);
    symlink("a", root.join("link")).unwrap();
    fs::create_dir_all(world.target().join("t")).unwrap();
    tree::file(&world.target().join("t/b c"), 3, 5);
    let (file, sent, received) = send_and_keep(&world, &[root], &["--on-conflict", "skip"]);
    received.expect_exit(0);
    sent.expect_exit(0);
    verify(&world, &file, &[]).expect_exit(0);

    let good = fs::read(&file).unwrap();
    let edited = world.path("edited");
    let proves = |bytes: &[u8]| {
        fs::write(&edited, bytes).unwrap();
        let opened = open_receipt(fs::File::open(&edited).unwrap());
        opened.and_then(|(head, lines)| lines.verify(&head).map(drop))
    };
    proves(&good).unwrap();
    for at in 0..good.len() {
        let mut bytes = good.clone();
        for byte in [bytes[at] ^ 1, bytes[at] ^ 0x20, b'0', b'+', b' ', 0] {
            if byte == good[at] {
                continue;
            }
            bytes[at] = byte;
            let fault = proves(&bytes);
            let is_noticed = matches!(fault, Err(ProofError::Edited(_) | ProofError::Newer(_)));
            assert!(is_noticed, "byte {at} as {byte}: {fault:?}");
        }
        bytes.remove(at);
        assert!(proves(&bytes).is_err(), "without byte {at}");
        let mut bytes = good.clone();
        bytes.insert(at, b'0');
        assert!(proves(&bytes).is_err(), "one more before byte {at}");
        assert!(proves(&good[..at]).is_err(), "cut off at {at}");
    }
    // Also with a whole line removed or repeated.
    let ends: Vec<_> = (0..good.len()).filter(|&at| good[at] == 0).collect();
    for pair in ends.windows(2) {
        let line = &good[pair[0] + 1..=pair[1]];
        let without = [&good[..=pair[0]], &good[pair[1] + 1..]].concat();
        let twice = [&good[..=pair[1]], line, &good[pair[1] + 1..]].concat();
        assert!(proves(&without).is_err() && proves(&twice).is_err());
        assert!(proves(&[&good[..], line].concat()).is_err());
    }
    // The program reports it.
    fs::write(&edited, [&good[..], b"x"].concat()).unwrap();
    let outcome = verify(&world, &edited, &[]);
    outcome.expect_message(8, "proves nothing");
    assert_eq!(outcome.all("signed").count(), 0);
    verify(&world, &world.path("nothing"), &[]).expect_error(7);
}

#[test]
fn missing_files_are_named_with_the_reason() {
    let world = World::new();
    let root = world.source().join("t");
    for name in ["kept-out", "folder/inside", "good"] {
        tree::file(&root.join(name), 1, 1000);
    }
    tree::file(&world.target().join("t/kept-out"), 2, 7);
    tree::file(&world.target().join("t/folder"), 2, 7);
    let (file, sent, received) = send_and_keep(&world, &[root], &["--on-conflict", "skip"]);
    received.expect_exit(0);
    sent.expect_exit(0);
    let outcome = verify(&world, &file, &[]);
    outcome.expect_exit(0);
    let expected = ["t/folder", "t/folder/inside", "t/kept-out"];
    let expected = expected.map(|path| (path.to_owned(), "skipped".to_owned()));
    assert_eq!(lacking(&outcome), expected);
    let signed = outcome.last("signed");
    assert_eq!(
        (&signed["files"], &signed["skipped"], &signed["failed"]),
        (&1.into(), &3.into(), &0.into())
    );

    // The receiver's own list has the same entries.
    let mut command = world.wraith("receiver");
    let own = Process::start("verify", command.args(["verify", "--json"]).arg(world.target()));
    let own = own.succeed();
    let mut named = lacking(&own);
    named.sort();
    assert_eq!(named, expected);
    assert_eq!(own.last("verified")["not_received"], 3);
}

/// Returns the bytes that a process has read from files so far.
fn bytes_read(pid: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    let line = io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
    line.parse().unwrap()
}

#[test]
fn after_kills_of_both_sides_the_receipt_covers_everything_and_nothing_known_is_read_again() {
    const A_BYTES: usize = 24 << 20;
    const Z_BYTES: usize = 100 << 20;
    let world = World::new();
    let root = world.source().join("tree");
    tree::file(&root.join("a-large"), 1, A_BYTES);
    for n in 0..30 {
        tree::file(&root.join(format!("small-{n}")), n, 5000);
    }
    tree::file(&root.join("z-large"), 50, Z_BYTES);
    let kept = world.path("kept");
    fs::create_dir(&kept).unwrap();
    let more = ["--keep", "--receipt", kept.to_str().unwrap()];
    let mut sender = world.send_with(std::slice::from_ref(&root), &more);
    let ticket = sender.ticket();
    let receiver = world.receive_with(&ticket, &["--rate", "30M", "--reconnect", "0", "--no-sync"]);
    support::journal::wait_until_verified(&world.target().join("tree"), "z-large", 2);
    while !world.target().join("tree/a-large").exists() {
        std::thread::yield_now();
    }
    assert!(!world.target().join("tree/z-large").exists(), "nothing is left to do");
    receiver.kill();
    sender.kill();
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 0, "nothing is left of what was not signed");

    let mut sender = world.send_with(std::slice::from_ref(&root), &more);
    assert_eq!(sender.ticket(), ticket);
    world.receive(&ticket).succeed();
    sender.event("done");
    let read = bytes_read(sender.pid());
    sender.signal(libc::SIGINT);
    sender.succeed();
    assert!(read < (Z_BYTES + A_BYTES / 2) as u64, "{read} bytes were read again");

    let names = tree::names(&kept);
    assert_eq!(names.len(), 1, "{names:?}");
    let file = kept.join(&names[0]);
    let (by, target) = (world.node_id("receiver"), world.target());
    let outcome = verify(&world, &file, &["--by", &by, target.to_str().unwrap()]);
    outcome.expect_exit(0);
    assert_eq!(outcome.last("signed")["files"], 32);
    tree::assert_same(&root, &target.join("tree"));
}

#[test]
fn a_stream_has_a_receipt_too_and_one_that_was_thrown_away_is_not_verified() {
    for taken in [false, true] {
        let world = World::new();
        let file = world.path("kept.receipt");
        if taken {
            fs::write(world.target().join("stdin"), "ours").unwrap();
        }
        let mut command = world.wraith("sender");
        command.args(["send", "--json", "--ticket", "--listen", "127.0.0.1:0", "--receipt"]);
        let input = world.file("input", 1, 700_000);
        command.arg(&file).arg("-").stdin(Stdio::from(fs::File::open(input).unwrap()));
        let mut sender = Process::start_with_stdin("send", &mut command);
        world.receive_with(&sender.ticket(), &["--on-conflict", "skip"]).succeed();
        sender.succeed();
        let outcome = verify(&world, &file, &["--by", &world.node_id("receiver")]);
        outcome.expect_exit(0);
        let signed = outcome.last("signed");
        let figures = (signed["files"].as_u64(), signed["skipped"].as_u64());
        assert_eq!(figures, (Some(u64::from(!taken)), Some(u64::from(taken))));
        assert_eq!(signed["bytes"] == 0, taken, "{signed}");
        let folder = world.target();
        verify(&world, &file, &[folder.to_str().unwrap()]).expect_error(2);
        let mut command = world.wraith("receiver");
        let own = Process::start("verify", command.args(["verify", "--json"]).arg(folder));
        own.succeed();
    }
}

#[test]
fn a_receipt_needs_a_place_before_anything_is_sent() {
    let (world, film) = World::with_file("film.mov", 1, 10);
    let missing = world.path("missing/receipt");
    let file = world.path("receipt");
    for more in [
        &["--receipt", missing.to_str().unwrap()][..],
        &["--receipt", file.to_str().unwrap(), "-n", "2"],
        &["--receipt", file.to_str().unwrap(), "--keep"],
    ] {
        world.send_with(&[&film], more).finish().expect_error(2);
    }
}

#[test]
fn a_receipt_replaces_nothing() {
    let (world, film) = World::with_file("film.mov", 1, 1000);
    let thesis = world.path("thesis.doc");
    tree::file(&thesis, 2, 1000);
    let before = fs::read(&thesis).unwrap();
    for taken in [&thesis, &film, &PathBuf::from("/dev/full")] {
        let sender = world.send_with(&[&film], &["--receipt", taken.to_str().unwrap()]);
        sender.finish().expect_message(2, "already exists");
    }
    // The same for a file that appears there during the transfer.
    let place = world.path("r.receipt");
    let mut sender = world.send_with(&[&film], &["--receipt", place.to_str().unwrap()]);
    let ticket = sender.ticket();
    fs::copy(&thesis, &place).unwrap();
    world.receive_with(&ticket, &[]).succeed();
    sender.finish().expect_exit(7);
    assert_eq!((fs::read(&place).unwrap(), fs::read(&thesis).unwrap()), (before.clone(), before));
}

#[test]
fn the_last_line_of_a_sender_is_its_end() {
    let (world, _, sender, ticket) = offering(3_000_000, &["-n", "2"]);
    for side in ["one", "other"] {
        let mut command = world.wraith(side);
        command.args(["receive", "--json", "--yes", "-o"]).arg(world.path(side)).arg(&ticket);
        Process::start("receive", &mut command).succeed();
    }
    let outcome = sender.succeed();
    assert_eq!(outcome.events.last().unwrap()["event"], "done");
    assert_eq!(outcome.all("done").count(), 2);
}
