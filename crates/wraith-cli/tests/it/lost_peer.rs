//! A peer that is killed during a transfer. The other side waits. It then resumes with the peer, or
//! ends with exit code 6 and a hint.

use crate::support::journal::wait_until_verified;
use crate::support::{Process, World, cases, tree};

const SIZE: usize = 400 << 20;

/// Starts a transfer and waits until some bytes have arrived; many are left.
fn under_way(world: &World, reconnect: &str) -> (Process, Process, String) {
    let film = world.file("film.mov", 1, SIZE);
    let mut sender = world.send_with(&[film], &["--reconnect", reconnect]);
    let ticket = sender.ticket();
    let receiver = world.receive_with(&ticket, &["--reconnect", reconnect]);
    wait_until_verified(&world.target(), "film.mov", 1);
    (sender, receiver, ticket)
}

cases! {
    a_receiver_whose_sender_is_killed_ends_with_6_and_a_hint: killed(true, "wraith receive");
    a_sender_whose_receiver_is_killed_ends_with_6_and_a_hint: killed(false, "wraith send");
}

/// Kills one side, and checks the hint of the other.
fn killed(kills_sender: bool, hint: &str) {
    let world = World::new();
    let (sender, receiver, _) = under_way(&world, "0");
    let (dies, stays) = if kills_sender { (sender, receiver) } else { (receiver, sender) };
    dies.kill();
    stays.finish().expect_hint(6, hint);
    assert!(!world.target().join("film.mov").exists());
}

#[test]
fn a_peer_that_does_not_return_is_reported_as_lost() {
    for kills_sender in [true, false] {
        let world = World::new();
        let (sender, receiver, _) = under_way(&world, "1");
        let (dies, stays) = if kills_sender { (sender, receiver) } else { (receiver, sender) };
        dies.kill();
        let outcome = stays.finish();
        let message = outcome.expect_error(6)["message"].as_str().unwrap().to_owned();
        assert!(message.contains("no packet from the peer"), "{message}");
        assert!(message.ends_with("it did not come back within 1 s"), "{message}");
    }
}

#[test]
fn a_receiver_goes_on_by_itself_when_the_sender_is_started_again() {
    let world = World::new();
    let (sender, receiver, ticket) = under_way(&world, "60");
    sender.kill();
    let mut again = world.send_with(&[world.source().join("film.mov")], &["--reconnect", "60"]);
    assert_eq!(again.ticket(), ticket, "the same command offers the same ticket again");
    receiver.succeed();
    again.succeed();
    tree::assert_same(&world.source().join("film.mov"), &world.target().join("film.mov"));
}
