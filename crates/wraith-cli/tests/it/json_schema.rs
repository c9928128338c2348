//! Every line of `--json` must match `docs/events.schema.json`. [`support::Process`] checks each
//! line in every test. This module tests the checker itself, and many kinds of transfers. A partial
//! transfer is in `changing_files.rs`.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::net::UnixListener;

use crate::support::journal::wait_until_verified;
use crate::support::{Outcome, Process, World, offering, schema, tree};
use serde_json::{Value, json};

#[test]
fn the_documentation_check_finds_undocumented_items() {
    let good = json!({"event": "met", "place": "lan"});
    assert_eq!(schema::fault(&good), None);
    for (bad, about) in [
        (json!({"event": "frobnicated"}), "not documented"),
        (json!({"place": "lan"}), "not documented"),
        (json!({"event": "met", "place": "lan", "more": 1}), "more"),
        (json!({"event": "met"}), "lacks"),
        (json!({"event": "met", "place": null}), "no string"),
        (json!({"event": "accept", "files": -1, "bytes": 1}), "below"),
        (json!({"event": "accept", "files": 1.5, "bytes": 1}), "no integer"),
        (json!({"event": "error", "code": "odd", "exit": 1, "message": "m", "hint": null}), "none"),
        (
            json!({"event": "error", "code": "disk", "exit": 9, "message": "m", "hint": null}),
            "none",
        ),
    ] {
        let fault = schema::fault(&bad).unwrap_or_else(|| panic!("{bad} passes"));
        assert!(fault.contains(about), "{fault}");
    }
}

/// Returns the kinds of events. The process has checked them against the schema.
fn kinds(outcomes: &[&Outcome]) -> BTreeSet<String> {
    let events = outcomes.iter().flat_map(|outcome| &outcome.events);
    events.map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn assert_has(seen: &BTreeSet<String>, wanted: &[&str]) {
    for kind in wanted {
        assert!(seen.contains(*kind), "no {kind} in {seen:?}");
        assert!(schema::events().contains(kind), "{kind} is not in the schema");
    }
}

#[test]
fn a_transfer_by_code() {
    let (world, film) = World::with_file("film.mov", 1, 3_000_000);
    let mut command = world.wraith("server");
    let mut server = Process::start(
        "rendezvous",
        command.args(["rendezvous", "--json", "--listen", "127.0.0.1:0"]),
    );
    let address = server.event("listening")["address"].as_str().unwrap().to_owned();
    let mut sender = world.send_by_code(&[&film], &["--rendezvous", &address]);
    let received = world.receive_with(&sender.code(), &["--rendezvous", &address]).succeed();
    let sent = sender.succeed();
    server.signal(libc::SIGTERM);
    let served = server.finish();
    served.expect_error(143);
    let story = ["ready", "code", "connected", "offer", "accept", "progress", "file", "done"];
    assert_has(&kinds(&[&sent]), &story);
    assert_has(&kinds(&[&received]), &["met", "connected", "offer", "accept", "file", "done"]);

    // A code made by the receiver, with a wrong code first.
    let mut command = world.wraith("server");
    let server = command.args(["rendezvous", "--json", "--listen", &address]);
    let mut server = Process::start("rendezvous", server);
    server.event("listening");
    let mut command = world.wraith("receiver");
    let words = ["receive", "--json", "--yes", "--code", "--lan", "off", "--rendezvous", &address];
    let mut receiver = Process::start("receive", command.args(words));
    let code = receiver.event("waiting")["code"].as_str().unwrap().to_owned();
    let wrong = if code.ends_with("-lemon") { "planet" } else { "lemon" };
    let wrong = format!("{}-{wrong}", code.rsplit_once('-').unwrap().0);
    let guess = world.send_by_code(&[&film], &["--rendezvous", &address, "--code", &wrong]);
    guess.finish().expect_error(5);
    let burned = receiver.finish();
    burned.expect_error(5);
    assert_has(&kinds(&[&burned]), &["waiting", "error"]);
}

#[test]
fn a_transfer_that_is_refused_or_has_a_wrong_ticket() {
    let (world, _, sender, ticket) = offering(3_000_000, &[]);
    let mut command = world.wraith("receiver");
    let command = command.args(["receive", "--json", "-o"]).arg(world.target()).arg(&ticket);
    let (reader, mut answer) = std::io::pipe().unwrap();
    answer.write_all(b"n\n").unwrap();
    let refused = Process::start_with_stdin("receive", command.stdin(reader)).finish();
    refused.expect_error(4);
    sender.finish().expect_error(4);
    assert_has(&kinds(&[&refused]), &["connected", "offer", "error"]);
    // The sender has ended.
    world.receive_with(&ticket, &["--timeout", "1"]).finish().expect_error(3);
}

#[test]
fn a_transfer_that_is_lost_and_comes_back() {
    let world = World::new();
    let tree = world.source().join("tree");
    tree::file(&tree.join("film.mov"), 1, 300 << 20);
    let socket = UnixListener::bind(tree.join("socket")).unwrap();
    let mut sender = world.send_with(&[&tree], &["--reconnect", "60"]);
    let receiver = world.receive_with(&sender.ticket(), &["--reconnect", "60"]);
    wait_until_verified(&world.target().join("tree"), "film.mov", 1);
    let killed = sender.kill();
    assert_has(&kinds(&[&killed]), &["ready", "connected", "offer", "accept"]);
    // A folder takes the place of a file, which causes a note.
    tree::file(&tree.join("in the way"), 2, 100);
    std::fs::create_dir_all(world.target().join("tree/in the way/inside")).unwrap();
    let mut again = world.send_with(&[&tree], &["--reconnect", "60"]);
    again.event("ready");
    let received = receiver.succeed();
    again.succeed();
    drop(socket);
    let wanted = ["reconnecting", "progress", "file", "note", "done"];
    assert_has(&kinds(&[&received]), &wanted);
}

#[test]
fn a_sender_that_is_lost() {
    let (world, film) = World::with_file("film.mov", 1, 300 << 20);
    let mut sender = world.send_with(&[film], &["--reconnect", "0"]);
    let receiver = world.receive_with(&sender.ticket(), &["--reconnect", "0"]);
    wait_until_verified(&world.target(), "film.mov", 1);
    sender.kill();
    let lost = receiver.finish();
    lost.expect_error(6);
}

#[test]
fn answers_of_commands_that_do_not_transfer() {
    let (world, film) = World::with_file("film.mov", 1, 1000);
    let run = |words: &[&str]| {
        let mut command = world.wraith("one");
        Process::start("wraith", command.args(words).args(["--json"])).finish()
    };
    let id = run(&["id"]);
    assert_has(&kinds(&[id.expect_exit(0)]), &["id"]);
    let hash = run(&["hash", film.to_str().unwrap()]);
    assert_has(&kinds(&[hash.expect_exit(0)]), &["hash"]);
    let demo = run(&["demo", "--size", "1M", "--files", "10"]);
    assert_has(&kinds(&[demo.expect_exit(0)]), &["demo"]);
    run(&["hash", "/nonexistent"]).expect_error(7);
}

#[test]
fn a_command_line_that_makes_no_sense_is_an_event_too() {
    let world = World::new();
    for words in [&["send", "--json"][..], &["--json", "frobnicate"], &["receive", "--json", "no"]]
    {
        let mut command = world.wraith("one");
        let outcome = Process::start("wraith", command.args(words)).finish();
        let error: &Value = outcome.expect_error(2);
        assert_eq!(error["code"], "usage", "{error}");
    }
}
