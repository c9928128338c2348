//! The closing lines of a transfer report exactly the received files.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::support::{self, Process, World, tree};

/// Runs a transfer with text output. Returns the output and the exit codes of both sides.
fn transfer(world: &World, path: &Path, more: &[&str]) -> [(String, i32); 2] {
    let mut command = world.wraith("sender");
    command.args(["send", "--ticket", "--listen", "127.0.0.1:0"]).arg(path);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut received = (String::new(), 0);
    // The receiver runs as a user without privileges, so that file modes apply to it.
    tree::set_mode(&world.target(), 0o777);
    let (_, (status, sent)) = support::process::said_by(command.spawn().unwrap(), |ticket| {
        let mut command = world.wraith_as_nobody("receiver");
        command.args(["receive", "--yes", ticket, "-o"]).arg(world.target()).args(more);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        received = (said, output.status.code().unwrap());
    });
    [(sent, status.code().unwrap()), received]
}

/// Makes a folder that the receiver cannot write to.
fn closed(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    tree::set_mode(folder, 0o555);
}

#[test]
fn present_files_are_up_to_date_on_both_sides() {
    let (world, film) = World::with_file("film.mov", 1, 3_000_000);
    fs::copy(&film, world.target().join("film.mov")).unwrap();
    for (said, code) in transfer(&world, &film, &[]) {
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("Already up to date: 1 file, 3.00 MB."), "{said}");
    }
}

#[test]
fn failed_files_are_reported_once_and_not_counted_as_received() {
    let (world, root) = World::with_tree("tree", &[("a", 200_000)]);
    closed(&world.target().join("tree"));
    let [(sent, sent_code), (received, code)] = transfer(&world, &root, &[]);
    assert_eq!((sent_code, code), (10, 10), "{sent}\n{received}");
    assert!(sent.contains("Sent nothing."), "{sent}");
    assert!(received.contains("Received nothing."), "{received}");
    assert!(!received.contains("fetched") && !received.contains("verified"), "{received}");
    assert_eq!(received.matches("tree/a").count(), 1, "{received}");
}

#[test]
fn files_beside_a_failed_one_are_counted_alone() {
    let (world, root) = World::with_tree("tree", &[("blocked/large", 200_000), ("small", 1000)]);
    closed(&world.target().join("tree/blocked"));
    tree::set_mode(&world.target().join("tree"), 0o777);
    let [(sent, _), (received, code)] = transfer(&world, &root, &[]);
    assert_eq!(code, 10, "{received}");
    assert!(sent.contains("Sent 1 file, 1.00 kB in"), "{sent}");
    assert!(received.contains("Received 1 file, 1.00 kB in"), "{received}");
}

#[test]
fn a_file_that_is_left_as_it_was_is_one_file() {
    let world = World::new();
    let note = world.source().join("note");
    fs::write(&note, "new").unwrap();
    fs::write(world.target().join("note"), "old one").unwrap();
    let [(sent, _), (received, code)] = transfer(&world, &note, &["--on-conflict", "skip"]);
    assert_eq!(code, 0, "{received}");
    assert!(received.contains("Received nothing. 1 file was kept unchanged."), "{received}");
    assert!(sent.contains("Sent nothing. 1 file was kept unchanged."), "{sent}");
}

#[test]
fn a_dry_run_does_not_call_a_copy_with_another_time_something_else() {
    let (world, film) = World::with_file("film.mov", 1, 1000);
    fs::write(world.target().join("film.mov"), fs::read(&film).unwrap()).unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    let there = fs::File::options().write(true).open(world.target().join("film.mov")).unwrap();
    there.set_modified(long_ago).unwrap();
    let mut sender = world.send(&[&film]);
    let ticket = sender.ticket();
    for more in [&[][..], &["--on-conflict", "skip"]] {
        let mut command = world.wraith("receiver");
        command.args(["receive", "--json", "--dry-run", &ticket, "-o"]).arg(world.target());
        let outcome = Process::start("receive", command.args(more)).succeed();
        assert_eq!(outcome.last("would_receive")["action"], "compare");
    }
}

#[test]
fn both_sides_report_that_the_disk_was_not_awaited() {
    for (at_receiver, words) in
        [(&["--no-sync"][..], ", verified, not yet on disk."), (&[], ", verified.")]
    {
        let (world, film) = World::with_file("film.mov", 1, 3_000_000);
        for (said, code) in transfer(&world, &film, at_receiver) {
            assert_eq!(code, 0, "{said}");
            assert!(said.contains(words), "{said}");
        }
    }
}

#[test]
fn a_sender_that_does_not_wait_for_the_disk_spares_the_receiver_it_too() {
    let (world, film) = World::with_file("film.mov", 1, 3_000_000);
    let mut sender = world.send_with(&[&film], &["--no-sync"]);
    let received = world.receive(&sender.ticket()).finish();
    for outcome in [received, sender.finish()] {
        outcome.expect_exit(0);
        assert_eq!(outcome.last("done")["durability"], "not-awaited");
    }
}
