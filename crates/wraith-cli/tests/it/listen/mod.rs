//! `wraith listen` and `wraith send --to`: transfers between contacts, without a code.

mod questions;

use std::io::{BufRead, BufReader, PipeWriter, Write};
use std::process::Stdio;

use crate::support::{self, Process, World, lan, tree};
use serde_json::Value;

const CONTACTS: &[&str] = &["--accept", "contacts"];

fn film(world: &World) -> std::path::PathBuf {
    world.file("film.mov", 1, 1_000_000)
}

/// Makes a world in which Anna and Bob are contacts, Bob listens, and Anna has his address.
fn friends(more: &[&str]) -> (World, Process) {
    let world = World::new();
    film(&world);
    world.know("bob", "anna", None);
    let (listener, address) = world.listen("bob", more);
    world.know("anna", "bob", Some(&address));
    (world, listener)
}

/// Returns the names in the target folder.
fn arrived(world: &World) -> Vec<String> {
    let names = tree::names(&world.target());
    let mut names: Vec<_> = names.iter().map(|name| name.display().to_string()).collect();
    names.sort();
    names
}

fn stop(listener: Process) -> support::Outcome {
    listener.signal(libc::SIGINT);
    let ended = listener.finish();
    ended.expect_exit(130);
    ended
}

/// Starts a listener that asks. Returns it with the pipe for its answers and its address.
fn asking(world: &World) -> (Process, PipeWriter, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = world.listen_command("bob", &["--accept", "ask", "--listen", "127.0.0.1:0"]);
    let mut listener = Process::start_with_stdin("listen", command.stdin(Stdio::from(reader)));
    let address = listener.event("listening")["address"].as_str().unwrap().to_owned();
    (listener, writer, address)
}

/// Starts a listener that asks, and a transfer of the file `large` to it, and answers yes. Returns the
/// listener, the pipe for its answers, and the sender.
fn accepted_transfer(world: &World, more: &[&str]) -> (Process, PipeWriter, Process) {
    world.file("large", 4, 60_000_000);
    world.know("bob", "anna", None);
    let (mut listener, mut answers, address) = asking(world);
    world.know("anna", "bob", Some(&address));
    let mut sender = world.send_to("anna", "bob", "large", more);
    listener.event("connected");
    answers.write_all(b"y\n").unwrap();
    sender.event("accept");
    (listener, answers, sender)
}

#[test]
fn after_one_transfer_by_ticket_the_next_ones_need_none() {
    let world = World::new();
    let film = film(&world);
    world.become_contacts(&film);
    std::fs::remove_file(world.target().join("film.mov")).unwrap();

    // Bob listens on his usual port, which Anna derives from his key.
    let mut listener = Process::start("listen", &mut world.listen_command("receiver", CONTACTS));
    let listening = listener.event("listening");
    assert_eq!((&listening["contacts"], &listening["accept"]), (&1.into(), &"contacts".into()));
    let sent = world.send_to("sender", "bob", "film.mov", &[]).succeed();
    assert_eq!(sent.last("met")["place"], "address");
    assert_eq!(sent.last("connected")["contact"], "bob");
    let suite = sent.last("connected")["suite"].as_str().unwrap();
    assert!(suite.starts_with("X25519+ML-KEM-768, "), "{suite}");
    let done = listener.event("done");
    assert_eq!(done["files"], 1);
    tree::assert_same(&film, &world.target().join("film.mov"));

    // The listener continues; the next offer is another transfer.
    world.file("second", 2, 5000);
    world.send_to("sender", "BOB", "second", &[]).succeed();
    listener.event("done");
    let ended = stop(listener);
    assert!(ended.all("connected").all(|event| event["contact"] == "anna"));
    assert_eq!(arrived(&world), ["film.mov", "second"]);
}

