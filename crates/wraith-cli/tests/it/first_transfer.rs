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

#[test]
fn a_first_transfer_by_code_takes_few_lines_and_says_nothing_twice() {
    let _network = lan::own_network();
    for size in [(24, 80), (40, 120)] {
        let world = World::new();
        let film = world.source().join("film.mov");
        tree::file(&film, 1, 20_000_000);
        let mut command = world.wraith("sender");
        command.args(["send", "--lan", "lo", "film.mov"]).current_dir(world.source());
        let mut sender = Terminal::start(&mut command, size.0, size.1);
        sender.expect("wraith receive ");
        let code = sender.expect("\r\n");
        let mut command = world.wraith("receiver");
        command.arg(&code).current_dir(world.target()).env("WRAITH_LAN", "lo");
        let mut receiver = Terminal::start(&mut command, size.0, size.1);
        receiver.expect("Accept?");
        receiver.send("y\n");
        receiver.keep_nobody();
        sender.keep_nobody();
        for said in [sender.expect_exit(0), receiver.expect_exit(0)] {
            let lines = lines(&said, size);
            assert!(lines.len() <= LINES_MAX, "{lines:#?}");
            let said: Vec<_> = lines.iter().filter(|line| !line.is_empty()).collect();
            let different: BTreeSet<_> = said.iter().collect();
            assert_eq!(different.len(), said.len(), "{lines:#?}");
        }
        tree::assert_same(&film, &world.target().join("film.mov"));
    }
}

#[test]
fn a_transfer_works_in_a_very_narrow_and_in_a_very_wide_terminal() {
    let _network = lan::own_network();
    for size in [(24, 20), (10, 300)] {
        let world = World::new();
        let film = world.source().join("a film with a long name.mov");
        tree::file(&film, 1, 2_000_000);
        let mut command = world.wraith("sender");
        command.args(["send", "--lan", "lo"]).arg(&film);
        let mut sender = Terminal::start(&mut command, size.0, size.1);
        // The code is one word, also where the command has no room on one line.
        sender.expect("wraith receive ");
        let code = sender.expect("\r\n");
        let code = code
            .split_whitespace()
            .next()
            .map_or_else(|| sender.expect("\r\n").trim().to_owned(), str::to_owned);
        assert_eq!(code.split('-').count(), 3, "{code}");
        let mut command = world.wraith("receiver");
        command.arg(&code).current_dir(world.target()).env("WRAITH_LAN", "lo");
        let mut receiver = Terminal::start(&mut command, size.0, size.1);
        receiver.expect("Accept?");
        receiver.send("y\n");
        receiver.keep_nobody();
        sender.keep_nobody();
        for text in [sender.expect_exit(0), receiver.expect_exit(0)] {
            assert!(!lines(&text, size).is_empty());
        }
        tree::assert_same(&film, &world.target().join(film.file_name().unwrap()));
    }
}
