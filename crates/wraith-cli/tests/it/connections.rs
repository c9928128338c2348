//! `--connections`: one transfer over several parallel connections.

use crate::support::journal::wait_until_verified;
use crate::support::{self, World, offering, tree};

const SIZE: usize = 120_000_000;

/// Sends a large and a small file with these options. Returns the number of connections that each
/// side reports.
fn connections_of(sender: &[&str], receiver: &[&str]) -> (u64, u64) {
    let world = World::new();
    let trip = world.source().join("trip");
    tree::file(&trip.join("film.mov"), 1, SIZE);
    tree::file(&trip.join("note"), 2, 1000);
    let mut sender = world.send_with(&[&trip], sender);
    let receiver = world.receive_with(&sender.ticket(), receiver);
    let (received, sent) = (receiver.finish(), sender.finish());
    received.expect_exit(0);
    sent.expect_exit(0);
    tree::assert_same(&trip, &world.target().join("trip"));
    let connections = |outcome: &support::Outcome| {
        outcome.all("done").last().expect("it is done")["connections"].as_u64().unwrap()
    };
    (connections(&sent), connections(&received))
}

/// On a busy machine, a transfer may end before the last connection has carried any data; the next
/// attempt may differ.
const ATTEMPTS: usize = 4;

/// Returns the largest number of connections in a few transfers.
fn most_connections_of(sender: &[&str], receiver: &[&str]) -> (u64, u64) {
    (0..ATTEMPTS).map(|_| connections_of(sender, receiver)).max().expect("there are some")
}

#[test]
fn as_many_connections_carry_a_transfer_as_both_sides_allow() {
    assert_eq!(most_connections_of(&["--connections", "3"], &["--connections", "4"]), (3, 3));
    assert_eq!(connections_of(&["--connections", "4"], &["--connections", "1"]), (1, 1));
}

#[test]
fn the_earlier_name_of_the_option_is_understood() {
    assert_eq!(most_connections_of(&["--lanes", "2"], &["--connections", "2"]), (2, 2));
}

#[test]
fn a_transfer_with_a_limited_rate_stays_on_one_connection() {
    assert_eq!(
        connections_of(&["--connections", "3", "--rate", "1G"], &["--connections", "3"]),
        (1, 1)
    );
    assert_eq!(
        connections_of(&["--connections", "3"], &["--connections", "3", "--rate", "1G"]),
        (1, 1)
    );
}

#[test]
fn a_killed_sender_with_several_connections_is_resumed() {
    let (world, film, sender, ticket) = offering(2 * SIZE, &["--connections", "3"]);
    let receiver = world.receive_with(&ticket, &["--connections", "3"]);
    wait_until_verified(&world.target(), "film.mov", 50);
    sender.kill();
    let mut again = world.send_with(&[&film], &["--connections", "3"]);
    assert_eq!(again.ticket(), ticket);
    let received = receiver.succeed();
    again.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
    let done = received.all("done").last().unwrap();
    let moved = done["bytes_moved"].as_u64().unwrap();
    assert!(moved < 2 * SIZE as u64 - 40 * (256 << 10), "what was verified came again: {moved}");
}
