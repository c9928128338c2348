//! The command that resumes a transfer: the command line of this process, quoted for a shell.
//!
//! It repeats the typed words, so it cannot miss an option. Two things change:
//!
//! - A receiver that made a code continues with that code.
//! - A sender that ran with `--new` continues without it.
//!
//! Answers to questions are not on the command line, so they never appear in the result.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Options of `wraith receive` that request a new code, and whether each has a value. Once the code
/// exists, it replaces them.
const OF_A_NEW_CODE: [(&str, bool); 2] = [("--code", false), ("--expires", true)];

/// The option that discards an earlier run. The resuming command must not have it.
const BEGINS_ANEW: &str = "--new";

/// Returns the command that resumes the work of this process.
pub fn command() -> String {
    line(&without_beginning_anew(words()))
}

/// Returns the same command after `wraith receive --code` has made a code.
pub fn command_with_code(code: &str) -> String {
    line(&with_code(words(), code))
}

/// Returns the command of this process with the folder `dir` as the value of `-o`, where it was typed
/// as an argument.
pub fn command_with_folder(dir: &OsStr) -> String {
    line(&with_folder(words(), dir))
}

/// Returns the words of the command line without the program name.
fn words() -> Vec<OsString> {
    std::env::args_os().skip(1).collect()
}

fn line(words: &[OsString]) -> String {
    let mut line = String::from("wraith");
    for word in words {
        line.push(' ');
        line.push_str(&shell_word(word));
    }
    line
}

/// Removes [`BEGINS_ANEW`], except behind `--`, where it is a file name.
fn without_beginning_anew(mut words: Vec<OsString>) -> Vec<OsString> {
    let options = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let mut at = 0..;
    words.retain(|word| at.next().is_none_or(|at| at >= options) || word != BEGINS_ANEW);
    words
}

/// Replaces the request for a code with the code, and removes the options that belong to the
/// request.
fn with_code(words: Vec<OsString>, code: &str) -> Vec<OsString> {
    let mut changed = Vec::with_capacity(words.len());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--" {
            changed.push(word);
            break;
        }
        let is_joined = |option: &str| {
            let rest = word.as_bytes().strip_prefix(option.as_bytes());
            rest.is_some_and(|rest| rest.starts_with(b"="))
        };
        let Some((option, has_value)) =
            OF_A_NEW_CODE.into_iter().find(|(option, _)| word == *option || is_joined(option))
        else {
            changed.push(word);
            continue;
        };
        if has_value && word == option {
            words.next();
        }
        if !has_value {
            changed.push(code.into());
        }
    }
    changed.extend(words);
    changed
}

/// Moves the last word that is `dir` behind `-o`, at the end of the options, in place of an earlier
/// `-o`.
fn with_folder(mut words: Vec<OsString>, dir: &OsStr) -> Vec<OsString> {
    if let Some(at) = words.iter().rposition(|word| word == dir) {
        words.remove(at);
    }
    if let Some(at) = words.iter().position(|word| word == "-o" || word == "--out") {
        words.drain(at..words.len().min(at + 2));
    }
    let is_joined = |word: &OsString| {
        let word = word.as_bytes();
        word.starts_with(b"--out=") || word.starts_with(b"-o")
    };
    words.retain(|word| !is_joined(word));
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    words.splice(end..end, ["-o".into(), dir.to_owned()]);
    words
}

/// Quotes a word for a shell.
pub fn shell_word(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    let plain = |c: char| c.is_alphanumeric() || "-_./:,+@%=".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        Some(text) if !text.contains(is_unsafe) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => spelt_out(word.as_bytes()),
    }
}

