//! A first transfer by code at two terminals: few lines, no line twice, no word broken across
//! lines.

use std::collections::BTreeSet;
use std::num::NonZero;

use crate::support::pty::Terminal;
use crate::support::{World, lan, tree};

/// Maximum number of lines on each side, including empty ones.
const LINES_MAX: usize = 12;

/// Returns the final content of a terminal.
fn lines(terminal: &str, (rows, columns): (u16, u16)) -> Vec<String> {
    let some = |n| NonZero::new(n).expect("a terminal has a size");
    let mut screen = vt100::Parser::new(some(rows), some(columns), 0);
    screen.process(terminal.as_bytes());
    let screen = screen.screen();
    assert!((0..rows).all(|row| !screen.row_wrapped(row)), "broken inside a word:\n{terminal}");
    let text = screen.contents();
    text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Transfers a file by code between two terminals of this size, and returns what the sender and the
/// receiver showed.
fn transferred(name: &str, bytes: usize, (rows, columns): (u16, u16)) -> [String; 2] {
    let world = World::new();
    let film = world.source().join(name);
    tree::file(&film, 1, bytes);
    let mut command = world.wraith("sender");
    command.args(["send", "--lan", "lo", name]).current_dir(world.source());
    let mut sender = Terminal::start(&mut command, rows, columns);
    sender.expect("wraith receive ");
    // The code is one word, also where the command has no room on one line.
    let line = sender.expect("\r\n");
    let code = match line.trim() {
        "" => sender.expect("\r\n").trim().to_owned(),
        code => code.to_owned(),
    };
    let mut command = world.wraith("receiver");
    command.arg(&code).current_dir(world.target()).env("WRAITH_LAN", "lo");
    let mut receiver = Terminal::start(&mut command, rows, columns);
    receiver.expect("Accept?");
    receiver.send("y\n");
    receiver.keep_nobody();
    sender.keep_nobody();
    let shown = [sender.expect_exit(0), receiver.expect_exit(0)];
    tree::assert_same(&film, &world.target().join(name));
    shown
}

#[test]
fn a_first_transfer_by_code_takes_few_lines_and_says_nothing_twice() {
    let _network = lan::own_network();
    for size in [(24, 80), (40, 120)] {
        for said in transferred("film.mov", 20_000_000, size) {
            let lines = lines(&said, size);
            assert!(lines.len() <= LINES_MAX, "{lines:#?}");
            let said: Vec<_> = lines.iter().filter(|line| !line.is_empty()).collect();
            let different: BTreeSet<_> = said.iter().collect();
            assert_eq!(different.len(), said.len(), "{lines:#?}");
        }
    }
}

#[test]
fn a_transfer_works_in_a_very_narrow_and_in_a_very_wide_terminal() {
    let _network = lan::own_network();
    for size in [(24, 20), (10, 300)] {
        for shown in transferred("a film with a long name.mov", 2_000_000, size) {
            assert!(!lines(&shown, size).is_empty());
        }
    }
}
