//! The questions of a listener: which senders it asks about, and for which offer an answer counts.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use super::{accepted_transfer, arrived, asking, film, stop};
use crate::support::pty::Terminal;
use crate::support::{World, tree};

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
    world.file("other", 3, 100);
    let yes = world.send_to("anna", "bob", "other", &[]);
    listener.event_where("offer", |offer| offer["name"] == "other");
    answers.write_all(b"y\n").unwrap();
    yes.succeed();

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
    sender.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));

    // After a transfer, the sender can be saved as a contact.
    let sender = world.send_to("stranger", "bob", "film.mov", &[]);
    terminal.expect("Accept?");
    terminal.send("y\n");
    terminal.expect("Save the sender");
    terminal.send("carla\n");
    terminal.expect("carla is a contact now");
    sender.succeed();

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
        sender.succeed();
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
    let (mut listener, mut answers, first) = accepted_transfer(&world, &["--rate", "2M"]);
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
