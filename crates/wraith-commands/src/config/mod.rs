//! The config file and the environment: defaults for options.
//!
//! There is no list of settings. The keys are the long options of the commands, read from clap's
//! own definition ([`keys`]). A value becomes the default of its option before the command line is
//! parsed, so the parser of the option checks it. [`settings`] decides which values count.
//!
//! Invariant: every entry of the file is used or reported with file, line and key; none is ignored
//! silently.

mod command;
mod file;
mod keys;
#[cfg(test)]
mod pairs;
mod settings;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, FromArgMatches};
use wraith_crypto::Backends;

pub use command::run;
pub use file::File;
pub use keys::means_true;

use crate::args::{self, Cli, Command};
use crate::failure::{Exit, Failure};
use keys::Keys;
use settings::Variables;

/// Variable that hides instructions from the kernels, and its values (`wraith_kernels::detect`).
const KERNELS: &str = "WRAITH_KERNELS";
const LEVELS: [&str; 4] = ["off", "aesni", "avx2", "avx512"];
/// Option that ignores the config file.
const NO_CONFIG: &str = "--no-config";

/// Why there is no command to run.
#[derive(Debug)]
pub enum CommandLineError {
    /// Help, a version, or a mistake on the command line.
    Clap(clap::Error),
    /// A mistake in the config file or the environment.
    Settings(Failure),
}

/// Parses the arguments of this process. They override the environment, which overrides the config
/// file.
pub fn command_line() -> Result<Cli, CommandLineError> {
    let words = args::with_command_in_front(std::env::args_os().collect());
    let file = File::load();
    if words.iter().any(|word| word == args::VERSION) {
        choose_backends_of_version(&words, file.as_ref().ok().filter(|_| !is_without_file(&words)));
    }
    parse(words, &Keys::of(&args::definition()), file, &Variables::of_process())
}

/// Chooses the backends that the option or the config file names. The version ends the parsing
/// before any setting applies, but its text names the implementations.
fn choose_backends_of_version(words: &[OsString], file: Option<&File>) {
    let next = words.iter().skip_while(|word| *word != "--backends").nth(1);
    let joined = words.iter().find_map(|word| word.to_str()?.strip_prefix("--backends="));
    let typed = joined.or(next.and_then(|word| word.to_str()));
    let is_set = std::env::var_os("WRAITH_BACKENDS").is_some_and(|value| !value.is_empty());
    let in_file = file.filter(|_| !is_set).and_then(|file| file.value("", "backends"));
    let name = typed.or(in_file.map(|setting| setting.value.as_str()));
    if let Some(backends) = name.and_then(|name| name.parse().ok()) {
        Backends::choose(Some(backends));
    }
}

fn parse(
    words: Vec<OsString>,
    keys: &Keys,
    file: Result<File, Failure>,
    variables: &Variables,
) -> Result<Cli, CommandLineError> {
    let file = match is_without_file(&words) {
        true => Ok(File::default()),
        false => file.and_then(|file| file.check(keys).map(|()| file)),
    };
    // An invalid file must not prevent a user from reading the help or correcting the file.
    let (file, invalid) = match file {
        Ok(file) => (file, None),
        Err(failure) => (File::default(), Some(failure)),
    };
    let settings = settings::of(&words, keys, &file, variables);
    let matches = settings.definition.try_get_matches_from(words);
    let mut matches: ArgMatches = matches.map_err(CommandLineError::Clap)?;
    let cli = Cli::from_arg_matches_mut(&mut matches).map_err(CommandLineError::Clap)?;
    let in_file = invalid.filter(|_| needs_file(&cli.command)).or(settings.fault_in_file);
    match in_file.or(settings.fault_in_environment) {
        Some(failure) => Err(CommandLineError::Settings(failure)),
        None => Ok(cli),
    }
}

/// Returns the names of all settings.
pub fn names_of_settings() -> impl Iterator<Item = String> {
    Keys::of(&args::definition()).names().into_iter()
}

/// Returns a message for each `WRAITH_` variable that sets nothing, and for a wrong level of
/// kernels.
pub fn unknown_variables() -> Vec<String> {
    let names = std::env::vars_os().map(|(name, _)| name);
    let unknown = Keys::of(&args::definition()).unknown_variables(names);
    let said = |(name, nearest): (String, Option<String>)| match nearest {
        Some(nearest) => format!("{name} in the environment sets nothing; did you mean {nearest}?"),
        None => format!("{name} in the environment sets nothing"),
    };
    let level = std::env::var_os(KERNELS).filter(|level| !level.is_empty());
    let level = level.filter(|level| !LEVELS.iter().any(|each| level == each));
    let hidden = level.map(|level| {
        let (level, levels) = (level.display(), LEVELS.join(", "));
        format!("{KERNELS} has the unknown value '{level}', so wraith's vector code is off; values are {levels}")
    });
    unknown.into_iter().map(said).chain(hidden).collect()
}

/// Turns off the question about new contacts for all later commands. Returns the file with the
/// setting.
pub fn never_ask_for_contacts() -> Result<PathBuf, Failure> {
    File::set(&Keys::of(&args::definition()), "no-contacts", "true")
}

/// Checks that every environment variable has a valid value.
pub fn check_environment() -> Result<(), Failure> {
    let keys = Keys::of(&args::definition());
    let fault = keys.faults_in_environment().next();
    fault.map_or(Ok(()), |(variable, fault)| Err(wrong_value(&variable, &fault)))
}

/// Returns the failure for a variable with an invalid value.
fn wrong_value(variable: &str, fault: &str) -> Failure {
    Failure::new(Exit::Usage, format!("{variable} in the environment: {fault}"))
        .hint("correct it or unset it; options on the command line override it")
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
