//! One sender with several receivers; each is served independently.

use std::path::{Path, PathBuf};

use crate::support::journal::wait_until_verified;
use crate::support::{self, LOOPBACK, Process, World, lan, offering, sending, tree};
use wraith_discovery::Code;

fn film(world: &World, bytes: usize) -> PathBuf {
    world.file("film.mov", 1, bytes)
}

/// Starts the receiver `side`, into a folder of its own, with the identity `home`.
fn receiver(world: &World, side: &str, home: &str, wanted: &str, more: &[&str]) -> Process {
    let mut command = world.wraith(home);
    command.args(["receive", "--json", "-o"]).arg(world.path(side)).args(more).arg(wanted);
    Process::start("receive", &mut command)
}

/// Starts a receiver whose user declines.
fn refusing(world: &World, side: &str, wanted: &str, more: &[&str]) -> Process {
    let (reader, mut answer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut answer, b"n\n").unwrap();
    let mut command = world.wraith(side);
    command.args(["receive", "--json", "-o"]).arg(world.path(side)).args(more).arg(wanted);
    Process::start_with_stdin("receive", command.stdin(reader))
}

fn assert_arrived(world: &World, side: &str, film: &Path) {
    tree::assert_same(film, &world.path(side).join("film.mov"));
    assert!(tree::leftovers(&world.path(side)).is_empty());
}

