//! Transfers through a relay: by code and by ticket, with a token, with hidden addresses, and after
//! the relay dies.

use std::fs;

use serde_json::Value;
use wraith_discovery::{Reach, RelayAddr, Ticket, Way};

use crate::support::{Outcome, Process, World, expect_arrival, tree};

/// Starts a relay of the program at this address. Returns it with its actual address.
fn relay(world: &World, listen: &str, words: &[&str]) -> (Process, String) {
    let mut command = world.wraith("relay");
    command.args(["relay", "--json", "--drain", "0", "--listen", listen]).args(words);
    let mut relay = Process::start("relay", &mut command);
    let address = relay.event("listening")["address"].as_str().unwrap().to_owned();
    (relay, address)
}

fn film(world: &World, bytes: usize) -> std::path::PathBuf {
    world.file("film.mov", 1, bytes)
}

/// Starts a sender on every address of this machine, as relays need it.
fn send(world: &World, film: &std::path::Path, words: &[&str]) -> Process {
    let mut command = world.wraith("sender");
    Process::start("send", command.args(["send", "--json"]).args(words).arg(film))
}

/// Starts a relay, and a sender that names only it in its ticket.
fn ticket_of_a_relay() -> (World, Process, String, std::path::PathBuf, Process) {
    let world = World::new();
    let (relay, address) = relay(&world, "127.0.0.1:0", &[]);
    let film = film(&world, 1_000_000);
    let sender = send(&world, &film, &["--ticket", "--relay", &address, "--relay-only"]);
    (world, relay, address, film, sender)
}

fn assert_by_relay(outcome: &Outcome, relay: &str) {
    let connected: Vec<&Value> = outcome.all("connected").collect();
    assert!(!connected.is_empty());
    for event in connected {
        assert_eq!((&event["path"], &event["how"]), (&"relay".into(), &"relay".into()), "{event}");
        assert_eq!(event["address"], relay);
    }
}

#[test]
fn relay_only_transfers_reveal_no_address() {
    let world = World::new();
    let (_relay, address) = relay(&world, "127.0.0.1:0", &[]);
    let film = film(&world, 3_000_000);
    let place = ["--relay", &address, "--relay-only"];
    let mut sender = send(&world, &film, &place);
    let received = world.receive_with(&sender.code(), &place).succeed();
    let sent = sender.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
    for side in [&received, &sent] {
        assert_by_relay(side, &address);
        let path = side.all("path").next().expect("why it stays there is said");
        assert!(path["message"].as_str().unwrap().contains("only relays"), "{path}");
    }
}

#[test]
fn relay_only_without_a_relay_is_a_usage_error() {
    let world = World::new();
    let film = film(&world, 10);
    for words in [&["--relay-only"][..], &["--relay-only", "--ticket"]] {
        let sent = send(&world, &film, words).finish();
        sent.expect_exit(2);
        assert_eq!(sent.all("ready").count(), 0);
    }
}

#[test]
fn a_ticket_names_the_relay_and_its_key_and_is_good_without_any_option() {
    let (world, _relay, address, film, mut sender) = ticket_of_a_relay();
    let ticket: Ticket = sender.ticket().parse().unwrap();
    assert!(ticket.addresses().is_empty(), "only relays were wanted");
    let [Way::Relay(named)] = ticket.reach().ways() else { panic!("{ticket:?}") };
    assert_eq!(named.to_string(), address);
    let received = world.receive(&ticket.to_string()).succeed();
    assert_by_relay(&received, &address);
    let sent = sender.succeed();
    assert!(!sent.all("note").any(|note| note.to_string().contains("good")), "it is good");
    tree::assert_same(&film, &world.target().join("film.mov"));

    let lying = RelayAddr::new("127.0.0.1", named.port(), [7; 32], *named.mailbox()).unwrap();
    let lying = Reach::default().with([lying]);
    let other = Ticket::new(ticket.node_id(), ticket.capability().clone(), lying).to_string();
    let error = world.receive_with(&other, &["--timeout", "3"]).finish();
    let message = error.expect_error(3)["message"].as_str().unwrap().to_owned();
    assert!(message.contains("another key"), "{message}");
}

