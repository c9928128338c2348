//! After a resume both sides show the same figures: the total, the bytes moved since the reconnect,
//! and the rate.

use std::path::PathBuf;

use crate::support::journal::wait_until_verified;
use crate::support::{Outcome, Process, World, offering};
use serde_json::Value;

const BYTES: u64 = 6_000_000;

/// Starts a transfer and waits until some of the film is there. Returns its path, the ticket, the
/// sender and the receiver, too.
fn under_way() -> (World, PathBuf, String, Process, Process) {
    let (world, film, sender, ticket) = offering(BYTES as usize, &["--rate", "2MB"]);
    let mut receiver = world.receive(&ticket);
    receiver.event("accept");
    wait_until_verified(&world.target(), "film.mov", 8);
    (world, film, ticket, sender, receiver)
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
    let (world, _, ticket, sender, killed) = under_way();
    killed.kill();
    let received = world.receive(&ticket).finish();
    assert_agree(&sender.finish(), &received);
}

#[test]
fn a_sender_that_was_killed_and_its_receiver_agree() {
    let (world, film, _, killed, receiver) = under_way();
    killed.kill();
    let sender = world.send_with(&[&film], &["--rate", "2MB"]);
    let received = receiver.finish();
    assert_agree(&sender.finish(), &received);
}
