//! A passphrase that is typed: nothing shows it.

use super::Bench;
use crate::support::pty::Terminal;

impl Bench {
    /// `wraith crypto …` in the folder, at a terminal.
    fn at_a_terminal(&self, words: &[&str]) -> Terminal {
        let mut command = self.world.wraith("one");
        command.current_dir(self.world.source()).arg("crypto").args(words);
        Terminal::start(&mut command, 24, 80)
    }
}

#[test]
fn a_passphrase_is_typed_twice_to_encrypt_and_once_to_decrypt() {
    let bench = Bench::new();
    bench.write("text", b"text");
    let mut terminal = bench.at_a_terminal(&["enc", "-p", "text", "-o", "sealed"]);
    terminal.expect("Passphrase: ");
    terminal.send("violet\n");
    terminal.expect("The same once more: ");
    terminal.send("violet\n");
    let screen = terminal.expect_exit(0);
    assert!(!screen.contains("violet"), "{screen}");
    let mut terminal = bench.at_a_terminal(&["dec", "-p", "sealed", "-o", "again"]);
    terminal.expect("Passphrase: ");
    terminal.send("violet\n");
    let screen = terminal.expect_exit(0);
    assert!(!screen.contains("violet"), "{screen}");
    assert_eq!(bench.read("again"), b"text");
}

#[test]
fn a_passphrase_is_not_shown_after_the_command_was_stopped_and_continued() {
    let bench = Bench::new();
    bench.write("text", b"text");
    let mut terminal = bench.at_a_terminal(&["enc", "-p", "text", "-o", "sealed"]);
    for question in ["Passphrase: ", "The same once more: "] {
        terminal.expect(question);
        terminal.stop_and_continue();
        terminal.expect(question);
        terminal.send("violet\n");
    }
    let screen = terminal.expect_exit(0);
    assert!(!screen.contains("violet"), "{screen}");
}