#[test]
fn ten_receivers_at_once_all_get_everything() {
    let (world, film, sender, ticket) = offering(20_000_000, &["-n", "10"]);
    // Half of the receivers belong to one user with several windows each.
    let sides: Vec<_> = (0..10).map(|n| (format!("side {n}"), format!("home {}", n % 5))).collect();
    let running: Vec<_> = sides
        .iter()
        .map(|(side, home)| receiver(&world, side, home, &ticket, &["--yes"]))
        .collect();
    for receiver in running {
        receiver.succeed();
    }
    let sent = sender.succeed();
    assert_eq!(sent.all("done").count(), 10);
    let mut numbers: Vec<_> = sent.all("done").map(|e| e["receiver"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 10);
    for (side, _) in &sides {
        assert_arrived(&world, side, &film);
    }
}

#[test]
fn an_offer_with_keep_serves_until_ctrl_c_and_resumes_with_the_same_ticket() {
    let (world, film, mut sender, ticket) = offering(1_000_000, &["--keep"]);
    for side in ["one", "two"] {
        receiver(&world, side, side, &ticket, &["--yes"]).succeed();
        sender.event("done");
        assert_arrived(&world, side, &film);
    }
    sender.signal(libc::SIGINT);
    sender.succeed();

    let mut sender = world.send_with(&[&film], &["--keep"]);
    assert_eq!(sender.ticket(), ticket);
    receiver(&world, "three", "three", &ticket, &["--yes"]).succeed();
    assert_arrived(&world, "three", &film);
    sender.event("done");
    sender.signal(libc::SIGTERM);
    sender.succeed();
}

#[test]
fn a_refusing_receiver_does_not_affect_the_others() {
    let (world, film, mut sender, ticket) = offering(1_000_000, &["-n", "2"]);
    receiver(&world, "one", "one", &ticket, &["--yes"]).succeed();
    refusing(&world, "two", &ticket, &[]).finish().expect_error(4);
    sender.event_where("receiver_failed", |e| e["code"] == "refused");
    assert!(!sender.has_ended());
    receiver(&world, "three", "three", &ticket, &["--yes"]).succeed();
    sender.succeed();
    assert_arrived(&world, "one", &film);
    assert_arrived(&world, "three", &film);
}

#[test]
fn a_killed_receiver_continues_while_another_is_served() {
    let (world, film, sender, ticket) = offering(60_000_000, &["-n", "2"]);
    let one = receiver(&world, "one", "one", &ticket, &["--yes"]);
    wait_until_verified(&world.path("one"), "film.mov", 10);
    one.kill();
    let kept = support::journal::verified_chunks(&world.path("one"), "film.mov");
    receiver(&world, "two", "two", &ticket, &["--yes"]).succeed();
    let again = receiver(&world, "one", "one", &ticket, &["--yes"]).succeed();
    let moved = again.last("done")["bytes_moved"].as_u64().unwrap();
    assert!(moved <= 60_000_000 - kept * 256 * 1024, "{moved} bytes after {kept} chunks");
    sender.succeed();
    assert_arrived(&world, "one", &film);
    assert_arrived(&world, "two", &film);
}

#[test]
fn a_surplus_receiver_is_refused_with_the_reason() {
    let (world, _, mut sender, ticket) = offering(1_000_000, &["-n", "2"]);
    // Two receivers at the question take both places.
    let asked = ["one", "two"].map(|side| world.receive_asking(side, &ticket));
    sender.event("connected");
    sender.event("connected");
    receiver(&world, "three", "three", &ticket, &["--yes"])
        .finish()
        .expect_message(4, "maximum number of receivers");
    for (process, mut answer) in asked {
        std::io::Write::write_all(&mut answer, b"y\n").unwrap();
        process.succeed();
    }
    sender.succeed();
}

#[test]
fn one_code_serves_as_many_as_it_was_made_for() {
    let (_network, world, film, sender, code) = sending(1_000_000, &["-n", "2"]);
    let yes = [LOOPBACK, &["--yes"]].concat();
    let both = ["one", "two"].map(|side| receiver(&world, side, side, &code, &yes));
    for process in both {
        process.succeed();
    }
    let sent = sender.succeed();
    assert_eq!(sent.all("code").filter(|e| e["state"] == "used").count(), 2);
    assert_arrived(&world, "one", &film);
    assert_arrived(&world, "two", &film);
}

#[test]
fn an_offer_with_keep_by_code_serves_one_machine_any_number_of_times() {
    let (_network, world, film, mut sender, code) = sending(1_000_000, &["--keep"]);
    let yes = [LOOPBACK, &["--yes"]].concat();
    for (side, home) in [("one", "one"), ("two", "two"), ("again", "one"), ("third", "one")] {
        receiver(&world, side, home, &code, &yes).succeed();
        sender.event("done");
        assert_arrived(&world, side, &film);
    }
    sender.signal(libc::SIGINT);
    sender.succeed();
}

#[test]
fn a_machine_that_has_everything_takes_no_second_place() {
    let (_network, world, film, mut sender, code) = sending(1_000_000, &["-n", "2"]);
    let yes = [LOOPBACK, &["--yes"]].concat();
    for (side, home) in [("one", "one"), ("again", "one"), ("two", "two")] {
        assert!(!sender.has_ended());
        receiver(&world, side, home, &code, &yes).succeed();
        assert_arrived(&world, side, &film);
    }
    sender.succeed();
}

#[test]
fn a_receiver_that_refuses_or_is_killed_keeps_its_place() {
    let (_network, world, film, sender, code) = sending(1_000_000, &["-n", "2"]);
    let with_yes = [LOOPBACK, &["--yes"]].concat();
    refusing(&world, "one", &code, LOOPBACK).finish().expect_error(4);
    let (reader, _no_answer) = std::io::pipe().unwrap();
    let mut command = world.wraith("two");
    command.args(["receive", "--json", "-o"]).arg(world.path("two")).args(LOOPBACK).arg(&code);
    let mut two = Process::start_with_stdin("receive", command.stdin(reader));
    two.event("offer");
    // Both places are taken by receivers that have no data yet.
    receiver(&world, "three", "three", &code, &with_yes).finish().expect_message(5, "used");
    two.kill();
    for side in ["two", "one"] {
        let again = receiver(&world, side, side, &code, &with_yes).succeed();
        assert_eq!(again.all("met").count(), 0, "the code was not used again");
        assert_arrived(&world, side, &film);
    }
    let sent = sender.succeed();
    assert_eq!(sent.all("code").filter(|e| e["state"] == "used").count(), 2);
}

#[test]
fn a_code_for_several_has_a_third_word_and_without_it_nothing_is_tried() {
    let _network = lan::own_network();
    let world = World::new();
    let film = film(&world, 1000);
    let words = |more: &[&str]| {
        let mut sender = world.send_by_code(&[&film], &[LOOPBACK, more].concat());
        sender.code().split('-').count() - 1
    };
    assert_eq!([words(&[]), words(&["-n", "2"]), words(&["--keep"])], [2, 3, 3]);

    let mut sender = world.send_by_code(&[&film], &[LOOPBACK, &["-n", "2"]].concat());
    let code = sender.code();
    let (short, _) = code.rsplit_once('-').unwrap();
    let hasty = [LOOPBACK, &["--yes", "--timeout", "2"]].concat();
    receiver(&world, "one", "one", short, &hasty).finish().expect_hint(3, "three");
    for side in ["one", "two"] {
        receiver(&world, side, side, &code, &hasty).succeed();
    }
    sender.succeed();
}

#[test]
fn a_wrong_guess_ends_a_code_for_several_and_both_sides_say_so() {
    let (_network, world, film, mut sender, code) = sending(1_000_000, &["-n", "3"]);
    let yes = [LOOPBACK, &["--yes"]].concat();
    receiver(&world, "one", "one", &code, &yes).succeed();
    sender.event("done");
    let number = code.split('-').next().unwrap().parse().unwrap();
    let others = (0..2).map(|n| Code::for_several(number, [n; 6]).to_string());
    let wrong = others.into_iter().find(|other| *other != code).unwrap();
    receiver(&world, "two", "two", &wrong, &yes).finish().expect_error(5);
    let sent = sender.finish();
    let error = sent.expect_error(5);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("wrong words") && message.contains("1 receiver had"), "{message}");
    assert_arrived(&world, "one", &film);
}

#[test]
fn a_code_that_a_receiver_made_is_for_one() {
    let world = World::new();
    let film = film(&world, 1000);
    let sender = world.send_by_code(&[&film], &["-n", "2", "--code", "7-crater-lemon"]);
    sender.finish().expect_error(2);
}
