//! A requested output that cannot be written is a failure with exit code 7. A reader that closes
//! the pipe is not a failure.

use std::fs::File;
use std::process::Stdio;

use crate::support::{World, lan, tree};

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

#[test]
fn an_answer_that_cannot_be_written_ends_with_7() {
    let (world, file) = World::with_file("file", 1, 1000);
    let file = file.to_str().unwrap();
    world.know("one", "two", None);
    for words in [
        &["hash", file][..],
        &["hash", "--json", file],
        &["id"],
        &["id", "--json"],
        &["config", "list"],
        &["config", "path"],
        &["contact", "list"],
        &["doctor", "--json"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["--version"],
    ] {
        let mut command = world.wraith("one");
        command.args(words).stdin(Stdio::null()).stdout(full());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{words:?}: {said}");
        assert!(said.contains("standard output"), "{words:?}: {said}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let (world, file) = World::with_file("file", 1, 1000);
    for words in [&["hash", file.to_str().unwrap()][..], &["id"], &["config", "list"], &["--help"]]
    {
        let mut command = world.wraith("one");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = command.args(words).stdin(Stdio::null()).stdout(writer).status().unwrap();
        assert_eq!(status.code(), Some(0), "{words:?}");
    }
}

#[test]
fn a_transfer_whose_events_cannot_be_written_is_completed_first() {
    let (world, file) = World::with_file("file", 1, 3_000_000);
    let mut sender = world.send(&[&file]);
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "--yes", "-o"]).arg(world.target()).arg(sender.ticket());
    let output = command.stdin(Stdio::null()).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    sender.succeed();
    tree::assert_same(&file, &world.target().join("file"));
}

#[test]
fn a_ticket_that_cannot_be_written_is_not_waited_with() {
    let (world, file) = World::with_file("file", 1, 1000);
    let mut command = world.wraith("sender");
    command.args(["send", "--ticket", "--listen", "127.0.0.1:0"]).arg(&file);
    let output = command.stdin(Stdio::null()).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_code_that_cannot_be_written_is_not_waited_with() {
    let _network = lan::own_network();
    let world = World::new();
    for json in [false, true] {
        let mut command = world.wraith("receiver");
        command.args(["receive", "--yes", "--code", "--lan", "lo", "--expires", "30"]);
        command.args(json.then_some("--json"));
        let output = command.stdin(Stdio::null()).stdout(full()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "json {json}: {said}");
    }
}
