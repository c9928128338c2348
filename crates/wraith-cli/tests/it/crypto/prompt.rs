//! Typed passphrases are not echoed, and the program asks for one only after all other checks.

use super::Bench;
use crate::support::pty::Terminal;

impl Bench {
    /// Starts `wraith crypto …` in the folder, at a terminal.
    fn at_a_terminal(&self, words: &[&str]) -> Terminal {
        let mut command = self.world.wraith("one");
        command.current_dir(self.world.source()).arg("crypto").args(words);
        Terminal::start(&mut command, 24, 80)
    }
}

#[test]
fn a_passphrase_is_typed_twice_to_encrypt_and_once_to_decrypt() {
    let bench = Bench::with(&[("text", b"text")]);
    let mut terminal = bench.at_a_terminal(&["enc", "-p", "text", "-o", "sealed"]);
    terminal.expect("Passphrase: ");
    terminal.send("violet\n");
    terminal.expect("Repeat the passphrase: ");
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
    let bench = Bench::with(&[("text", b"text")]);
    let mut terminal = bench.at_a_terminal(&["enc", "-p", "text", "-o", "sealed"]);
    for question in ["Passphrase: ", "Repeat the passphrase: "] {
        terminal.expect(question);
        terminal.stop_and_continue();
        terminal.expect(question);
        terminal.send("violet\n");
    }
    let screen = terminal.expect_exit(0);
    assert!(!screen.contains("violet"), "{screen}");
}

#[test]
fn impossible_operations_are_reported_before_the_passphrase_prompt() {
    let bench = Bench::with(&[("text", b"text"), ("there", b"there")]);
    bench.ok(&["genkey", "AES-256-GCM", "-o", "key"]);
    bench.ok(&["enc", "text", "-k", "key", "-o", "sealed"]);
    for (words, code, message) in [
        (&["enc", "-p", "text", "-o", "there"][..], 2, "there already exists"),
        (&["enc", "-p", "text", "-o", "missing/x"], 7, "cannot write missing/x"),
        (&["enc", "-p", "missing", "-o", "x"], 7, "cannot read missing"),
        (&["enc", "-p", "text"], 2, "the result is binary"),
        (&["dec", "-p", "missing", "-o", "x"], 7, "cannot read missing"),
        (&["dec", "-p", "text", "-o", "x"], 8, "not encrypted by wraith"),
        (&["dec", "-p", "sealed", "-o", "x"], 2, "encrypted with a key in hexadecimal"),
    ] {
        let mut terminal = bench.at_a_terminal(words);
        // Answers a question that should not come.
        terminal.send("violet\nviolet\n");
        let screen = terminal.expect_exit(code);
        assert!(screen.contains(message), "{words:?}: {screen}");
        assert!(!screen.contains("Passphrase: "), "{words:?}: {screen}");
    }
    assert_eq!(bench.names(), ["key", "sealed", "text", "there"]);
}