#[test]
fn a_listener_for_all_senders_shows_the_command_that_a_stranger_needs() {
    let world = World::new();
    film(&world);
    let mut command = world.wraith("bob");
    command.args(["listen", "--accept", "always", "--listen", "127.0.0.1:0", "-o"]);
    let mut listener =
        command.arg(world.target()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(listener.stderr.take().unwrap()).lines().map(Result::unwrap);
    let shown = lines.find(|line| line.starts_with("wraith contact add NAME ")).unwrap();
    let words = shown.split(' ').skip(1).map(|word| if word == "NAME" { "bob" } else { word });
    let added = world.wraith("stranger").args(words).output().unwrap();
    assert!(added.status.success(), "{added:?}");
    world.send_to("stranger", "bob", "film.mov", &[]).succeed();
    listener.kill().unwrap();
    listener.wait().unwrap();
    assert_eq!(arrived(&world), ["film.mov"]);
}

#[test]
fn a_stranger_gets_no_answer_if_only_contacts_are_accepted() {
    let (world, mut listener) = friends(CONTACTS);
    let address = world.contacts("anna")[0]["addresses"][0].as_str().unwrap().to_owned();
    world.know("stranger", "bob", Some(&address));
    let refused = world.send_to("stranger", "bob", "film.mov", &[]).finish();
    let error = refused.expect_error(3);
    assert!(error["message"].as_str().unwrap().contains("no answer"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains(&world.node_id("stranger")), "{error}");
    assert_eq!(refused.all("connected").count(), 0);
    world.send_to("anna", "bob", "film.mov", &[]).succeed();
    listener.event("done");
    let ended = stop(listener);
    assert_eq!(ended.all("connected").count(), 1, "of the stranger nothing was seen");
}

#[test]
fn a_contact_that_is_removed_meets_silence_and_one_that_is_added_again_is_welcome() {
    let (world, mut listener) = friends(CONTACTS);
    world.send_to("anna", "bob", "film.mov", &[]).succeed();
    listener.event("done");
    world.contact("bob", &["remove", "anna"]).expect_exit(0);
    listener.event_where("contacts_changed", |event| event["contacts"] == 0);
    world.send_to("anna", "bob", "film.mov", &[]).finish().expect_error(3);
    world.know("bob", "anna", None);
    world.contact("bob", &["rename", "anna", "hanna"]).expect_exit(0);
    listener.event_where("contacts_changed", |event| event["contacts"] == 1);
    world.send_to("anna", "bob", "film.mov", &[]).succeed();
    let again = listener.event("connected");
    assert_eq!(again["contact"], "hanna");
    stop(listener);
}

#[test]
fn an_unreachable_contact_is_reported_with_all_attempts() {
    let world = World::new();
    film(&world);
    world.know("anna", "bob", Some("127.0.0.1:9"));
    let more = ["--timeout", "1", "--rendezvous", "127.0.0.1:1"];
    let sent = world.send_to("anna", "bob", "film.mov", &more).finish();
    let error = sent.expect_error(3);
    let message = error["message"].as_str().unwrap();
    for tried in ["bob cannot be reached", "127.0.0.1:9", "127.0.0.1:1"] {
        assert!(message.contains(tried), "{tried} is not in {message}");
    }
    world.contact("anna", &["remove", "bob"]).expect_exit(0);
    world.know("anna", "bob", None);
    let sent = world.send_to("anna", "bob", "film.mov", &["--timeout", "1"]).finish();
    assert!(sent.expect_error(3)["message"].as_str().unwrap().contains("no address is known"));
}

#[test]
fn accept_always_accepts_any_sender_with_the_node_id() {
    let world = World::new();
    let film = film(&world);
    let (mut listener, address) = world.listen("bob", &["--accept", "always"]);
    world.know("stranger", "bob", Some(&address));
    world.send_to("stranger", "bob", "film.mov", &[]).succeed();
    assert_eq!(listener.event("connected")["contact"], Value::Null);
    stop(listener);
    assert!(world.contacts("bob").is_empty(), "nobody becomes a contact by sending");
    tree::assert_same(&film, &world.target().join("film.mov"));
}

#[test]
fn transfers_at_the_same_time_come_one_after_the_other() {
    let (world, mut listener) = friends(CONTACTS);
    for n in 0..3 {
        tree::file(&world.source().join(format!("part{n}")), n, 3_000_000);
    }
    let senders: Vec<_> =
        (0..3).map(|n| world.send_to("anna", "bob", &format!("part{n}"), &[])).collect();
    for sender in senders {
        sender.succeed();
    }
    for _ in 0..3 {
        listener.event("done");
    }
    let ended = stop(listener);
    let order: Vec<_> = ended.events.iter().filter_map(|event| event["event"].as_str()).collect();
    let order: Vec<_> = order.into_iter().filter(|e| ["connected", "done"].contains(e)).collect();
    assert_eq!(order, ["connected", "done"].repeat(3));
    for n in 0..3 {
        let name = format!("part{n}");
        tree::assert_same(&world.source().join(&name), &world.target().join(&name));
    }
}

#[test]
fn after_a_kill_of_the_sender_the_same_command_continues() {
    let world = World::new();
    let (mut listener, _answers, first) = accepted_transfer(&world, &[]);
    first.kill();
    // The offer was accepted before, so there is no question.
    world.send_to("anna", "bob", "large", &[]).succeed();
    listener.event("done");
    stop(listener);
    tree::assert_same(&world.source().join("large"), &world.target().join("large"));
}

#[test]
fn a_stopping_listener_notifies_its_sender() {
    let world = World::new();
    world.file("large", 4, 1_000_000);
    world.know("bob", "anna", None);
    let (mut listener, _answers, address) = asking(&world);
    world.know("anna", "bob", Some(&address));
    let sender = world.send_to("anna", "bob", "large", &["--reconnect", "0"]);
    listener.event("connected");
    stop(listener);
    sender.finish().expect_message(6, "receiver's user");
}

#[test]
fn contacts_meet_on_the_local_network_without_an_address() {
    let _network = lan::own_network();
    let world = World::new();
    let film = film(&world);
    world.know("bob", "anna", None);
    world.know("anna", "bob", None);
    let mut command = world.listen_command("bob", &["--accept", "contacts", "--lan", "lo"]);
    // Not the usual port: only the answer of the network reveals it.
    let mut listener = Process::start("listen", command.args(["--listen", "0.0.0.0:0"]));
    assert_eq!(listener.event("listening")["waiting_at"], serde_json::json!(["lan"]));
    let sent = world.send_to("anna", "bob", "film.mov", &["--lan", "lo"]).succeed();
    assert_eq!(sent.last("met")["place"], "lan");
    listener.event("done");
    tree::assert_same(&film, &world.target().join("film.mov"));
    // Next time the address is known.
    let sent = world.send_to("anna", "bob", "film.mov", &[]).succeed();
    assert_eq!(sent.last("met")["place"], "address");

    // A stranger gets no answer, although it has the key.
    world.know("stranger", "bob", None);
    let more = ["--lan", "lo", "--timeout", "2"];
    world
        .send_to("stranger", "bob", "film.mov", &more)
        .finish()
        .expect_message(3, "local network: no answer");
    stop(listener);
}

#[test]
fn contacts_meet_at_a_rendezvous_server_and_remember_it() {
    let world = World::new();
    let film = film(&world);
    let mut command = world.wraith("server");
    command.args(["rendezvous", "--json", "--listen", "127.0.0.1:0"]);
    let mut server = Process::start("rendezvous", &mut command);
    let server_at = server.event("listening")["address"].as_str().unwrap().to_owned();
    world.know("bob", "anna", None);
    world.know("anna", "bob", None);
    let (mut listener, _) =
        world.listen("bob", &["--accept", "contacts", "--rendezvous", &server_at]);
    let sent = world.send_to("anna", "bob", "film.mov", &["--rendezvous", &server_at]).succeed();
    assert_eq!(sent.last("met")["place"], server_at);
    listener.event("done");
    tree::assert_same(&film, &world.target().join("film.mov"));
    assert_eq!(world.contacts("anna")[0]["rendezvous"], server_at);

    // Bob moves to another address; Anna finds him at the server.
    stop(listener);
    let (mut listener, _) =
        world.listen("bob", &["--accept", "contacts", "--rendezvous", &server_at]);
    let sent = world.send_to("anna", "bob", "film.mov", &[]).succeed();
    assert_eq!(sent.last("met")["place"], server_at);
    listener.event("done");
    // A removed contact gets no answer there either.
    world.contact("bob", &["remove", "anna"]).expect_exit(0);
    listener.event_where("contacts_changed", |event| event["contacts"] == 0);
    stop(listener);
}

#[test]
fn an_option_that_makes_no_sense_with_a_contact_is_a_usage_error() {
    let world = World::new();
    film(&world);
    for more in [["--ticket", "--json"], ["--code", "7-crater-lemon"], ["--save-as", "x"]] {
        let mut command = world.wraith("anna");
        command.args(["send", "--to", "bob"]).args(more).arg(world.source().join("film.mov"));
        assert_eq!(command.output().unwrap().status.code(), Some(2), "{more:?}");
    }
}

#[test]
fn a_second_listener_reports_the_first() {
    let world = World::new();
    let (first, _) = world.listen("bob", CONTACTS);
    let mut command = world.listen_command("bob", &["--listen", "127.0.0.1:0"]);
    command.args(CONTACTS);
    let mut second = Process::start("listen", &mut command);
    let note = second.event("note");
    let message = note["message"].as_str().unwrap();
    let told = format!("process {}, into {}", first.pid(), world.target().display());
    assert!(message.contains(&told), "{message}");
    second.event("listening");
    stop(second);
    stop(first);
    let (mut third, _) = world.listen("bob", CONTACTS);
    assert!(!third.has_ended());
    assert_eq!(stop(third).all("note").count(), 0);
}

#[test]
fn strangers_that_wait_do_not_keep_a_contact_out() {
    let world = World::new();
    let film = film(&world);
    world.know("bob", "anna", None);
    let (mut listener, mut answers, address) = asking(&world);
    world.know("anna", "bob", Some(&address));
    // As many strangers as there is room for: one is asked about, the other senders are waiting.
    let sides: Vec<_> = (0..16).map(|n| format!("stranger{n}")).collect();
    let mut strangers = Vec::new();
    for side in &sides {
        world.know(side, "bob", Some(&address));
        let mut stranger = world.send_to(side, "bob", "film.mov", &["--reconnect", "0"]);
        stranger.event("offer");
        strangers.push(stranger);
    }
    let mut anna = world.send_to("anna", "bob", "film.mov", &[]);
    anna.event("offer");
    let ended = strangers.iter_mut().filter_map(|s| s.has_ended().then_some(())).count();
    assert!(ended <= 1, "one made room");
    // Each stranger in turn gets a no, until it is Anna's turn.
    let mut asked = 0;
    loop {
        let connected = listener.event("connected");
        asked += 1;
        if connected["contact"] == "anna" {
            answers.write_all(b"y\n").unwrap();
            break;
        }
        answers.write_all(b"n\n").unwrap();
    }
    assert!(asked <= 16);
    anna.succeed();
    listener.event("done");
    drop(strangers);
    stop(listener);
    tree::assert_same(&film, &world.target().join("film.mov"));
}

#[test]
fn a_sender_to_a_contact_keeps_to_its_timeout_and_shows_no_progress_before_it_is_answered() {
    let (world, listener) = friends(CONTACTS);
    let address = world.contacts("anna")[0]["addresses"][0].as_str().unwrap().to_owned();
    for side in ["hasty", "patient"] {
        world.know(side, "bob", Some(&address));
    }
    // The listener answers neither. Even on a slow machine, one second does not become more than
    // ten.
    let mut patient = world.send_to("patient", "bob", "film.mov", &[]);
    let hasty = world.send_to("hasty", "bob", "film.mov", &["--timeout", "1"]).finish();
    hasty.expect_error(3);
    assert!(!patient.has_ended(), "one second was as long as ten");
    patient.signal(libc::SIGINT);
    let patient = patient.finish();
    patient.expect_error(130);
    for outcome in [hasty, patient] {
        assert_eq!(outcome.all("progress").count(), 0, "{:?}", outcome.events);
    }
    stop(listener);
}

#[test]
fn standard_input_goes_to_a_contact_too() {
    let (world, mut listener) = friends(CONTACTS);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut command = world.wraith("anna");
    command.args(["send", "--json", "--to", "bob", "--name", "log.txt", "-"]);
    let sender = Process::start_with_stdin("send", command.stdin(Stdio::from(reader)));
    writer.write_all(b"a line\n").unwrap();
    drop(writer);
    sender.succeed();
    listener.event("done");
    stop(listener);
    assert_eq!(std::fs::read(world.target().join("log.txt")).unwrap(), b"a line\n");
}

#[test]
fn a_slow_stranger_loses_the_turn_to_a_waiting_caller() {
    let world = World::new();
    let film = film(&world);
    world.file("slow", 5, 20_000_000);
    let (mut listener, address) = world.listen("bob", &["--accept", "always"]);
    world.know("bob", "anna", None);
    listener.event("contacts_changed");
    world.know("anna", "bob", Some(&address));
    world.know("stranger", "bob", Some(&address));
    let mut slow = world.send_to("stranger", "bob", "slow", &["--rate", "20K"]);
    assert_eq!(listener.event("connected")["contact"], Value::Null);
    slow.event("accept");

    world.send_to("anna", "bob", "film.mov", &[]).succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
    let failed = listener.event("failed");
    assert!(failed["message"].as_str().unwrap().contains("other senders are waiting"), "{failed}");
    listener.event("done");
    // The slow stranger gets the reason, and comes back.
    let told = slow.event("reconnecting");
    assert!(told["message"].as_str().unwrap().contains("other senders are waiting"), "{told}");
    assert_eq!(listener.event("connected")["contact"], Value::Null);
    slow.kill();
    stop(listener);
}

#[test]
fn a_listener_has_a_policy_for_names_that_are_taken_and_a_rate() {
    let (world, mut listener) =
        friends(&["--accept", "contacts", "--on-conflict", "overwrite", "--rate", "10M"]);
    let film = world.source().join("film.mov");
    std::fs::write(world.target().join("film.mov"), "an old one").unwrap();
    world.send_to("anna", "bob", "film.mov", &[]).succeed();
    listener.event("done");
    tree::assert_same(&film, &world.target().join("film.mov"));
    assert_eq!(arrived(&world), ["film.mov"]);

    world.file("large", 5, 30_000_000);
    let sent = world.send_to("anna", "bob", "large", &[]).succeed();
    let rate = sent.last("done")["bytes_per_second"].as_u64().unwrap();
    assert!(rate <= 11 << 20, "{rate} bytes a second");
    stop(listener);
}
