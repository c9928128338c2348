//! Words in front of the command: options, or a code in place of the command.
//!
//! - `wraith CODE` and `wraith TICKET` stand for `wraith receive …`. Options of `wraith receive` may
//!   precede the code.
//! - Options of all commands may precede the command. They are moved behind it, because clap takes
//!   the same option at two levels for two options, and ignores the first.

use std::ffi::OsString;

use clap::{ArgAction, Command};
use wraith_discovery::Code;

/// The words of a command line, split at the first one that is neither an option nor its value.
#[derive(Debug, PartialEq, Eq)]
pub struct Split {
    /// Options with their values.
    pub options: Vec<OsString>,
    /// The first other word and all words behind it.
    pub rest: Vec<OsString>,
}

/// Returns the arguments of a process with the command in front.
pub fn with_command_in_front(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if !arguments.get(1).is_some_and(is_option) {
        if arguments.iter().skip(1).find(|word| *word != "--").is_some_and(is_wanted) {
            arguments.insert(1, "receive".into());
        }
        return arguments;
    }
    let mut definition = super::definition();
    // This adds the global options to each command.
    definition.build();
    let Split { options, mut rest } = split_for(&definition, &arguments);
    let code = rest.iter().find(|word| *word != "--");
    if code.is_some_and(is_wanted) {
        arguments.insert(1, "receive".into());
        return arguments;
    }
    let mut command = &definition;
    let mut at = 0;
    while let Some(inner) = rest.get(at).and_then(|word| command.find_subcommand(word)) {
        command = inner;
        at += 1;
    }
    // Clap answers a request for help, and options that only one command has, where they are.
    if at == 0 || rest[0] == "help" || !all_known(&definition, &options) {
        return arguments;
    }
    rest.splice(at..at, options);
    arguments.truncate(1);
    arguments.extend(rest);
    arguments
}

/// Returns whether the command has each of these options. The words may contain their values.
fn all_known(command: &Command, options: &[OsString]) -> bool {
    let mut words = options.iter();
    while let Some(word) = words.next() {
        let is_request = ["-h", "--help", "-V", "--version"].iter().any(|request| word == request);
        match takes_next(command, word).filter(|_| !is_request) {
            Some(true) => drop(words.next()),
            Some(false) => {}
            None => return false,
        }
    }
    true
}

/// Splits the words behind the program name. The options are those of `wraith receive`, or else of
/// any command. An unknown option has no value, unless a word follows that is neither a command nor
/// a code.
pub fn split(arguments: &[OsString]) -> Split {
    let words = arguments.get(1..).unwrap_or_default();
    if !words.first().is_some_and(is_option) {
        return Split { options: Vec::new(), rest: words.to_vec() };
    }
    let mut definition = super::definition();
    definition.build();
    split_for(&definition, arguments)
}

/// Splits the words with a definition that clap has built.
fn split_for(definition: &Command, arguments: &[OsString]) -> Split {
    let words = arguments.get(1..).unwrap_or_default();
    let receive = definition.find_subcommand("receive").expect("it is a command");
    let mut at = 0;
    while words.get(at).is_some_and(is_option) {
        let next = words.get(at + 1);
        let of_any = || definition.get_subcommands().find_map(|sub| takes_next(sub, &words[at]));
        let has_value = match takes_next(receive, &words[at]).or_else(of_any) {
            Some(has_value) => has_value,
            None => next.is_some_and(|word| {
                let is_command = || definition.find_subcommand(word).is_some();
                !is_option(word) && word != "--" && !is_wanted(word) && !is_command()
            }),
        };
        at += 1 + usize::from(has_value);
    }
    let (options, rest) = words.split_at(at.min(words.len()));
    Split { options: options.to_vec(), rest: rest.to_vec() }
}

