//! The receiver's user says no.

mod support;

use std::io::Write;
use std::process::Stdio;

use support::{Process, World, tree};

fn answer(world: &World, ticket: &str, words: &str) -> Process {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(words.as_bytes()).unwrap();
    let mut command = world.wraith("receiver");
    command.args(["receive", "--json", "-o"]).arg(world.target()).arg(ticket);
    Process::start_with_stdin("receive", command.stdin(Stdio::from(reader)))
}

#[test]
fn a_no_ends_both_sides_with_4_and_leaves_nothing() {
    for words in ["n\n", "whatever\nno\n", ""] {
        let world = World::new();
        let film = world.source().join("film.mov");
        tree::file(&film, 1, 1_000_000);
        let mut sender = world.send(&[film]);
        answer(&world, &sender.ticket(), words).finish().expect_error(4);
        sender.finish().expect_error(4);
        assert!(tree::names(&world.target()).is_empty());
    }
}

#[test]
fn a_yes_goes_on() {
    let world = World::new();
    let film = world.source().join("film.mov");
    tree::file(&film, 1, 1_000_000);
    let mut sender = world.send(&[&film]);
    answer(&world, &sender.ticket(), "y\n").finish().expect_exit(0);
    sender.finish().expect_exit(0);
    tree::assert_same(&film, &world.target().join("film.mov"));
}
