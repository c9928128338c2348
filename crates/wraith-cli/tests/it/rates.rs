//! Rate limits. The tests check only the upper bound, because slower is the machine's affair.

use crate::support::{Process, World, offering, tree};

/// 12 MB take 2.9 s at 4 MiB/s; a burst at the beginning may save a tenth of that.
const BYTES: usize = 12_000_000;
const RATE: &str = "4M";
const LEAST_SECONDS: f64 = 2.0;

fn film(world: &World, bytes: usize) -> std::path::PathBuf {
    world.file("film.mov", 1, bytes)
}

fn assert_slow(done: &serde_json::Value) {
    let seconds = done["seconds"].as_f64().unwrap();
    assert!(seconds > LEAST_SECONDS, "{done}");
}

/// Waits for the success of both sides, which may not be too early.
fn both_slow(receiver: Process, sender: Process) {
    assert_slow(receiver.succeed().last("done"));
    sender.succeed();
}

#[test]
fn a_sender_respects_its_rate_limit() {
    let world = World::new();
    let film = film(&world, BYTES);
    let mut sender = world.send_with(&[&film], &["--rate", RATE]);
    both_slow(world.receive(&sender.ticket()), sender);
    tree::assert_same(&film, &world.target().join("film.mov"));
}

#[test]
fn a_receiver_gets_no_more_than_it_asks_for() {
    let world = World::new();
    let mut sender = world.send_with(&[film(&world, BYTES)], &["--rate", "1G"]);
    both_slow(world.receive_with(&sender.ticket(), &["--rate", RATE]), sender);
}

#[test]
fn several_receivers_share_the_rate() {
    let (world, _, mut sender, ticket) = offering(BYTES / 2, &["--rate", RATE, "-n", "2"]);
    // Both wait at the question first, so that they are served at the same time.
    let waiting = ["one", "two"].map(|side| world.receive_asking(side, &ticket));
    sender.event("connected");
    sender.event("connected");
    for (_, answer) in &waiting {
        std::io::Write::write_all(&mut &*answer, b"y\n").unwrap();
    }
    for (process, _answer) in waiting {
        let received = process.succeed();
        assert_slow(received.last("done"));
    }
    sender.succeed();
}

#[test]
fn a_pipe_has_the_same_cap() {
    let world = World::new();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut command = world.wraith("sender");
    command.args(["send", "--json", "--ticket", "--listen", "127.0.0.1:0", "--rate", RATE, "-"]);
    let mut sender = Process::start_with_stdin("send", command.stdin(reader));
    let receiver = world.receive(&sender.ticket());
    std::io::Write::write_all(&mut writer, &tree::noise(1, BYTES)).unwrap();
    drop(writer);
    both_slow(receiver, sender);
}

#[test]
fn a_rate_that_is_none_is_a_usage_error() {
    let world = World::new();
    for rate in ["0", "fast", "100"] {
        let mut command = world.wraith("sender");
        let output = command.args(["send", "--rate", rate, "x"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{rate}");
    }
}
