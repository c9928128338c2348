//! `wraith listen` and `wraith send --to`: transfers between contacts, without a code.

use std::io::{PipeWriter, Write};
use std::process::Stdio;

use crate::support::pty::Terminal;
use crate::support::{self, Process, World, lan, tree};
use serde_json::Value;

const CONTACTS: &[&str] = &["--accept", "contacts"];

fn film(world: &World) -> std::path::PathBuf {
    let film = world.source().join("film.mov");
    tree::file(&film, 1, 1_000_000);
    film
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

#[test]
fn after_one_transfer_by_ticket_the_next_ones_need_none() {
    let world = World::new();
    let film = film(&world);
    let mut sender = world.send_with(&[&film], &["--save-as", "bob"]);
    let received = world.receive_with(&sender.ticket(), &["--save-as", "anna"]).finish();
    received.expect_exit(0);
    sender.finish().expect_exit(0);
    std::fs::remove_file(world.target().join("film.mov")).unwrap();

    // Bob listens on his usual port, which Anna derives from his key.
    let mut listener = Process::start("listen", &mut world.listen_command("receiver", CONTACTS));
    let listening = listener.event("listening");
    assert_eq!((&listening["contacts"], &listening["accept"]), (&1.into(), &"contacts".into()));
    let sent = world.send_to("sender", "bob", "film.mov", &[]).finish();
    sent.expect_exit(0);
    assert_eq!(sent.last("met")["place"], "address");
    assert_eq!(sent.last("connected")["contact"], "bob");
    let suite = sent.last("connected")["suite"].as_str().unwrap();
    assert!(suite.starts_with("X25519+ML-KEM-768, "), "{suite}");
    let done = listener.event("done");
    assert_eq!(done["files"], 1);
    tree::assert_same(&film, &world.target().join("film.mov"));

    // The listener continues; the next offer is another transfer.
    tree::file(&world.source().join("second"), 2, 5000);
    world.send_to("sender", "BOB", "second", &[]).finish().expect_exit(0);
    listener.event("done");
    let ended = stop(listener);
    assert!(ended.all("connected").all(|event| event["contact"] == "anna"));
    assert_eq!(arrived(&world), ["film.mov", "second"]);
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
    world.send_to("anna", "bob", "film.mov", &[]).finish().expect_exit(0);
    listener.event("done");
    let ended = stop(listener);
    assert_eq!(ended.all("connected").count(), 1, "of the stranger nothing was seen");
}

#[test]
fn a_contact_that_is_removed_meets_silence_and_one_that_is_added_again_is_welcome() {
    let (world, mut listener) = friends(CONTACTS);
    world.send_to("anna", "bob", "film.mov", &[]).finish().expect_exit(0);
    listener.event("done");
    world.contact("bob", &["remove", "anna"]).expect_exit(0);
    listener.event_where("contacts_changed", |event| event["contacts"] == 0);
    world.send_to("anna", "bob", "film.mov", &[]).finish().expect_error(3);
    world.know("bob", "anna", None);
    world.contact("bob", &["rename", "anna", "hanna"]).expect_exit(0);
    listener.event_where("contacts_changed", |event| event["contacts"] == 1);
    world.send_to("anna", "bob", "film.mov", &[]).finish().expect_exit(0);
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

/// Starts a listener that asks. Returns it with the pipe for its answers and its address.
fn asking(world: &World) -> (Process, PipeWriter, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = world.listen_command("bob", &["--accept", "ask", "--listen", "127.0.0.1:0"]);
    let mut listener = Process::start_with_stdin("listen", command.stdin(Stdio::from(reader)));
    let address = listener.event("listening")["address"].as_str().unwrap().to_owned();
    (listener, writer, address)
}

#[test]
fn the_policy_ask_asks_about_everybody_and_strangers_once() {
    let world = World::new();
    film(&world);
    world.know("bob", "anna", None);
    let (mut listener, mut answers, address) = asking(&world);
    world.know("anna", "bob", Some(&address));
    world.know("stranger", "bob", Some(&address));

    let no = world.send_to("anna", "bob", "film.mov", &[]);
    assert_eq!(listener.event("connected")["contact"], "anna");
    answers.write_all(b"n\n").unwrap();
    no.finish().expect_error(4);
    // A no to a contact holds for this offer only.
    tree::file(&world.source().join("other"), 3, 100);
    let yes = world.send_to("anna", "bob", "other", &[]);
    listener.event_where("offer", |offer| offer["name"] == "other");
    answers.write_all(b"y\n").unwrap();
    yes.finish().expect_exit(0);

    let stranger = world.send_to("stranger", "bob", "film.mov", &[]);
    listener.event_where("connected", |event| event["contact"] == Value::Null);
    answers.write_all(b"no\n").unwrap();
    stranger.finish().expect_error(4);
    // No further offer of that stranger is shown.
    world.send_to("stranger", "bob", "other", &[]).finish().expect_error(4);
    let ended = stop(listener);
    assert_eq!(ended.all("connected").count(), 3);
    let stranger = world.node_id("stranger");
    assert!(ended.stderr.contains(&format!("{} at ", &stranger[..16])), "{}", ended.stderr);
    assert!(ended.stderr.contains("anna at 127.0.0.1"), "{}", ended.stderr);
    assert_eq!(arrived(&world), ["other"]);
}

#[test]
fn accept_always_accepts_any_sender_with_the_node_id() {
    let world = World::new();
    let film = film(&world);
    let (mut listener, address) = world.listen("bob", &["--accept", "always"]);
    world.know("stranger", "bob", Some(&address));
    world.send_to("stranger", "bob", "film.mov", &[]).finish().expect_exit(0);
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
        sender.finish().expect_exit(0);
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
    let large = world.source().join("large");
    tree::file(&large, 4, 60_000_000);
    world.know("bob", "anna", None);
    let (mut listener, mut answers, address) = asking(&world);
    world.know("anna", "bob", Some(&address));
    let mut first = world.send_to("anna", "bob", "large", &[]);
    listener.event("connected");
    answers.write_all(b"y\n").unwrap();
    first.event("accept");
    first.kill();
    // The offer was accepted before, so there is no question.
    world.send_to("anna", "bob", "large", &[]).finish().expect_exit(0);
    listener.event("done");
    stop(listener);
    tree::assert_same(&large, &world.target().join("large"));
}

#[test]
fn a_stopping_listener_notifies_its_sender() {
    let world = World::new();
    tree::file(&world.source().join("large"), 4, 1_000_000);
    world.know("bob", "anna", None);
    let (mut listener, _answers, address) = asking(&world);
    world.know("anna", "bob", Some(&address));
    let sender = world.send_to("anna", "bob", "large", &["--reconnect", "0"]);
    listener.event("connected");
    stop(listener);
    let error = sender.finish();
    let error = error.expect_error(6);
    assert!(error["message"].as_str().unwrap().contains("receiver's user"), "{error}");
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
    let sent = world.send_to("anna", "bob", "film.mov", &["--lan", "lo"]).finish();
    sent.expect_exit(0);
    assert_eq!(sent.last("met")["place"], "lan");
    listener.event("done");
    tree::assert_same(&film, &world.target().join("film.mov"));
    // Next time the address is known.
    let sent = world.send_to("anna", "bob", "film.mov", &[]).finish();
    sent.expect_exit(0);
    assert_eq!(sent.last("met")["place"], "address");

    // A stranger gets no answer, although it has the key.
    world.know("stranger", "bob", None);
    let more = ["--lan", "lo", "--timeout", "2"];
    let error = world.send_to("stranger", "bob", "film.mov", &more).finish();
    let error = error.expect_error(3);
    assert!(error["message"].as_str().unwrap().contains("local network: no answer"), "{error}");
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
    let sent = world.send_to("anna", "bob", "film.mov", &["--rendezvous", &server_at]).finish();
    sent.expect_exit(0);
    assert_eq!(sent.last("met")["place"], server_at);
    listener.event("done");
    tree::assert_same(&film, &world.target().join("film.mov"));
    assert_eq!(world.contacts("anna")[0]["rendezvous"], server_at);

    // Bob moves to another address; Anna finds him at the server.
    stop(listener);
    let (mut listener, _) =
        world.listen("bob", &["--accept", "contacts", "--rendezvous", &server_at]);
    let sent = world.send_to("anna", "bob", "film.mov", &[]).finish();
    sent.expect_exit(0);
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
fn at_a_terminal_the_listener_is_asked_and_shown_names() {
    let world = World::new();
    let film = film(&world);
    world.know("bob", "anna", None);
    let mut command = world.wraith("bob");
    command.args(["listen", "-o"]).arg(world.target());
    let mut terminal = Terminal::start(&mut command, 40, 100);
    terminal.expect("Ctrl-C stops");
    world.know("anna", "bob", Some("127.0.0.1"));
    world.know("stranger", "bob", Some("127.0.0.1"));
    let sender = world.send_to("anna", "bob", "film.mov", &[]);
    terminal.expect("anna at 127.0.0.1");
    terminal.expect("Accept? [y/N/l = list]");
    terminal.send("y\n");
    terminal.expect("Received 1 file");
    sender.finish().expect_exit(0);
    tree::assert_same(&film, &world.target().join("film.mov"));

    // After a transfer, the sender can be saved as a contact.
    let sender = world.send_to("stranger", "bob", "film.mov", &[]);
    terminal.expect("Accept?");
    terminal.send("y\n");
    terminal.expect("Save the sender");
    terminal.send("carla\n");
    terminal.expect("carla is a contact now");
    sender.finish().expect_exit(0);

    // The answer never turns the question off from then on.
    for (side, is_asked) in [("second", true), ("third", false)] {
        world.know(side, "bob", Some("127.0.0.1"));
        std::fs::remove_file(world.target().join("film.mov")).unwrap();
        let sender = world.send_to(side, "bob", "film.mov", &[]);
        terminal.expect("Accept?");
        terminal.send("y\n");
        terminal.expect("verified");
        if is_asked {
            terminal.expect("Save the sender");
            terminal.send("never\n");
            terminal.expect("wraith config unset no-contacts");
        }
        sender.finish().expect_exit(0);
    }
    assert!(!terminal.screen().contains("(third"), "{}", terminal.screen());
    terminal.send("\x03");
    terminal.expect_exit(130);
    assert_eq!(world.contacts("bob").len(), 2);
}

#[test]
fn a_listener_that_asks_needs_a_terminal() {
    let world = World::new();
    let mut command = world.listen_command("bob", &[]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("can answer the question") && said.contains("--accept contacts"),
        "{said}"
    );
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
fn a_stranger_with_many_keys_fills_no_screen_and_is_no_limit_to_contacts() {
    const KEYS: u64 = 12;
    let world = World::new();
    film(&world);
    world.know("bob", "anna", None);
    let (mut listener, mut answers, address) = asking(&world);
    world.know("anna", "bob", Some(&address));
    // Answers for all of them and Anna, in any order.
    answers.write_all("n\n".repeat(KEYS as usize + 1).as_bytes()).unwrap();
    let begun = std::time::Instant::now();
    for n in 0..KEYS {
        let side = format!("stranger{n}");
        world.know(&side, "bob", Some(&address));
        let refused = world.send_to(&side, "bob", "film.mov", &[]).finish();
        refused.expect_error(4);
    }
    let most = 3 + begun.elapsed().as_secs() / 60 + 1;
    let no = world.send_to("anna", "bob", "film.mov", &[]);
    listener.event_where("connected", |event| event["contact"] == "anna");
    no.finish().expect_error(4);
    let ended = stop(listener);
    let asked =
        ended.all("connected").filter(|event| event["contact"] == Value::Null).count() as u64;
    assert!((1..=most).contains(&asked), "{asked} questions, {most} at most");
    let unread: u64 =
        ended.all("refused_unread").map(|event| event["offers"].as_u64().unwrap()).sum();
    assert_eq!(asked + unread, KEYS, "each was asked about or counted");
}

#[test]
fn a_yes_ends_with_its_transfer() {
    let world = World::new();
    let large = world.source().join("large");
    tree::file(&large, 4, 60_000_000);
    world.know("bob", "anna", None);
    let (mut listener, mut answers, address) = asking(&world);
    world.know("anna", "bob", Some(&address));
    let mut first = world.send_to("anna", "bob", "large", &["--rate", "2M"]);
    listener.event("connected");
    answers.write_all(b"y\n").unwrap();
    first.event("accept");
    first.signal(libc::SIGINT);
    first.finish().expect_error(130);
    listener.event("failed");
    // The same offer with the same secret is asked about again, and now the answer is no.
    let again = world.send_to("anna", "bob", "large", &[]);
    listener.event("connected");
    answers.write_all(b"n\n").unwrap();
    again.finish().expect_error(4);
    stop(listener);
    assert!(!world.target().join("large").exists());
}

#[test]
fn an_answer_that_was_meant_for_one_offer_is_none_to_the_next() {
    let world = World::new();
    film(&world);
    let mut command = world.wraith("bob");
    command.args(["listen", "-o"]).arg(world.target());
    let mut terminal = Terminal::start(&mut command, 40, 100);
    terminal.expect("Ctrl-C stops");
    for side in ["one", "two"] {
        world.know(side, "bob", Some("127.0.0.1"));
    }
    let one = world.send_to("one", "bob", "film.mov", &[]);
    terminal.expect("Accept? [y/N/l = list]");
    let mut two = world.send_to("two", "bob", "film.mov", &[]);
    two.event("offer");
    one.signal(libc::SIGINT);
    one.finish().expect_error(130);
    terminal.expect("Press Enter for the next one.");
    // An answer that was meant for the first offer.
    terminal.send("y\n");
    terminal.expect("Accept? [y/N/l = list]");
    assert!(arrived(&world).is_empty() && !two.has_ended());
    terminal.send("n\n");
    two.finish().expect_error(4);
    terminal.send("\x03");
    terminal.expect_exit(130);
    assert!(arrived(&world).is_empty());
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
    anna.finish().expect_exit(0);
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
    sender.finish().expect_exit(0);
    listener.event("done");
    stop(listener);
    assert_eq!(std::fs::read(world.target().join("log.txt")).unwrap(), b"a line\n");
}

#[test]
fn a_slow_stranger_loses_the_turn_to_a_waiting_caller() {
    let world = World::new();
    let film = film(&world);
    tree::file(&world.source().join("slow"), 5, 20_000_000);
    let (mut listener, address) = world.listen("bob", &["--accept", "always"]);
    world.know("bob", "anna", None);
    listener.event("contacts_changed");
    world.know("anna", "bob", Some(&address));
    world.know("stranger", "bob", Some(&address));
    let mut slow = world.send_to("stranger", "bob", "slow", &["--rate", "20K"]);
    assert_eq!(listener.event("connected")["contact"], Value::Null);
    slow.event("accept");

    world.send_to("anna", "bob", "film.mov", &[]).finish().expect_exit(0);
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
    let sent = world.send_to("anna", "bob", "film.mov", &[]).finish();
    sent.expect_exit(0);
    listener.event("done");
    tree::assert_same(&film, &world.target().join("film.mov"));
    assert_eq!(arrived(&world), ["film.mov"]);

    tree::file(&world.source().join("large"), 5, 30_000_000);
    let sent = world.send_to("anna", "bob", "large", &[]).finish();
    sent.expect_exit(0);
    let rate = sent.last("done")["bytes_per_second"].as_u64().unwrap();
    assert!(rate <= 11 << 20, "{rate} bytes a second");
    stop(listener);
}
