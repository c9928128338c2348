//! The ticket that a code delivers is valid only for the identity that proved the code's words,
//! also after a crash. A copy of the ticket is useless to other identities.

use std::io::PipeWriter;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use crate::support::{LOOPBACK, Process, World, expect_arrival, lan, other_words, sending};
use wraith_discovery::Ticket;

fn film(world: &World, bytes: usize) -> PathBuf {
    world.file("film.mov", 1, bytes)
}

/// Starts `wraith receive` of one side into a folder of its own, without an answer yet.
fn undecided(world: &World, side: &str, wanted: &str) -> (Process, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = world.wraith(side);
    command.args(["receive", "--json", "-o"]).arg(world.path(side)).args(LOOPBACK).arg(wanted);
    (Process::start_with_stdin("receive", command.stdin(Stdio::from(reader))), writer)
}

/// The same with `--yes`.
fn receive(world: &World, side: &str, wanted: &str) -> Process {
    let mut command = world.wraith(side);
    command.args(["receive", "--json", "--yes", "-o"]).arg(world.path(side)).args(LOOPBACK);
    Process::start("receive", command.arg(wanted))
}

/// Checks that a receiver with an old ticket or code gets no answer and reports that, within a
/// short timeout.
fn finds_nobody(world: &World, side: &str, wanted: &str) {
    let mut command = world.wraith(side);
    command.args(["receive", "--json", "--yes", "--timeout", "3", "-o"]).arg(world.path(side));
    Process::start("receive", command.args(LOOPBACK).arg(wanted)).finish().expect_error(3);
}

/// Returns the ticket that a code brought to this side, as saved there.
fn kept_ticket(world: &World, side: &str) -> Ticket {
    let folder = world.path(&format!("home-{side}")).join("codes");
    let kept: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [kept] = &kept[..] else { panic!("{kept:?}") };
    std::fs::read_to_string(kept).unwrap().lines().nth(1).unwrap().parse().unwrap()
}

fn send_at(world: &World, film: &PathBuf, address: SocketAddr, more: &[&str]) -> Process {
    let mut command = world.wraith("sender");
    command.args(["send", "--json", "--listen", &address.to_string()]).args(LOOPBACK).args(more);
    Process::start("send", command.arg(film))
}

