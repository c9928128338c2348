//! A command line that makes no sense, told like every other failure: what it is, and what to type instead.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::config;
use crate::failure::{Exit, Failure};
use crate::guess;

/// What clap says against the `words` of a command line.
pub fn failure(error: &clap::Error, words: &[OsString]) -> Failure {
    let guessed = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            named(error, ContextKind::InvalidSubcommand).and_then(guess::command)
        }
        ErrorKind::UnknownArgument => {
            let command = command_of(words).unwrap_or_default();
            named(error, ContextKind::InvalidArg).and_then(|name| guess::option(name, &command))
        }
        _ => None,
    };
    guessed.unwrap_or_else(|| plain(error, words))
}

/// A word that the error is about.
fn named(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word),
        _ => None,
    }
}

fn plain(error: &clap::Error, words: &[OsString]) -> Failure {
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n");
    let first = one_line(paragraphs.next().unwrap_or_default());
    let message = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "there is no command".to_owned(),
        _ => first.trim_start_matches("error: ").trim_end_matches('.').to_owned(),
    };
    if let Some(failure) = config::variable_at_fault(&message) {
        return failure;
    }
    let usage = paragraphs.find_map(|text| text.trim_start().strip_prefix("Usage: "));
    let next =
        suggestion(error).or_else(|| usage.map(|usage| format!("usage: {}", one_line(usage))));
    let help = match command_of(words) {
        Some(command) => format!("wraith help {command} lists the options"),
        None => "wraith help lists the commands".to_owned(),
    };
    Failure::new(Exit::Usage, message)
        .hint(next.map_or(help.clone(), |next| format!("{next}; {help}")))
}

/// What was probably meant.
fn suggestion(error: &clap::Error) -> Option<String> {
    let alike = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg];
    let alike = alike.into_iter().find_map(|kind| error.get(kind))?;
    match alike {
        ContextValue::String(word) => Some(format!("did you mean {word}?")),
        // The likeliest is the last.
        ContextValue::Strings(words) => words.last().map(|word| format!("did you mean {word}?")),
        _ => None,
    }
}

/// The command that a command line names, by its own name.
fn command_of(words: &[OsString]) -> Option<String> {
    let definition = crate::args::definition();
    let command = words.iter().skip(1).find_map(|word| definition.find_subcommand(word))?;
    Some(command.get_name().to_owned())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
