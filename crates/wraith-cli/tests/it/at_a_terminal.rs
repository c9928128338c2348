//! Behaviour at a terminal: questions, answers, Ctrl-C.

use std::path::PathBuf;

use crate::support::pty::Terminal;
use crate::support::{Process, World, lan, offering, tree};

/// Offers a file to a receiver at a terminal, and waits for its question.
fn asked() -> (World, PathBuf, Process, Terminal) {
    let (world, film) = World::with_file("film.mov", 1, 1_000_000);
    let mut sender = world.send(&[&film]);
    let mut command = world.wraith("receiver");
    command.args(["receive", "-o"]).arg(world.target()).arg(sender.ticket());
    let mut terminal = Terminal::start(&mut command, 24, 80);
    terminal.expect("Accept?");
    (world, film, sender, terminal)
}

#[test]
fn the_question_of_an_offer_is_answered_with_y() {
    let (world, film, sender, mut terminal) = asked();
    terminal.send("y\n");
    terminal.expect("Received 1 file");
    terminal.keep_nobody();
    terminal.expect_exit(0);
    sender.succeed();
    tree::assert_same(&film, &world.target().join("film.mov"));
}

#[test]
fn ctrl_c_at_the_question_ends_with_130() {
    let (world, _, _sender, mut terminal) = asked();
    terminal.send("\u{3}");
    let screen = terminal.expect_exit(130);
    assert!(screen.contains("to continue, run again: wraith receive"), "{screen}");
    assert!(tree::names(&world.target()).is_empty());
}

#[test]
fn arrow_keys_leave_nothing_in_the_code() {
    let world = World::new();
    let mut command = world.wraith("receiver");
    let mut terminal = Terminal::start(command.arg("receive"), 24, 80);
    terminal.expect("Code or ticket (Tab completes): ");
    terminal.send("7-\x1b[D\x1b[C\x1bOA\x1b[3~crat\t");
    terminal.expect("7-crater-");
    terminal.send("\x03");
    let screen = terminal.expect_exit(130);
    assert!(!screen.contains("[D") && !screen.contains("OA"), "{screen:?}");
}

#[test]
fn a_picture_is_shown_where_it_is_wanted_and_the_sender_waits_without_a_rate() {
    let _network = lan::own_network();
    for (options, has_picture) in [(&[][..], false), (&["--qr"], true), (&["--ticket"], true)] {
        let (world, film) = World::with_file("film.mov", 1, 1_000_000);
        let mut command = world.wraith("sender");
        command.args(["send", "--lan", "lo"]).args(options).arg(&film);
        let mut sender = Terminal::start(&mut command, 60, 120);
        sender.expect("wraith receive ");
        let wanted = sender.expect("\r\n");
        let mut command = world.wraith("receiver");
        command.args(["receive", "--lan", "lo", "-o"]).arg(world.target()).arg(&wanted);
        let mut receiver = Terminal::start(&mut command, 24, 80);
        receiver.expect("Accept?");
        let shown = sender.expect(" to accept.");
        assert_eq!(shown.contains('█'), has_picture, "{options:?}: {shown}");
        assert!(shown.contains("Waiting for ") && !shown.contains("B/s"), "{shown}");
        receiver.send("y\n");
        receiver.keep_nobody();
        sender.keep_nobody();
        receiver.expect_exit(0);
        sender.expect_exit(0);
    }
}

#[test]
fn input_typed_before_the_question_does_not_accept_an_offer() {
    let (world, _, sender, ticket) = offering(1_000_000, &[]);
    // The offer cannot arrive before everything is typed.
    sender.signal(libc::SIGSTOP);
    let mut command = world.wraith("receiver");
    command.args(["receive", "-o"]).arg(world.target()).arg(&ticket);
    let mut receiver = Terminal::start(&mut command, 24, 80);
    receiver.send("y\nyes\ny\n");
    receiver.expect("yes");
    sender.signal(libc::SIGCONT);
    receiver.expect("Accept?");
    receiver.send("n\n");
    receiver.expect("you declined");
    receiver.expect_exit(4);
    sender.finish().expect_exit(4);
    assert!(!world.target().join("film.mov").exists());
}