/// Stops the sender. Returns its hint.
fn interrupt(sender: Process) -> String {
    sender.signal(libc::SIGINT);
    let stopped = sender.finish();
    let hint = stopped.expect_error(130)["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("wraith send"), "{hint}");
    hint
}

#[test]
fn a_copy_of_the_ticket_is_worth_nothing_to_anybody_else() {
    let _network = lan::own_network();
    let world = World::new();
    let film = film(&world, 1_000_000);
    let mut sender = world.send_by_code(&[&film], LOOPBACK);
    let ready = sender.event("ready");
    assert!(ready["ticket"].is_null(), "the code's ticket is for who has the code");
    let (mut receiver, mut answer) = undecided(&world, "receiver", ready["code"].as_str().unwrap());
    let used = sender.event_where("code", |code| code["state"] == "used");
    assert_eq!(used["peer"], world.node_id("receiver"), "the screen names who has the ticket");
    receiver.event("offer");

    let ticket = kept_ticket(&world, "receiver");
    let copied = receive(&world, "thief", &ticket.to_string()).finish();
    let other = wraith_discovery::Capability::from_bytes([7; 16]);
    let wrong = Ticket::new(ticket.node_id(), other, ticket.reach().clone());
    // A copy passes the accept filter and nothing more; another secret does not even do that.
    copied.expect_error(5);
    finds_nobody(&world, "thief", &wrong.to_string());
    assert!(!world.path("thief").join("film.mov").exists());

    std::io::Write::write_all(&mut answer, b"y\n").unwrap();
    expect_arrival(receiver, sender, &film, &world.path("receiver"));
}

#[test]
fn the_ticket_that_a_sender_brings_to_a_receivers_code_is_for_that_receiver() {
    let _network = lan::own_network();
    let world = World::new();
    let film = film(&world, 1_000_000);
    let mut command = world.wraith("receiver");
    let (reader, mut answer) = std::io::pipe().unwrap();
    command.args(["receive", "--json", "--code", "-o"]).arg(world.path("receiver")).args(LOOPBACK);
    let mut receiver = Process::start_with_stdin("receive", command.stdin(Stdio::from(reader)));
    let code = receiver.event("waiting")["code"].as_str().unwrap().to_owned();
    let mut sender = world.send_by_code(&[&film], &[LOOPBACK, &["--code", &code]].concat());
    let used = sender.event_where("code", |code| code["state"] == "used");
    assert_eq!(used["peer"], world.node_id("receiver"));
    receiver.event("offer");
    let ticket = kept_ticket(&world, "receiver").to_string();
    receive(&world, "thief", &ticket).finish().expect_error(5);
    std::io::Write::write_all(&mut answer, b"y\n").unwrap();
    expect_arrival(receiver, sender, &film, &world.path("receiver"));
}

#[test]
fn a_sender_that_crashed_goes_on_for_its_receiver_without_a_new_code() {
    let _network = lan::own_network();
    for has_begun in [false, true] {
        let world = World::new();
        let film = film(&world, 30_000_000);
        let mut sender = world.send_by_code(&[&film], &[LOOPBACK, &["--rate", "3M"]].concat());
        let code = sender.code();
        let (mut receiver, mut answer) = undecided(&world, "receiver", &code);
        receiver.event("offer");
        if has_begun {
            std::io::Write::write_all(&mut answer, b"y\n").unwrap();
            sender.event("accept");
        }
        sender.kill();
        let again = world.send_by_code(&[&film], LOOPBACK);
        if !has_begun {
            std::io::Write::write_all(&mut answer, b"y\n").unwrap();
        }
        expect_arrival(receiver, again, &film, &world.path("receiver"));
    }
}

#[test]
fn a_resumed_offer_admits_only_the_joiner_of_its_own_code() {
    let (_network, world, film, sender, code) = sending(1_000_000, &[]);
    let (mut receiver, _no_answer) = undecided(&world, "receiver", &code);
    receiver.event("offer");
    sender.kill();

    // The same file to the creator of another code, with its words mistyped.
    let mut command = world.wraith("other");
    command.args(["receive", "--json", "--yes", "--code", "-o"]).arg(world.path("other"));
    let mut waiting = Process::start("receive", command.args(LOOPBACK));
    let code = waiting.event("waiting")["code"].as_str().unwrap().to_owned();
    let wrong = other_words(&code);
    for _ in 0..2 {
        let sender = world.send_by_code(&[&film], &[LOOPBACK, &["--code", &wrong]].concat());
        sender.finish().expect_error(5);
    }
    waiting.finish().expect_error(5);
    receiver.kill();
}

#[test]
fn stopping_before_an_acceptance_invalidates_the_ticket() {
    let _network = lan::own_network();
    let world = World::new();
    let film = film(&world, 1_000_000);
    let mut sender = world.send_by_code(&[&film], LOOPBACK);
    let stolen = sender.code();
    let (mut thief, _no_answer) = undecided(&world, "thief", &stolen);
    thief.event("offer");
    thief.kill();
    let ticket = kept_ticket(&world, "thief");
    let hint = interrupt(sender);
    assert!(!hint.contains("--new"), "nobody has begun: {hint}");

    let mut sender = send_at(&world, &film, ticket.addresses()[0], &[]);
    let code = sender.code();
    // Both the ticket of the earlier code and that code itself, for which the thief has saved the
    // ticket.
    finds_nobody(&world, "thief", &ticket.to_string());
    finds_nobody(&world, "thief", &stolen);
    receive(&world, "receiver", &code).succeed();
    sender.succeed();
}

/// Sends a large film by code at this rate, and waits until this side has accepted it.
fn begun(rate: &str, side: &str) -> (lan::OwnNetwork, World, PathBuf, Process, String, Process) {
    let (network, world, film, mut sender, code) = sending(30_000_000, &["--rate", rate]);
    let receiver = receive(&world, side, &code);
    sender.event("accept");
    (network, world, film, sender, code, receiver)
}

#[test]
fn stopping_after_an_acceptance_keeps_the_receiver() {
    let (_network, world, film, sender, code, receiver) = begun("3M", "receiver");
    interrupt(sender);
    // It does not wait for a sender that said that it stopped.
    receiver.finish().expect_error(6);
    let mut again = world.send_by_code(&[&film], LOOPBACK);
    let who = world.node_id("receiver");
    assert_eq!(again.event("ready")["continues_for"], serde_json::json!([who]));
    receive(&world, "receiver", &code).succeed();
    again.succeed();
}

#[test]
fn a_joiner_resumes_although_no_new_code_can_be_made() {
    let (_network, world, film, sender, _, receiver) = begun("3M", "receiver");
    sender.kill();
    let mut again = world.send_by_code(&[&film], &["--lan", "off"]);
    let ready = again.event("ready");
    assert_eq!(ready["continues_for"], serde_json::json!([world.node_id("receiver")]));
    assert!(ready["code"].is_null() && ready["ticket"].is_null() && ready["command"].is_null());
    expect_arrival(receiver, again, &film, &world.path("receiver"));
}

#[test]
fn a_sender_that_begins_anew_cuts_off_a_thief_that_had_begun() {
    let (_network, world, film, mut sender, code) = sending(30_000_000, &["--rate", "1M"]);
    let mut command = world.wraith("thief");
    command.args(["receive", "--json", "--yes", "--reconnect", "5", "-o"]).arg(world.path("thief"));
    let thief = Process::start("receive", command.args(LOOPBACK).arg(&code));
    sender.event("accept");
    let address = kept_ticket(&world, "thief").addresses()[0];
    let (hint, thief_id) = (interrupt(sender), world.node_id("thief"));
    assert!(hint.contains(&thief_id[..16]) && hint.contains("add --new"), "{hint}");
    let mut sender = send_at(&world, &film, address, &["--new"]);
    let ready = sender.event("ready");
    assert_eq!(ready["continues_for"], serde_json::json!([]));
    let code = ready["code"].as_str().unwrap().to_owned();
    // The thief reconnects by itself at the old address and gets no answer.
    thief.finish().expect_error(6);
    receive(&world, "receiver", &code).succeed();
    sender.succeed();
    assert!(!world.path("thief").join("film.mov").exists());
}

#[test]
fn a_joiner_of_a_new_code_replaces_the_earlier_one() {
    let (_network, world, film, sender, _, thief) = begun("1M", "thief");
    thief.kill();
    let ticket = kept_ticket(&world, "thief");
    sender.kill();

    let mut sender = send_at(&world, &film, ticket.addresses()[0], &[]);
    let (receiver, mut answer) = undecided(&world, "receiver", &sender.code());
    sender.event("connected");
    receive(&world, "thief", &ticket.to_string()).finish().expect_error(5);
    std::io::Write::write_all(&mut answer, b"y\n").unwrap();
    receiver.succeed();
    sender.succeed();
}