/// Quotes a word as `$'…'`, which bash, zsh and ksh read. Escapes control characters, characters
/// that change the reading direction, and bytes that are not UTF-8.
fn spelt_out(bytes: &[u8]) -> String {
    let mut quoted = String::from("$'");
    for part in bytes.utf8_chunks() {
        for c in part.valid().chars() {
            match c {
                '\'' | '\\' => quoted.extend(['\\', c]),
                '\n' => quoted.push_str("\\n"),
                c if c.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
                c if is_unsafe(c) => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => quoted.push(c),
            }
        }
        part.invalid().iter().for_each(|byte| quoted.push_str(&format!("\\x{byte:02x}")));
    }
    quoted + "'"
}

/// Returns whether `c` is a control character or changes the reading direction.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn os(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_repeated_command_leaves_out_new() {
        let words = os(&["send", "--new", "-n", "2", "--", "--new", "film"]);
        assert_eq!(line(&without_beginning_anew(words)), "wraith send -n 2 -- --new film");
    }

    #[test]
    fn a_folder_among_the_arguments_becomes_an_option() {
        for (typed, right) in [
            (
                &["receive", "7-crater-lemon", "Downloads"][..],
                "receive 7-crater-lemon -o Downloads",
            ),
            (&["7-crater-lemon", "my dir", "-y"], "7-crater-lemon -y -o 'my dir'"),
            (&["7-crater-lemon", "-o", ".", "x"], "7-crater-lemon -o x"),
            (&["rx", "-y", "--", "7-crater-lemon", "x"], "rx -y -o x -- 7-crater-lemon"),
        ] {
            let dir = typed.iter().rfind(|word| ["Downloads", "my dir", "x"].contains(word));
            let words = with_folder(os(typed), dir.unwrap().as_ref());
            assert_eq!(line(&words), format!("wraith {right}"));
        }
    }

    #[test]
    fn every_option_that_was_typed_is_there_again() {
        let words =
            os(&["send", "-W", "--rate", "10M", "--to", "anna", "--", "-strange name", "$HOME"]);
        assert_eq!(line(&words), "wraith send -W --rate 10M --to anna -- '-strange name' '$HOME'");
    }

    #[test]
    fn the_repeated_command_has_the_made_code_in_place_of_the_option() {
        for (typed, again) in [
            (&["receive", "--code", "-o", "x"][..], "wraith receive 7-crater-lemon -o x"),
            (&["rx", "-y", "--expires", "60", "--code"], "wraith rx -y 7-crater-lemon"),
            (&["receive", "--expires=60", "--code", "-W"], "wraith receive 7-crater-lemon -W"),
        ] {
            let words = with_code(os(typed), "7-crater-lemon");
            assert_eq!(line(&words), again);
            let mut words = words;
            words.insert(0, "wraith".into());
            let cli = Cli::try_parse_from(words).expect("it is a command line");
            let Command::Receive(args) = cli.command else { panic!("{again}") };
            assert_eq!((args.wanted, args.code), (os(&["7-crater-lemon"]), false));
        }
    }

    #[test]
    fn a_shell_reads_a_word_as_it_was_meant() {
        let words: [&[u8]; 12] = [
            b"film.mov",
            b"my film",
            b"it's",
            b"$HOME",
            b"",
            b"-rf",
            b"we ird\x1b[31m\n;id'\\x",
            "a\u{202e}b".as_bytes(),
            "\u{85}next".as_bytes(),
            b"tab\there",
            "émile ü 文".as_bytes(),
            b"no\xfftext\xc3",
        ];
        for word in words {
            let quoted = shell_word(OsStr::from_bytes(word));
            assert!(!quoted.chars().any(is_unsafe), "{quoted:?}");
            let script = format!("printf %s {quoted}");
            let mut bash = std::process::Command::new("bash");
            let Ok(said) = bash.args(["-c", &script]).env("LC_ALL", "C.UTF-8").output() else {
                return eprintln!("skipped: there is no bash");
            };
            assert_eq!(said.stdout, word, "{quoted}");
        }
    }

    #[test]
    fn words_can_be_pasted_into_a_shell() {
        assert_eq!(shell_word("film.mov"), "film.mov");
        assert_eq!(shell_word("my film.mov"), "'my film.mov'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
