//! Usage errors. An invalid command line is reported like every other failure: the mistake, and the
//! words to type instead.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use wraith_command_text::shell_word;

use crate::args::{self, Split};
use crate::config;
use crate::failure::{Exit, Failure};
use crate::foreign;
use crate::guess;

/// Examples of values, by the name of the value in the help.
const EXAMPLES: [(&str, &str); 12] = [
    ("TIME", "1h"),
    ("RATE", "10M"),
    ("SIZE", "256M"),
    ("N", "3"),
    ("CODE", "7-crater-lemon"),
    ("DIR", "Downloads"),
    ("HOST[:PORT]", "server.example"),
    ("HOST:PORT", "server.example:6881"),
    ("[IP:]PORT", "5555"),
    ("IP:PORT", "127.0.0.1:5555"),
    ("PORT", "5555"),
    ("BYTES", "8192"),
];

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
            let is_option = |word: &&OsString| word.as_encoded_bytes().starts_with(b"-");
            let paths: Vec<_> =
                words.iter().skip(1).filter(|word| !is_option(word)).cloned().collect();
            named(error, ContextKind::InvalidSubcommand)
                .and_then(|word| guess::command(word, &paths))
        }
        ErrorKind::UnknownArgument => {
            named(error, ContextKind::InvalidArg).and_then(|name| unknown_option(name, words))
        }
        ErrorKind::ArgumentConflict => code_twice(error),
        ErrorKind::TooManyValues => value_of_a_switch(error),
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

/// Explains an option that the command does not have.
fn unknown_option(name: &str, words: &[OsString]) -> Option<Failure> {
    if let Some(failure) = before_the_command(words) {
        return Some(failure);
    }
    let command = command_of(words).map_or_else(String::new, |(_, path)| path);
    // Clap names only the first letter of a group, such as `-i` of `-in`.
    let mut typed = words.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str());
    let group = typed.find(|word| !name.starts_with("--") && word.starts_with(name));
    let explained = group.and_then(|group| foreign::explain(group, &command));
    explained
        .or_else(|| foreign::explain(name, &command))
        .or_else(|| of_another_command(name, &command))
}

/// Explains `wraith receive --code CODE`, which other programs have.
fn code_twice(error: &clap::Error) -> Option<Failure> {
    let both = [ContextKind::InvalidArg, ContextKind::PriorArg];
    let both = both.map(|kind| named(error, kind).unwrap_or_default());
    let is_code = both.contains(&"--code") && both.iter().any(|arg| arg.contains("CODE|TICKET"));
    is_code.then(code_for_receive)
}

fn code_for_receive() -> Failure {
    let message = "receive --code makes a new code, so it takes none";
    Failure::new(Exit::Usage, message).hint("with the sender's code: wraith receive CODE")
}

/// Explains `--yes=true`, and `wraith receive --code=CODE`.
fn value_of_a_switch(error: &clap::Error) -> Option<Failure> {
    let switch = named(error, ContextKind::InvalidArg)?;
    let value = named(error, ContextKind::InvalidValue)?;
    if switch == "--code" {
        return Some(code_for_receive());
    }
    let hint = match config::means_true(value) {
        true => format!("{switch} alone turns it on"),
        false => format!("to turn it off, leave {switch} out"),
    };
    Some(Failure::new(Exit::Usage, format!("{switch} takes no value")).hint(hint))
}

/// Explains options of a command that stand before it.
fn before_the_command(words: &[OsString]) -> Option<Failure> {
    let Split { options, mut rest } = args::split(words);
    if options.is_empty() || rest.is_empty() {
        return None;
    }
    rest.splice(1..1, options);
    rest.insert(0, "wraith".into());
    match args::definition().try_get_matches_from(&rest) {
        Err(error) if error.use_stderr() => Some(failure(&error, &rest)),
        _ => {
            let right = rest.iter().map(shell_word).collect::<Vec<_>>().join(" ");
            let message = "the options of a command must follow its name";
            Some(Failure::new(Exit::Usage, message).hint(right))
        }
    }
}

/// Explains an option that only other commands have.
fn of_another_command(name: &str, command: &str) -> Option<Failure> {
    let mut definition = args::definition();
    definition.build();
    let is_of = |command: &&clap::Command| {
        command.get_arguments().any(|arg| match name.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => arg.get_short().is_some_and(|short| {
                name.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4]))
            }),
        })
    };
    let group = command.split_once(' ').map(|(group, _)| group);
    let among = group.map_or(Some(&definition), |group| definition.find_subcommand(group))?;
    let having = among.get_subcommands().filter(is_of).map(|having| {
        let path = group.map(|group| format!("{group} ")).unwrap_or_default();
        format!("wraith {path}{}", having.get_name())
    });
    let having = having.collect::<Vec<_>>().join(", ");
    if having.is_empty() {
        return None;
    }
    if command.is_empty() && having == "wraith receive" {
        let message = format!("{name} is an option of wraith receive, and the code is missing");
        return Some(
            Failure::new(Exit::Usage, message).hint("wraith receive CODE, with the option"),
        );
    }
    let which = if command.is_empty() { "wraith".to_owned() } else { format!("wraith {command}") };
    let message = format!("{which} has no option {name}; it belongs to {having}");
    Some(Failure::new(Exit::Usage, message).hint(help_for(command)))
}

fn plain(error: &clap::Error, words: &[OsString]) -> Failure {
    let text = error.render().to_string();
    let first = one_line(text.split("\n\n").next().unwrap_or_default());
    let message = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "the command is missing".to_owned(),
        _ => first.trim_start_matches("error: ").trim_end_matches('.').to_owned(),
    };
    let command = command_of(words);
    let next = suggestion(error).or_else(|| example(error)).or_else(|| {
        // An invalid value is not a matter of order, so the usage does not help.
        let is_value = matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation);
        let (command, _) = command.as_ref().filter(|_| !is_value)?;
        Some(usage_line(command.clone()))
    });
    let help = help_for(command.as_ref().map_or("", |(_, path)| path));
    Failure::new(Exit::Usage, message)
        .hint(next.map_or(help.clone(), |next| format!("{next}; {help}")))
}

fn help_for(command: &str) -> String {
    match command {
        "" => "wraith help lists the commands".to_owned(),
        command => format!("wraith help {command} lists the options"),
    }
}

/// Returns the usage of a command from its definition. Clap's own line in an error also lists the
/// options that were given or that variables set, as if they were required.
fn usage_line(mut command: clap::Command) -> String {
    let usage = one_line(&command.render_usage().to_string());
    usage.replacen("Usage: ", "usage: ", 1)
}

/// Returns an example of the value that an option lacks.
fn example(error: &clap::Error) -> Option<String> {
    let is_missing = error.kind() == ErrorKind::InvalidValue
        && named(error, ContextKind::InvalidValue).is_none_or(str::is_empty);
    let arg = named(error, ContextKind::InvalidArg).filter(|_| is_missing)?;
    let (option, value) = arg.split_once(" <")?;
    let value = value.trim_end_matches('>');
    let (_, example) = EXAMPLES.iter().find(|(name, _)| *name == value)?;
    Some(format!("add it, as in {option} {example}"))
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
    let mut definition = args::definition();
    // This adds the global options to each command.
    definition.build();
    let mut command = &definition;
    let mut path = Vec::new();
    for word in args::split(words).rest.iter().take_while(|word| *word != "--") {
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