#[test]
fn direct_only_uses_no_relay() {
    let (world, _relay, _, _, mut sender) = ticket_of_a_relay();
    let ticket = sender.ticket();
    let error = world.receive_with(&ticket, &["--direct-only", "--timeout", "2"]).finish();
    error.expect_error(3);
    assert_eq!(error.all("connected").count(), 0);
    world.receive(&ticket).succeed();
    sender.succeed();
}

#[test]
fn where_both_can_be_reached_directly_the_relay_carries_nothing() {
    let world = World::new();
    let (_relay, address) = relay(&world, "127.0.0.1:0", &[]);
    let film = film(&world, 1_000_000);
    let place = ["--relay", &address];
    let mut sender = send(&world, &film, &place);
    let received = world.receive_with(&sender.code(), &place).succeed();
    sender.succeed();
    for connected in received.all("connected") {
        assert_ne!(connected["path"], "relay", "{connected}");
    }
}

#[test]
fn a_relay_with_a_token_admits_only_its_holders() {
    let world = World::new();
    let (_relay, address) = relay(&world, "127.0.0.1:0", &["--token", "four words or more"]);
    let film = film(&world, 1_000_000);
    let place = ["--relay", &address, "--relay-only"];
    let with = ["--relay", &address, "--relay-only", "--relay-token", "four words or more"];
    let mut sender = send(&world, &film, &[&with[..], &["--ticket"]].concat());
    let ticket = sender.ticket();
    let error = world.receive_with(&ticket, &[&place[..], &["--timeout", "3"]].concat()).finish();
    let message = error.expect_error(3)["message"].as_str().unwrap().to_owned();
    assert!(message.contains("token"), "{message}");
    expect_arrival(world.receive_with(&ticket, &with), sender, &film, &world.target());
    // The waiting side gets the message too.
    let mut sender = send(&world, &film, &["--ticket", "--relay", &address]);
    let note = sender.event("note")["message"].as_str().unwrap().to_owned();
    assert!(note.contains("token") && note.contains("not asked again"), "{note}");
    sender.kill();
}

#[test]
fn a_transfer_outlives_its_relay_and_nothing_verified_is_sent_again() {
    let world = World::new();
    let (first, address) = relay(&world, "127.0.0.1:0", &[]);
    let film = film(&world, 12_000_000);
    let place = ["--relay", &address, "--relay-only", "--rate", "4M"];
    let mut sender = send(&world, &film, &[&place[..], &["--ticket"]].concat());
    let mut receiver = world.receive_with(&sender.ticket(), &place[..3]);
    receiver.event_where("progress", |event| event["bytes"].as_u64() > Some(3_000_000));
    first.kill();
    receiver.event("reconnecting");
    let (_second, again) = relay(&world, &address, &[]);
    assert_eq!(again, address);
    let received = receiver.succeed();
    sender.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
    let moved = received.last("done")["bytes_moved"].as_u64().unwrap();
    assert!(moved < 12_000_000 - 2_000_000, "{moved} bytes moved after the relay came back");
}

#[test]
fn an_unreachable_relay_is_reported_and_stops_nothing_else() {
    let world = World::new();
    let film = film(&world, 1_000);
    // A port that was free a moment ago.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = gone.to_string();
    let mut sender = send(&world, &film, &["--ticket", "--relay", &gone]);
    let note = sender.event("note")["message"].as_str().unwrap().to_owned();
    assert!(note.contains(&gone) && note.contains("tried again"), "{note}");
    let ticket: Ticket = sender.ticket().parse().unwrap();
    assert_eq!(ticket.reach().relays().count(), 0);
    world.receive(&ticket.to_string()).succeed();
    sender.succeed();
    assert_eq!(fs::read(&film).unwrap(), fs::read(world.target().join("film.mov")).unwrap());
}
