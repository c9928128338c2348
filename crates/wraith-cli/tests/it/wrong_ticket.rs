//! Tickets that are mistyped, that match no offer, or that get no answer.

use std::net::UdpSocket;

use crate::support::{self, World, tree};
use wraith_discovery::{Capability, Ticket};

fn offer(world: &World) -> support::Process {
    let film = world.file("film.mov", 1, 1000);
    world.send(&[film])
}

#[test]
fn a_mistyped_ticket_and_a_wrong_one_are_different_errors() {
    let world = World::new();
    let ticket = offer(&world).ticket();
    let mut letters: Vec<char> = ticket.chars().collect();
    letters[30] = if letters[30] == 'a' { 'b' } else { 'a' };
    let mistyped: String = letters.into_iter().collect();
    world.receive(&mistyped).finish().expect_message(2, "a character was changed");
    assert!(tree::names(&world.target()).is_empty());
}

#[test]
fn a_ticket_with_a_wrong_secret_gets_no_answer_and_the_sender_continues() {
    let world = World::new();
    let mut sender = offer(&world);
    let ticket = sender.ticket();
    let real: Ticket = ticket.parse().unwrap();
    let guess = Capability::from_bytes([7; 16]);
    let wrong = Ticket::new(real.node_id(), guess, real.reach().clone()).to_string();
    let error = world.receive_with(&wrong, &["--timeout", "1"]).finish().expect_error(3).clone();
    assert!(error["hint"].as_str().unwrap().contains("ticket"), "{error}");
    assert!(tree::names(&world.target()).is_empty());

    world.receive(&ticket).succeed();
    sender.succeed();
}

#[test]
fn a_peer_that_does_not_answer_is_not_found() {
    let world = World::new();
    let ticket: Ticket = offer(&world).ticket().parse().unwrap();
    // The sender has ended by now; this socket receives packets and never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let ticket = Ticket::new(ticket.node_id(), ticket.capability().clone(), vec![address]);
    let outcome = world.receive_with(&ticket.to_string(), &["--timeout", "1"]).finish();
    let error = outcome.expect_error(3);
    assert!(error["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
}

#[test]
fn another_identity_at_the_address_is_not_the_peer() {
    let world = World::new();
    let mut sender = offer(&world);
    let real: Ticket = sender.ticket().parse().unwrap();
    let other = wraith_crypto::SecretIdentity::from_seed([9; 32]).node_id();
    let wrong = Ticket::new(other, real.capability().clone(), real.reach().clone());
    world.receive_with(&wrong.to_string(), &["--timeout", "1"]).finish().expect_error(3);
}

#[test]
fn a_sender_without_receivers_gives_up_after_its_timeout() {
    let (world, film) = World::with_file("film.mov", 1, 1000);
    world.send_with(&[film], &["--timeout", "1"]).finish().expect_error(3);
}