/// Returns whether the value of an option, or of the last option in a group of short ones, is the
/// next word. None if the command has no such option.
fn takes_next(command: &Command, word: &OsString) -> Option<bool> {
    let word = word.to_str()?;
    let takes_value = |action: &ArgAction| matches!(action, ArgAction::Set | ArgAction::Append);
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(n, v)| (n, Some(v)));
        let has_name = |arg: &&clap::Arg| {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long() == Some(name) || aliases.contains(&name)
        };
        let arg = command.get_arguments().find(has_name)?;
        return Some(takes_value(arg.get_action()) && value.is_none());
    }
    let mut letters = word.strip_prefix('-')?.chars();
    while let Some(letter) = letters.next() {
        let arg = command.get_arguments().find(|arg| arg.get_short() == Some(letter))?;
        if takes_value(arg.get_action()) {
            return Some(letters.as_str().is_empty());
        }
    }
    Some(false)
}

fn is_option(word: &OsString) -> bool {
    word.as_encoded_bytes().first() == Some(&b'-') && word != "-" && word != "--"
}

/// Returns whether a word looks like a code or a ticket.
fn is_wanted(word: &OsString) -> bool {
    let scheme = word.as_encoded_bytes().get(..7);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"wraith:"))
        || word.to_str().is_some_and(Code::looks_like)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn os(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    /// Returns the command line with the command, as text.
    fn expanded(words: &[&str]) -> String {
        let words = [&["wraith"], words].concat();
        with_command_in_front(os(&words)).join(" ".as_ref()).into_string().unwrap()
    }

    #[test]
    fn a_code_or_a_ticket_alone_means_receive() {
        for words in [
            &["7-crater-lemon"][..],
            &["7", "crater", "lemon", "-y"],
            &["WRAITH:abc", "--yes"],
            &["--", "7-crater-lemon"],
        ] {
            let words = [&["wraith"], words].concat();
            let cli = Cli::try_parse_from(with_command_in_front(os(&words))).unwrap();
            assert!(matches!(cli.command, Command::Receive(_)), "{words:?}");
        }
    }

    #[test]
    fn options_of_receive_may_precede_the_code() {
        for options in [
            &["--yes"][..],
            &["-q"],
            &["-o", "DIR"],
            &["-oDIR"],
            &["--out=DIR"],
            &["--out", "receive"],
            &["-yo", "DIR"],
            &["-yoDIR"],
            &["-qy", "--log", "FILE", "--rate", "1M", "--lan", "off"],
            &["--lanes", "2"],
            &["-o", "7-crater-lemon"],
        ] {
            for code in [&["7-crater-lemon"][..], &["7", "crater", "lemon"], &["wraith:abc"]] {
                let words = [options, code].concat();
                let before = expanded(&words);
                assert_eq!(before, format!("wraith receive {}", words.join(" ")));
                let before = Cli::try_parse_from(before.split(' ')).expect("it is a command line");
                let after = expanded(&[code, options].concat());
                let after = Cli::try_parse_from(after.split(' ')).expect("it is a command line");
                assert_eq!(format!("{before:?}"), format!("{after:?}"), "{words:?}");
            }
        }
    }

    #[test]
    fn other_words_mean_no_receive() {
        for words in [
            &["--frob", "id"][..],
            &["--help", "id"],
            &["-q", "help", "id"],
            &["-o", "7-crater-lemon"],
            &["--yes", "recieve", "7-crater-lemon"],
            &["--yes", "receive", "7-crater-lemon"],
            &["--frob", "send", "7-crater-lemon"],
            &["-n", "7", "send", "film.mov"],
            &["--help"],
            &["-"],
            &[],
        ] {
            let typed = [&["wraith"], words].concat().join(" ");
            assert_eq!(expanded(words), typed);
        }
    }

    #[test]
    fn options_of_all_commands_go_behind_the_command() {
        for (words, right) in [
            (&["-q", "id"][..], "id -q"),
            (&["--log", "7-crater-lemon", "id", "--json"], "id --log 7-crater-lemon --json"),
            (&["--json", "contact", "add", "anna", "x"], "contact add --json anna x"),
        ] {
            assert_eq!(expanded(words), format!("wraith {right}"));
        }
    }

    #[test]
    fn an_unknown_option_may_have_a_value() {
        for words in [&["--overwrite", "7-crater-lemon"][..], &["--frob", "DIR", "7-crater-lemon"]]
        {
            assert_eq!(expanded(words), format!("wraith receive {}", words.join(" ")));
        }
    }
}
