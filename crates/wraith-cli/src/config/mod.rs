//! The config file and the environment: options that need not be typed each time.
//!
//! There is no list of settings: the keys are the long options of the commands, read from clap's own definition ([`keys`]), and a
//! value from the file becomes the option's default before the command line is parsed. So the order is what clap makes of it:
//! command line, environment, file, built-in default; and a value is checked by the very parser of its option. A setting that
//! excludes what stands on the command line is left out ([`excluded`]): `--dry-run` goes before a `yes` of the file.
//!
//! Invariant: what stands in the file is either used or complained about, by file, line and key; never ignored.

mod command;
mod excluded;
mod file;
mod keys;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, FromArgMatches};

pub use command::run;
pub use file::File;

use crate::args::{self, Cli, Command};
use crate::failure::{Exit, Failure};
use keys::Keys;

/// On the command line: as if there were no file.
const NO_CONFIG: &str = "--no-config";

/// Why there is no command to run.
#[derive(Debug)]
pub enum NoCommand {
    /// Help, a version, or a mistake on the command line.
    Clap(clap::Error),
    /// A mistake in the config file.
    Config(Failure),
}

/// The arguments of this process, over the environment, over the config file.
pub fn command_line() -> Result<Cli, NoCommand> {
    let words = args::with_implied_receive(std::env::args_os().collect());
    let excluded = excluded::by(&words);
    let without_file = || keys::with_environment(args::definition(), &excluded);
    let with_file = |file: &File| {
        file.check(&Keys::of(&args::definition()))?;
        let plain = keys::with_file(args::definition(), file, &excluded);
        Ok(keys::with_environment(plain, &excluded))
    };
    let matches = match File::load().and_then(|file| with_file(&file)) {
        Ok(definition) if !is_without_file(&words) => definition.try_get_matches_from(words),
        Ok(_) => without_file().try_get_matches_from(words),
        Err(failure) => {
            // A file with a mistake must not keep anybody from reading the help, or from correcting it.
            let matches = without_file().try_get_matches_from(&words);
            let parsed = matches.as_ref().map(Cli::from_arg_matches);
            let needs_file = matches!(&parsed, Ok(Ok(cli)) if needs_file(&cli.command));
            if needs_file && !is_without_file(&words) {
                return Err(NoCommand::Config(failure));
            }
            matches
        }
    };
    let mut matches: ArgMatches = matches.map_err(NoCommand::Clap)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(NoCommand::Clap)
}

/// What to say about variables of the environment that look like ours and set nothing.
pub fn unknown_variables() -> Vec<String> {
    let names = std::env::vars_os().map(|(name, _)| name);
    let unknown = Keys::of(&args::definition()).unknown_variables(names);
    let said = |(name, nearest): (String, Option<String>)| match nearest {
        Some(nearest) => format!("{name} in the environment sets nothing; did you mean {nearest}?"),
        None => format!("{name} in the environment sets nothing"),
    };
    unknown.into_iter().map(said).collect()
}

/// From now on no command asks whether to keep somebody as a contact. Returns the file that says so.
pub fn never_ask_for_contacts() -> Result<PathBuf, Failure> {
    File::set(&Keys::of(&args::definition()), "no-contacts", "true")
}

/// A variable of the environment that no command can work with.
pub fn check_environment() -> Result<(), Failure> {
    wrong_variable(|_, _| true).map_or(Ok(()), Err)
}

/// The failure that clap's `message` is, if it is about the value of a variable.
pub fn variable_at_fault(message: &str) -> Option<Failure> {
    wrong_variable(|option, value| {
        message.starts_with(&format!("invalid value '{value}' for '--{option}"))
    })
}

/// The first variable whose value its option does not take, of those for whose option and value `is_meant` says so.
fn wrong_variable(is_meant: impl Fn(&str, &str) -> bool) -> Option<Failure> {
    let keys = Keys::of(&args::definition());
    let mut faults = keys.faults_in_environment();
    let (_, variable, _, fault) = faults.find(|(option, _, value, _)| is_meant(option, value))?;
    Some(
        Failure::new(Exit::Usage, format!("{variable} in the environment: {fault}"))
            .hint("correct it or unset it; what stands on the command line goes before it"),
    )
}

/// How many settings the file has.
///
/// # Errors
/// It has a mistake.
pub fn check() -> Result<usize, Failure> {
    let file = File::load()?;
    file.check(&Keys::of(&args::definition()))?;
    Ok(file.len())
}

fn is_without_file(words: &[OsString]) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| word == NO_CONFIG)
}

/// What only says what is there, or mends it, works without.
fn needs_file(command: &Command) -> bool {
    use Command::{Completions, Config, Doctor, Man};
    !matches!(command, Config(_) | Completions(_) | Doctor(_) | Man(_))
}
