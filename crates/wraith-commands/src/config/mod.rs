//! The config file and the environment: defaults for options.
//!
//! There is no list of settings. The keys are the long options of the commands, read from clap's
//! own definition ([`keys`]). A value from the file becomes the default of its option before the
//! command line is parsed, which has two consequences:
//!
//! - The precedence is clap's: command line, environment, file, built-in default.
//! - The parser of the option checks the value.
//!
//! A setting that conflicts with the command line is ignored ([`excluded`]): `--dry-run` overrides
//! `yes` in the file.
//!
//! Invariant: every entry of the file is used or reported with file, line and key; none is ignored
//! silently.

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

/// Option that ignores the config file.
const NO_CONFIG: &str = "--no-config";

/// Why there is no command to run.
#[derive(Debug)]
pub enum CommandLineError {
    /// Help, a version, or a mistake on the command line.
    Clap(clap::Error),
    /// A mistake in the config file.
    Config(Failure),
}

/// Parses the arguments of this process. They override the environment, which overrides the config
/// file.
pub fn command_line() -> Result<Cli, CommandLineError> {
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
            // An invalid file must not prevent a user from reading the help or correcting the file.
            let matches = without_file().try_get_matches_from(&words);
            let parsed = matches.as_ref().map(Cli::from_arg_matches);
            let needs_file = matches!(&parsed, Ok(Ok(cli)) if needs_file(&cli.command));
            if needs_file && !is_without_file(&words) {
                return Err(CommandLineError::Config(failure));
            }
            matches
        }
    };
    let mut matches: ArgMatches = matches.map_err(CommandLineError::Clap)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(CommandLineError::Clap)
}

/// Returns a message for each `WRAITH_` variable that sets nothing.
pub fn unknown_variables() -> Vec<String> {
    let names = std::env::vars_os().map(|(name, _)| name);
    let unknown = Keys::of(&args::definition()).unknown_variables(names);
    let said = |(name, nearest): (String, Option<String>)| match nearest {
        Some(nearest) => format!("{name} in the environment sets nothing; did you mean {nearest}?"),
        None => format!("{name} in the environment sets nothing"),
    };
    unknown.into_iter().map(said).collect()
}

/// Turns off the question about new contacts for all later commands. Returns the file with the
/// setting.
pub fn never_ask_for_contacts() -> Result<PathBuf, Failure> {
    File::set(&Keys::of(&args::definition()), "no-contacts", "true")
}

/// Checks that every environment variable has a valid value.
pub fn check_environment() -> Result<(), Failure> {
    wrong_variable(|_, _| true).map_or(Ok(()), Err)
}

/// Converts clap's `message` into a failure if it concerns the value of a variable.
pub fn variable_at_fault(message: &str) -> Option<Failure> {
    wrong_variable(|option, value| {
        message.starts_with(&format!("invalid value '{value}' for '--{option}"))
    })
}

/// Returns a failure for the first variable with an invalid value whose option and value satisfy
/// `is_meant`.
fn wrong_variable(is_meant: impl Fn(&str, &str) -> bool) -> Option<Failure> {
    let keys = Keys::of(&args::definition());
    let mut faults = keys.faults_in_environment();
    let (_, variable, _, fault) = faults.find(|(option, _, value, _)| is_meant(option, value))?;
    Some(
        Failure::new(Exit::Usage, format!("{variable} in the environment: {fault}"))
            .hint("correct it or unset it; options on the command line override it"),
    )
}

/// Returns the number of settings in the file.
///
/// # Errors
/// The file is invalid.
pub fn check() -> Result<usize, Failure> {
    let file = File::load()?;
    file.check(&Keys::of(&args::definition()))?;
    Ok(file.len())
}

fn is_without_file(words: &[OsString]) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| word == NO_CONFIG)
}

/// Returns whether the command needs a valid config file. Commands that only inspect or repair the
/// setup do not.
fn needs_file(command: &Command) -> bool {
    use Command::{Completions, Config, Doctor, Man};
    !matches!(command, Config(_) | Completions(_) | Doctor(_) | Man(_))
}
