//! The receiver's user declines.

use std::io::Write;
use std::process::Stdio;

use crate::support::{Process, World, expect_arrival, offering, tree};

fn answer(world: &World, ticket: &str, words: &str) -> Process {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(words.as_bytes()).unwrap();
    // Closed before the receiver checks its input, because it checks whether more can come.
    drop(writer);
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "-o"]).arg(world.target()).arg(ticket);
    Process::start_with_stdin("receive", command.stdin(Stdio::from(reader)))
}

#[test]
fn a_no_ends_both_sides_with_4_and_leaves_nothing() {
    for words in ["n\n", "whatever\nno\n"] {
        let (world, film) = World::with_file("film.mov", 1, 1_000_000);
        let mut sender = world.send(&[film]);
        answer(&world, &sender.ticket(), words).finish().expect_error(4);
        sender.finish().expect_error(4);
        assert!(tree::names(&world.target()).is_empty());
    }
}

#[test]
fn an_unanswered_question_leaves_the_sender_waiting() {
    let (world, _, sender, ticket) = offering(1_000_000, &[]);
    answer(&world, &ticket, "whatever\n").finish().expect_message(2, "still waiting");
    assert!(tree::names(&world.target()).is_empty());
    world.receive(&ticket).succeed();
    sender.succeed();
}

#[test]
fn a_question_without_a_terminal_fails_before_the_ticket_is_used() {
    let (world, _, sender, ticket) = offering(1_000_000, &[]);
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", &ticket]);
    for outcome in [
        answer(&world, &ticket, "").finish(),
        answer(&world, "-", &format!("{ticket}\n")).finish(),
        Process::start("receive", &mut command).finish(),
    ] {
        outcome.expect_hint(2, "--yes");
        assert_eq!(outcome.all("connected").count(), 0);
    }
    world.receive(&ticket).succeed();
    sender.succeed();
}

#[test]
fn a_yes_starts_the_transfer() {
    let (world, film) = World::with_file("film.mov", 1, 1_000_000);
    let mut sender = world.send(&[&film]);
    expect_arrival(answer(&world, &sender.ticket(), "y\n"), sender, &film, &world.target());
}
