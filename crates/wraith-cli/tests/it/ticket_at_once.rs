//! The ticket is printed before any file is read, so its delay does not depend on the size.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::support::{self, World, tree};

/// Far fewer bytes than the file, and far more than a program reads at start-up.
const STARTUP_BYTES: u64 = 4 << 20;

/// Returns the bytes that a process has read so far, from Linux.
fn bytes_read(pid: u32) -> Option<u64> {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    io.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
}

#[test]
fn the_ticket_is_printed_before_the_file_is_read() {
    let (world, film) = World::with_file("film.mov", 1, 64 << 20);
    let mut sender = world.send(&[film]);
    sender.ticket();
    match bytes_read(sender.pid()) {
        Some(bytes) => assert!(bytes < STARTUP_BYTES, "{bytes} bytes were read before the ticket"),
        None => support::skipped("/proc does not tell here how much a process has read"),
    }
}

#[test]
fn ready_is_the_first_event_of_a_sender() {
    let (world, film) = World::with_file("film.mov", 1, 100);
    let (sent, _) = world.transfer(&[film]);
    assert_eq!(sent.events[0]["event"], "ready");
}

#[test]
fn people_get_the_exact_command_on_a_line_of_its_own() {
    let (world, film) = World::with_file("film.mov", 1, 100);
    let mut command = world.wraith("sender");
    command.args(["send", "--ticket", "--listen", "127.0.0.1:0"]).arg(&film);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut sender = command.spawn().unwrap();
    let mut out = BufReader::new(sender.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[..2], ["wraith", "receive"]);
    assert!(words[2].starts_with("wraith:"));

    let mut receiver = world.wraith("receiver");
    receiver.args(&words[1..]).args(["--yes", "-o"]).arg(world.target());
    let received = receiver.stdin(Stdio::null()).output().unwrap();
    assert!(received.status.success(), "{}", String::from_utf8_lossy(&received.stderr));
    assert!(received.stdout.is_empty(), "standard output is for what was asked for");
    assert!(sender.wait().unwrap().success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "nothing but the command is on standard output");
    tree::assert_same(&film, &world.target().join("film.mov"));
}
