//! Usage errors. An invalid command line is reported like every other failure: the mistake, and the
//! words to type instead.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::config;
use crate::failure::{Exit, Failure};
use crate::guess;

/// Detects a long option with one hyphen. Clap reads `-hex` as `-h -e -x` and would answer with
/// help.
pub fn one_hyphen(words: &[OsString]) -> Option<Failure> {
    let (command, _) = command_of(words)?;
    let is_option = |name: &str| command.get_arguments().any(|arg| arg.get_long() == Some(name));
    let given = words.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str());
    let name = given
        .filter_map(|word| word.strip_prefix('-'))
        .find(|name| name.len() > 1 && is_option(name))?;
    let message = format!("-{name} is read as a group of one-letter options");
    Some(Failure::new(Exit::Usage, message).hint(format!("did you mean --{name}?")))
}

/// Converts clap's error about `words` into a failure.
pub fn failure(error: &clap::Error, words: &[OsString]) -> Failure {
    let guessed = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            named(error, ContextKind::InvalidSubcommand).and_then(guess::command)
        }
        ErrorKind::UnknownArgument => {
            let command = command_of(words).map_or_else(String::new, |(_, path)| path);
            named(error, ContextKind::InvalidArg).and_then(|name| guess::option(name, &command))
        }
        _ => None,
    };
    guessed.unwrap_or_else(|| plain(error, words))
}

/// Returns a word that the error names.
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
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "the command is missing".to_owned(),
        _ => first.trim_start_matches("error: ").trim_end_matches('.').to_owned(),
    };
    if let Some(failure) = config::variable_at_fault(&message) {
        return failure;
    }
    let usage = paragraphs.find_map(|text| text.trim_start().strip_prefix("Usage: "));
    let next =
        suggestion(error).or_else(|| usage.map(|usage| format!("usage: {}", one_line(usage))));
    let help = match command_of(words) {
        Some((_, path)) => format!("wraith help {path} lists the options"),
        None => "wraith help lists the commands".to_owned(),
    };
    Failure::new(Exit::Usage, message)
        .hint(next.map_or(help.clone(), |next| format!("{next}; {help}")))
}

/// Returns clap's suggestion for a mistyped word.
fn suggestion(error: &clap::Error) -> Option<String> {
    let alike = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg];
    let alike = alike.into_iter().find_map(|kind| error.get(kind))?;
    match alike {
        ContextValue::String(word) => Some(format!("did you mean {word}?")),
        // Clap puts the most likely word last.
        ContextValue::Strings(words) => words.last().map(|word| format!("did you mean {word}?")),
        _ => None,
    }
}

/// Returns the command in a command line, and its full name with the commands that contain it.
fn command_of(words: &[OsString]) -> Option<(clap::Command, String)> {
    let mut definition = crate::args::definition();
    // This adds the global options to each command.
    definition.build();
    let mut command = &definition;
    let mut path = Vec::new();
    for word in words.iter().skip(1).take_while(|word| *word != "--") {
        if let Some(part) = command.find_subcommand(word) {
            command = part;
            path.push(part.get_name());
        }
    }
    (!path.is_empty()).then(|| (command.clone(), path.join(" ")))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
