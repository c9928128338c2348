//! Relays that only the other side names, and relays that ask for an identity.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::process::Command;

use wraith_discovery::{Reach, RelayAddr, Ticket};

use crate::support::{Process, World};

fn relay(world: &World, words: &[&str]) -> (Process, String) {
    let mut command = world.wraith("server");
    command.args(["relay", "--json", "--listen", "127.0.0.1:0"]).args(words);
    let mut relay = Process::start("relay", &mut command);
    let address = relay.event("listening")["address"].as_str().unwrap().to_owned();
    (relay, address)
}

fn send(world: &World, words: &[&str]) -> Process {
    let film = world.file("film.mov", 1, 300_000);
    let mut command = world.wraith("sender");
    command.args(["send", "--json", "--ticket", "--relay-only"]).args(words).arg(film);
    Process::start("send", &mut command)
}

/// A receiver with the default choice of relays, unless `words` have another one.
fn receive(world: &World, ticket: &str, words: &[&str]) -> Command {
    let mut command = world.wraith("receiver");
    command.env_remove("WRAITH_PEER_RELAYS");
    command.args(["receive", "--json", "--yes", "-o"]).arg(world.target()).args(words).arg(ticket);
    command
}

/// Checks that a receiver with these words gets the file.
fn arrives(world: &World, sender: Process, ticket: &str, words: &[&str]) {
    Process::start("receive", &mut receive(world, ticket, words)).succeed();
    sender.succeed();
}

#[test]
fn a_ticket_leads_to_no_host_of_a_private_network_unless_allowed() {
    let world = World::new();
    let trap = TcpListener::bind("127.0.0.1:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    let port = trap.local_addr().unwrap().port();
    let (_relay, address) = relay(&world, &[]);
    let mut sender = send(&world, &["--relay", &address]);
    let ticket: Ticket = sender.ticket().parse().unwrap();
    let named = ticket.reach().relays().next().unwrap();
    let lying = ["127.0.0.1", "localhost", "::1"]
        .map(|host| RelayAddr::new(host, port, *named.pin(), *named.mailbox()).unwrap());
    let lying = Reach::default().with(lying);
    let lie = Ticket::new(ticket.node_id(), ticket.capability().clone(), lying).to_string();
    for words in [&["--timeout", "3"][..], &["--timeout", "3", "--relay-only"]] {
        let outcome = Process::start("receive", &mut receive(&world, &lie, words)).finish();
        let message = outcome.expect_error(3)["message"].as_str().unwrap().to_owned();
        assert!(message.contains("--peer-relays"), "{message}");
    }
    assert_eq!(trap.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nobody came");
    let words = ["--peer-relays", "any"];
    arrives(&world, sender, &ticket.to_string(), &words);
}

#[test]
fn with_relays_only_the_other_side_chooses_none_unless_allowed() {
    let world = World::new();
    let (_relay, address) = relay(&world, &[]);
    let mut sender = send(&world, &["--relay", &address]);
    let ticket = sender.ticket();
    let words = ["--relay-only", "--timeout", "3"];
    let outcome = Process::start("receive", &mut receive(&world, &ticket, &words)).finish();
    let message = outcome.expect_error(3)["message"].as_str().unwrap().to_owned();
    assert!(message.contains("--relay-only") && message.contains("--relay"), "{message}");
    // The user's own relay is a private host here, and is always used.
    let words = ["--relay-only", "--relay", &address];
    arrives(&world, sender, &ticket, &words);
}

#[test]
fn an_identity_is_shown_only_with_the_option_and_only_where_it_is_asked_for() {
    let world = World::new();
    let (sender, receiver) = (world.node_id("sender"), world.node_id("receiver"));
    let (_relay, address) = relay(&world, &["--only", &sender, "--only", &receiver]);
    let mut refused = send(&world, &["--relay", &address]);
    let note = refused.event("note")["message"].as_str().unwrap().to_owned();
    assert!(note.contains("--relay-identity"), "{note}");
    refused.kill();
    let mut sender = send(&world, &["--relay", &address, "--relay-identity"]);
    let place = ["--relay-only", "--relay", &address, "--relay-identity"];
    let ticket = sender.ticket();
    arrives(&world, sender, &ticket, &place);
}

#[test]
fn a_relay_stops_once_the_transfers_that_it_carried_have_ended() {
    let world = World::new();
    let (relay, address) = relay(&world, &["--drain", "3600"]);
    let mut sender = send(&world, &["--relay", &address]);
    let place = ["--relay-only", "--relay", &address];
    let ticket = sender.ticket();
    arrives(&world, sender, &ticket, &place);
    relay.signal(libc::SIGTERM);
    relay.finish().expect_exit(143);
}
