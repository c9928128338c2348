//! Transfers by code on the local network, which is loopback here, and the states of a code.

use std::io::Write;
use std::process::Stdio;

use crate::support::{LOOPBACK, Process, World, expect_arrival, lan, other_words, sending, tree};
use wraith_discovery::Code;

fn film(world: &World) -> std::path::PathBuf {
    world.file("film.mov", 1, 1_000_000)
}

/// Starts a receiver that asks whether to accept. Returns it with the pipe for its answer.
fn undecided(world: &World, side: &str, code: &str) -> (Process, std::io::PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = world.wraith(side);
    command.args(["receive", "--json", "-o"]).arg(world.target()).args(LOOPBACK).arg(code);
    (Process::start_with_stdin("receive", command.stdin(Stdio::from(reader))), writer)
}

#[test]
fn a_code_brings_a_file_over_the_local_network() {
    let _network = lan::own_network();
    let world = World::new();
    let film = film(&world);
    let mut sender = world.send_by_code(&[&film], LOOPBACK);
    let ready = sender.event("ready");
    let code = ready["code"].as_str().unwrap();
    assert!(code.parse::<Code>().is_ok(), "{code}");
    assert_eq!(ready["command"], format!("wraith receive {code}"));
    assert_eq!(ready["waiting_at"], serde_json::json!(["lan"]));
    assert_eq!(ready["code_expires_seconds"], 3600);

    let words: Vec<&str> = code.split('-').collect();
    let sloppy = format!("{} {}  {}", words[0], words[1].to_uppercase(), &words[2][..4]);
    let received = world.receive_with(&sloppy, LOOPBACK).succeed();
    assert_eq!(received.last("met")["place"], "lan");
    let sent = sender.succeed();
    assert_eq!(sent.last("code")["state"], "used");
    tree::assert_same(&film, &world.target().join("film.mov"));
}

#[test]
fn wrong_words_burn_the_code_and_both_sides_say_so() {
    let (_network, world, _, sender, code) = sending(1_000_000, &[]);
    world.receive_with(&other_words(&code), LOOPBACK).finish().expect_message(5, "burned");
    let sent = sender.finish();
    let error = sent.expect_error(5);
    assert!(error["message"].as_str().unwrap().contains("wrong words"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("wraith send"), "{error}");
    assert_eq!(sent.last("code")["state"], "wrong_guess");
    assert!(tree::names(&world.target()).is_empty());
}

#[test]
fn an_unknown_code_word_is_reported_without_using_up_the_code() {
    let (_network, world, _, sender, code) = sending(1_000_000, &[]);
    let slip = world.receive_with(&format!("{code}q"), LOOPBACK).finish();
    let error = slip.expect_error(2);
    let meant = code.rsplit('-').next().unwrap();
    assert!(error["message"].as_str().unwrap().contains(meant), "{error}");
    world.receive_with(&code, LOOPBACK).succeed();
    sender.succeed();
}

#[test]
fn of_two_receivers_with_one_code_exactly_one_gets_it() {
    let (_network, world, film, mut sender, code) = sending(1_000_000, &[]);
    let (mut one, mut answer_one) = undecided(&world, "one", &code);
    let (two, mut answer_two) = undecided(&world, "two", &code);
    // The first receiver is asked and waits for an answer, so the sender is still there for the
    // other.
    sender.event("connected");
    let _ = (answer_one.write_all(b"y\n"), answer_two.write_all(b"y\n"));
    let first_won = one.event_where_either("met", "error")["event"] == "met";
    let (winner, loser) = if first_won { (one, two) } else { (two, one) };
    winner.succeed();
    let lost = loser.finish();
    // The loser came while the sender was there and got its answer, or came after it had gone.
    let error =
        if lost.status.code() == Some(3) { lost.expect_error(3) } else { lost.expect_error(5) };
    assert!(error["hint"].as_str().is_some());
    sender.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
}

#[test]
fn a_code_that_was_used_is_refused_while_the_sender_is_there() {
    let (_network, world, _, mut sender, code) = sending(1_000_000, &[]);
    let (winner, mut answer) = undecided(&world, "one", &code);
    sender.event("connected");
    let mut command = world.wraith("two");
    command.args(["receive", "--json", "--yes", "-o"]).arg(world.target()).args(LOOPBACK);
    Process::start("receive", command.arg(&code)).finish().expect_message(5, "used");
    answer.write_all(b"y\n").unwrap();
    winner.succeed();
    sender.succeed();
}

#[test]
fn after_a_kill_the_same_code_continues() {
    let (_network, world, film, mut sender, code) = sending(1_000_000, &[]);
    let (receiver, _answer) = undecided(&world, "receiver", &code);
    sender.event("connected");
    receiver.kill();
    let received = world.receive_with(&code, LOOPBACK).succeed();
    assert_eq!(received.all("met").count(), 0, "the code was not used twice");
    sender.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
}

#[test]
fn an_unused_code_expires() {
    let (_network, world, _, sender, code) = sending(1_000_000, &["--expires", "1"]);
    sender.finish().expect_message(3, "expired");
    world.receive_with(&code, &[LOOPBACK, &["--timeout", "1"]].concat()).finish().expect_error(3);
}

#[test]
fn without_a_meeting_place_a_ticket_is_shown_with_the_reason() {
    let world = World::new();
    let mut sender = world.send_by_code(&[film(&world)], &["--lan", "off"]);
    let ready = sender.event("ready");
    assert!(ready["code"].is_null());
    assert_eq!(ready["waiting_at"], serde_json::json!([]));
    let ticket = ready["ticket"].as_str().unwrap();
    assert_eq!(ready["command"], format!("wraith receive {ticket}"));
    world.receive(ticket).succeed();
    sender.succeed();

    let error = world.receive_with("7-crater-lemon", &["--lan", "off"]).finish();
    assert!(error.expect_error(2)["hint"].as_str().unwrap().contains("--ticket"));
}

/// Starts a receiver that makes a code. Returns it with the code.
fn made_by_receiver(world: &World) -> (Process, String) {
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "--yes", "--code", "-o"]).arg(world.target()).args(LOOPBACK);
    let mut receiver = Process::start("receive", &mut command);
    let code = receiver.event("waiting")["code"].as_str().unwrap().to_owned();
    (receiver, code)
}

