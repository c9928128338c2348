//! After a resume both sides show the same figures: the total, the bytes moved since the reconnect,
//! and the rate.

use std::path::PathBuf;

use crate::support::journal::wait_until_verified;
use crate::support::{Outcome, Process, World};
use serde_json::Value;

const BYTES: u64 = 6_000_000;

fn film(world: &World) -> PathBuf {
    world.file("film.mov", 1, BYTES as usize)
}

fn until_some_is_there(world: &World, receiver: &mut Process) {
    receiver.event("accept");
    wait_until_verified(&world.target(), "film.mov", 8);
}

fn figure(done: &Value, name: &str) -> u64 {
    done[name].as_u64().unwrap()
}

fn assert_agree(sent: &Outcome, received: &Outcome) {
    sent.expect_exit(0);
    received.expect_exit(0);
    let (ours, theirs) = (sent.last("done"), received.last("done"));
    for done in [ours, theirs] {
        assert_eq!(figure(done, "bytes"), BYTES, "{done}");
        let moved = figure(done, "bytes_moved");
        assert!(moved > 0 && moved <= BYTES - 8 * (256 << 10), "{done}");
    }
    assert_eq!(ours["bytes_moved"], theirs["bytes_moved"]);
    // Both count from the acceptance, which one side learns a round trip later, to the receipt.
    let rates = [ours, theirs].map(|done| figure(done, "bytes_per_second") as f64);
    assert!((0.8..1.25).contains(&(rates[0] / rates[1])), "{rates:?}");
}

#[test]
fn a_receiver_that_was_killed_and_its_sender_agree() {
    let world = World::new();
    let film = film(&world);
    let mut sender = world.send_with(&[&film], &["--rate", "2MB"]);
    let ticket = sender.ticket();
    let mut killed = world.receive(&ticket);
    until_some_is_there(&world, &mut killed);
    killed.kill();
    let received = world.receive(&ticket).finish();
    assert_agree(&sender.finish(), &received);
}

#[test]
fn a_sender_that_was_killed_and_its_receiver_agree() {
    let world = World::new();
    let film = film(&world);
    let mut killed = world.send_with(&[&film], &["--rate", "2MB"]);
    let ticket = killed.ticket();
    let mut receiver = world.receive(&ticket);
    until_some_is_there(&world, &mut receiver);
    killed.kill();
    let sender = world.send_with(&[&film], &["--rate", "2MB"]);
    let received = receiver.finish();
    assert_agree(&sender.finish(), &received);
}
