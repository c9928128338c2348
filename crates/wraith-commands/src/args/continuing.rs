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

use wraith_command_text::shell_word;

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
}
