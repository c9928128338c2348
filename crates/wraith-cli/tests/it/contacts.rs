//! Contacts: how they are created and changed, and the properties that never change.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::pty::Terminal;
use crate::support::{Process, World, tree};
use serde_json::Value;

/// Makes a file to send. Returns its path.
fn film(world: &World) -> std::path::PathBuf {
    world.file("film.mov", 1, 100_000)
}

fn names(contacts: &[Value]) -> Vec<&str> {
    contacts.iter().map(|contact| contact["name"].as_str().unwrap()).collect()
}

#[test]
fn a_transfer_by_ticket_makes_contacts_of_both_sides_where_they_ask_for_it() {
    let world = World::new();
    let film = film(&world);
    let sent = world.become_contacts(&film);
    assert_eq!(sent.last("contact")["done"], "added");
    let of_sender = world.contacts("sender");
    let of_receiver = world.contacts("receiver");
    assert_eq!((names(&of_sender), names(&of_receiver)), (vec!["bob"], vec!["anna"]));
    assert_eq!(of_sender[0]["node_id"], world.node_id("receiver"));
    assert_eq!(of_receiver[0]["node_id"], world.node_id("sender"));
    for contact in [&of_sender[0], &of_receiver[0]] {
        let seen_at = contact["seen_at"][0].as_str().unwrap();
        assert!(seen_at.starts_with("127.0.0.1:"), "{contact}");
        assert_eq!(contact["first_met"], contact["last_met"]);
    }
    let path = world.path("home-sender").join("contacts.toml");
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);

    // A known peer is shown by name, without a question and without a change.
    let mut sender = world.send(&[&film]);
    let received = world.receive(&sender.ticket()).finish();
    assert_eq!(received.last("connected")["contact"], "anna");
    let sent = sender.finish();
    assert_eq!(sent.last("connected")["contact"], "bob");
    assert_eq!(sent.all("contact").count(), 0);
    assert_eq!(names(&world.contacts("sender")), ["bob"]);
}

#[test]
fn no_contact_is_saved_without_asking() {
    let world = World::new();
    world.transfer(&[film(&world)]);
    assert!(world.contacts("sender").is_empty() && world.contacts("receiver").is_empty());
}

#[test]
fn a_name_never_changes_its_key() {
    let world = World::new();
    let film = film(&world);
    world.know("receiver", "someone", None);
    let someone = world.contacts("receiver");
    let mut sender = world.send(&[&film]);
    world
        .receive_with(&sender.ticket(), &["--save-as", "Someone"])
        .finish()
        .expect_message(1, "another identity");
    sender.succeed();
    assert_eq!(world.contacts("receiver"), someone, "nothing was changed");
    tree::assert_same(&film, &world.target().join("film.mov"));

    let node_id = world.node_id("sender");
    let error = world.contact("receiver", &["add", "someone", &node_id]);
    error.expect_error(1);
    world.contact("receiver", &["add", "anna", &node_id]).expect_exit(0);
    let twice = world.contact("receiver", &["add", "other", &node_id]);
    assert!(twice.expect_error(1)["message"].as_str().unwrap().contains("anna"));
    assert_eq!(names(&world.contacts("receiver")), ["someone", "anna"]);
}

#[test]
fn contacts_are_added_renamed_and_removed() {
    let world = World::new();
    let id = world.node_id("b");
    let added = world.contact(
        "a",
        &[
            "add",
            "bob",
            &id,
            "--address",
            "192.0.2.1",
            "--address",
            "home.example:7",
            "--rendezvous",
            "r.example",
        ],
    );
    added.expect_exit(0);
    let contact = added.last("contact");
    assert_eq!(contact["addresses"], serde_json::json!(["192.0.2.1", "home.example:7"]));
    assert_eq!(contact["rendezvous"], "r.example:49737");
    assert!(contact["last_met"].is_null());
    world.contact("a", &["rename", "bob", "robert"]).expect_exit(0);
    assert_eq!(names(&world.contacts("a")), ["robert"]);
    world.contact("a", &["rename", "bob", "x"]).expect_error(2);
    world.contact("a", &["remove", "bob"]).expect_error(2);
    world.contact("a", &["remove", "ROBERT"]).expect_exit(0);
    assert!(world.contacts("a").is_empty());

    let shown = world.wraith("a").args(["contact", "add", "bob", &id]).output().unwrap();
    assert!(shown.status.success());
    let shown = world.wraith("a").args(["contact", "list"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&shown.stdout), format!("bob  {id}\n"));
}