#[test]
fn a_code_that_the_receiver_made_brings_the_sender_to_it() {
    let _network = lan::own_network();
    let world = World::new();
    let film = film(&world);
    let (receiver, code) = made_by_receiver(&world);
    let sender = world.send_by_code(&[&film], &[LOOPBACK, &["--code", &code]].concat());
    expect_arrival(receiver, sender, &film, &world.target());
}

#[test]
fn a_sender_with_wrong_words_burns_the_receivers_code_and_gives_nothing() {
    let _network = lan::own_network();
    let world = World::new();
    let (receiver, code) = made_by_receiver(&world);
    let wrong = other_words(&code);
    let sender = world.send_by_code(&[film(&world)], &[LOOPBACK, &["--code", &wrong]].concat());
    sender.finish().expect_error(5);
    receiver.finish().expect_error(5);
    assert!(tree::names(&world.target()).is_empty());
}

#[test]
fn ctrl_c_at_the_question_leaves_a_code_that_goes_on() {
    let _network = lan::own_network();
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let world = World::new();
        let film = film(&world);
        let mut sender = world.send_by_code(&[&film], LOOPBACK);
        let code = sender.code();
        let (mut receiver, stdin) = undecided(&world, "receiver", &code);
        receiver.event("offer");
        receiver.signal(signal);
        let stopped = receiver.finish();
        let error = stopped.expect_error(128 + signal);
        assert!(error["hint"].as_str().unwrap().contains("run again"), "{error}");
        drop(stdin);
        expect_arrival(world.receive_with(&code, LOOPBACK), sender, &film, &world.target());
    }
}

#[test]
fn only_requested_places_that_are_unusable_are_reported() {
    let _network = lan::own_network();
    let world = World::new();
    let looked = |more: &[&str]| {
        let outcome =
            world.receive_with("7-crater-lemon", &[&["--timeout", "1"], more].concat()).finish();
        let error = outcome.expect_error(3);
        let text = |field: &str| error[field].as_str().unwrap().to_owned();
        (text("message"), text("hint"))
    };
    let (message, hint) = looked(&["--lan", "nosuch"]);
    assert!(message.contains("no interface called nosuch"), "{message}");
    assert!(!hint.contains("--rendezvous"), "{hint}");
    // An unused port.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = free.to_string();
    let (message, _) = looked(&["--lan", "lo", "--rendezvous", &server]);
    let (nobody, not_looked) = message.split_once("; not searched ").unwrap();
    assert!(nobody.ends_with("on the local network"), "{message}");
    assert!(not_looked.starts_with(&format!("at {server}: ")), "{message}");
    let (message, hint) = looked(&["--lan", "off", "--rendezvous", &server]);
    assert!(!message.contains("local network") && hint.contains("--rendezvous"), "{message}");

    let film = film(&world);
    let sent = |more: &[&str]| {
        let mut command = world.wraith("sender");
        command.args(["send", "--timeout", "0", "--listen", "127.0.0.1:0"]).args(more).arg(&film);
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    let said = sent(&["--lan", "off", "--rendezvous", &server]);
    assert!(said.contains(&server) && !said.contains("local network"), "{said}");
    assert!(
        sent(&["--lan", "off"])
            .contains("(--lan is off, and neither --rendezvous nor --relay is set)")
    );
    assert!(sent(&["--lan", "lo", "--expires", "2"]).contains("within 2 s."));
    let said = sent(&["--lan", "nosuch"]);
    assert!(said.contains("no interface called nosuch"), "{said}");
}
