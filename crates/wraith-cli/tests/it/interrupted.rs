//! Ctrl-C and SIGTERM: the process stops cleanly, keeps its partial files, and shows how to resume.

use crate::support::journal::wait_until_verified;
use crate::support::pty::Terminal;
use crate::support::{Process, World, offering, tree};

const FILM_BYTES: usize = 400 << 20;

fn under_way(world: &World) -> (Process, Process, String) {
    let film = world.file("film.mov", 1, FILM_BYTES);
    let mut sender = world.send(&[film]);
    let ticket = sender.ticket();
    let receiver = world.receive(&ticket);
    wait_until_verified(&world.target(), "film.mov", 1);
    (sender, receiver, ticket)
}

#[test]
fn an_interrupted_receiver_keeps_its_part_and_continues() {
    let world = World::new();
    let (sender, receiver, ticket) = under_way(&world);
    receiver.signal(libc::SIGINT);
    let outcome = receiver.finish();
    outcome.expect_hint(130, "wraith receive");
    assert!(!world.target().join("film.mov").exists());
    assert!(!tree::leftovers(&world.target()).is_empty(), "the part was kept");
    let part = world.target().join(".film.mov.wraith-part").display().to_string();
    let note = outcome.all("note").find(|note| note["path"] == part.as_str()).unwrap();
    assert!(note["message"].as_str().unwrap().contains("unfinished files stay, "), "{note}");

    let again = world.receive(&ticket).succeed();
    sender.succeed();
    tree::assert_same(&world.source().join("film.mov"), &world.target().join("film.mov"));
    let moved = again.last("done")["bytes_moved"].as_u64().unwrap();
    assert!(moved < FILM_BYTES as u64, "what was verified did not move again");
}

#[test]
fn an_interrupted_sender_shows_how_to_resume() {
    let world = World::new();
    let (sender, receiver, ticket) = under_way(&world);
    sender.signal(libc::SIGINT);
    sender.finish().expect_hint(130, "wraith send");
    receiver.signal(libc::SIGINT);
    receiver.finish();

    let mut again = world.send(&[world.source().join("film.mov")]);
    assert_eq!(again.ticket(), ticket);
    world.receive(&ticket).succeed();
    again.succeed();
    tree::assert_same(&world.source().join("film.mov"), &world.target().join("film.mov"));
}

#[test]
fn a_sender_that_waits_stops_at_once() {
    let world = World::new();
    for (signal, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
        let film = world.file("film.mov", 1, 10);
        let mut sender = world.send(&[film]);
        sender.ticket();
        sender.signal(signal);
        sender.finish().expect_error(code);
    }
}

#[test]
fn the_command_that_continues_has_the_rate_as_it_was_typed() {
    let (world, film) = World::with_file("film.mov", 1, 10);
    for rate in ["30M", "1MB/s", "1.5M"] {
        let mut sender = world.send_with(&[&film], &["--rate", rate]);
        sender.ticket();
        sender.signal(libc::SIGINT);
        let outcome = sender.finish();
        let error = outcome.expect_error(130);
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.contains(&format!("--rate {rate} ")), "{hint}");
    }
}

#[test]
fn a_message_after_an_unanswered_question_has_its_own_line() {
    let (world, film) = World::with_file("film.mov", 1, 10);
    let mut sender = world.send(&[&film]);
    let mut command = world.wraith("receiver");
    command.args(["receive", &sender.ticket(), "-o"]).arg(world.target());
    let mut terminal = Terminal::start(&mut command, 24, 80);
    terminal.expect("Accept? [y/N/l = list] ");
    terminal.send("\x04");
    assert_eq!(terminal.expect("wraith: the question got no answer"), "\r\n");
    terminal.finish();
}

#[test]
fn ctrl_c_at_the_question_stops_at_once() {
    let (world, film) = World::with_file("film.mov", 1, 10);
    let mut sender = world.send_with(&[&film], &["--reconnect", "0"]);
    // An input that never answers.
    let (reader, _writer) = std::io::pipe().unwrap();
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", &sender.ticket(), "-o"]).arg(world.target()).stdin(reader);
    let mut receiver = Process::start_with_stdin("receive", &mut command);
    receiver.event("offer");
    receiver.signal(libc::SIGINT);
    receiver.finish().expect_error(130);
    sender.finish().expect_error(6);
}

#[test]
fn a_sender_reports_a_receiver_that_stops_at_the_question_and_waits_for_it() {
    let (world, _, mut sender, ticket) = offering(10, &[]);
    let (reader, _writer) = std::io::pipe().unwrap();
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", &ticket, "-o"]).arg(world.target()).stdin(reader);
    let mut receiver = Process::start_with_stdin("receive", &mut command);
    receiver.event("offer");
    receiver.signal(libc::SIGINT);
    let ended = receiver.finish();
    ended.expect_error(130);
    assert_eq!(ended.all("note").count(), 0, "nothing is left, so nothing is named");
    let note = sender.event("note");
    let what = "the receiver stopped before it accepted; waiting for it to come back";
    assert_eq!(note["message"], what);
    world.receive(&ticket).succeed();
    sender.succeed();
}