#[test]
fn a_node_id_in_place_of_a_name_reaches_a_listener() {
    let world = World::new();
    let film = film(&world);
    let (_server, place) = world.rendezvous();
    world.know("bob", "sender", None);
    let accept = ["--accept", "contacts", "--rendezvous", &place];
    let (listener, address) = world.listen("bob", &accept);
    let bob = world.node_id("bob");
    let to_id = world.send_to("sender", &bob, "film.mov", &["--rendezvous", &place]).succeed();
    let calling = to_id.last("calling");
    assert_eq!((&calling["peer"], &calling["contact"]), (&bob.clone().into(), &bob[..16].into()));
    assert!(world.contacts("sender").is_empty(), "it is no contact afterwards");
    tree::assert_same(&film, &world.target().join("film.mov"));

    // The NodeId of a contact brings its name and its addresses.
    world.know("sender", "bob", Some(&address));
    let to_contact = world.send_to("sender", &bob.to_uppercase(), "film.mov", &[]).succeed();
    assert_eq!(to_contact.last("calling")["contact"], "bob");
    listener.kill();
}

#[test]
fn invalid_contact_arguments_are_usage_errors() {
    let world = World::new();
    let (own, id) = (world.node_id("a"), world.node_id("b"));
    let add = |words: &[&str]| {
        let output = world.wraith("a").args(["contact", "add"]).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(!output.stderr.contains(&0x1b), "{output:?}");
    };
    add(&["a b", &id]);
    add(&["\u{1b}[2J", &id]);
    add(&["me", &own]);
    add(&["bob", &id[1..]]);
    add(&["bob", &"a".repeat(52)]);
    add(&["bob", &id, "--address", "not an address"]);
    assert!(world.contacts("a").is_empty());
    film(&world);
    let unknown = world.send_to("a", "nobody", "film.mov", &[]).finish();
    assert!(unknown.expect_error(2)["hint"].as_str().unwrap().contains("contact list"));
}

#[test]
fn damage_is_reported_and_stops_only_what_needs_contacts() {
    let world = World::new();
    let film = film(&world);
    world.know("receiver", "anna", None);
    let path = world.path("home-receiver").join("contacts.toml");
    let damaged = "[contacts.anna]\nnode_id = \"abc";
    fs::write(&path, damaged).unwrap();
    let error = world.contact("receiver", &["list"]);
    let error = error.expect_error(1);
    assert!(error["message"].as_str().unwrap().contains("line 2"), "{error}");
    assert!(error["hint"].as_str().is_some());
    world.contact("receiver", &["remove", "anna"]).expect_error(1);
    let mut command = world.listen_command("receiver", &["--accept", "contacts"]);
    let listener = Process::start("listen", &mut command).finish();
    listener.expect_error(1);

    let mut sender = world.send(&[&film]);
    world.receive(&sender.ticket()).succeed();
    sender.succeed();
    let mut sender = world.send(&[&film]);
    let kept = world.receive_with(&sender.ticket(), &["--save-as", "x"]).finish();
    kept.expect_error(1);
    sender.succeed();
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
}

/// Starts a receiver at a terminal and accepts. Its next output is about contacts.
fn at_a_terminal(world: &World, film: &Path) -> (Process, Terminal) {
    let mut sender = world.send(&[film]);
    let ticket = sender.ticket();
    let mut command = world.wraith("receiver");
    command.args(["receive", "-o"]).arg(world.target()).arg(ticket);
    let mut terminal = Terminal::start(&mut command, 40, 100);
    terminal.expect("Accept?");
    terminal.send("y\n");
    (sender, terminal)
}

#[test]
fn at_a_terminal_the_other_side_can_be_kept_under_a_name() {
    let world = World::new();
    let film = film(&world);
    let (sender, mut terminal) = at_a_terminal(&world, &film);
    terminal.expect("Save the sender");
    terminal.send("not a name\n");
    terminal.expect("no name for a contact");
    terminal.expect("Save the sender");
    terminal.send("yes\n");
    terminal.expect("type a name");
    terminal.expect("Save the sender");
    terminal.send("anna\n");
    terminal.expect("anna is a contact now");
    terminal.expect_exit(0);
    sender.succeed();
    assert_eq!(names(&world.contacts("receiver")), ["anna"]);

    // A known peer is shown by name, without a question.
    let (sender, terminal) = at_a_terminal(&world, &film);
    let screen = terminal.expect_exit(0);
    assert!(screen.contains("anna at 127.0.0.1") && !screen.contains("Keep the"), "{screen}");
    sender.succeed();
}

#[test]
fn enter_no_and_ctrl_c_save_no_contact_and_the_transfer_succeeds() {
    for leave in ["\n", "n\n", "No\n", "\x03"] {
        let world = World::new();
        let film = film(&world);
        let (sender, mut terminal) = at_a_terminal(&world, &film);
        terminal.expect("Save the sender");
        terminal.send(leave);
        terminal.expect_exit(0);
        sender.succeed();
        assert!(world.contacts("receiver").is_empty());
    }
}
