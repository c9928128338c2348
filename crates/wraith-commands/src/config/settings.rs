//! The settings that count for one command line: environment variables and entries of the config
//! file.
//!
//! - The command line overrides the environment, and the environment overrides the file. An override
//!   also turns off settings that conflict with it.
//! - Two settings of the same source that conflict are an error, which names both.
//! - A setting becomes the default of its option, so it never requires another option.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use super::File;
use super::keys::{self, Key, Keys, Values};
use crate::args;
use crate::failure::{Exit, Failure};

/// The non-empty `WRAITH_` variables of the environment.
#[derive(Debug, Default)]
pub struct Variables(BTreeMap<OsString, OsString>);

impl Variables {
    /// Returns those of this process.
    pub fn of_process() -> Self {
        Self::of(std::env::vars_os())
    }

    pub fn of(variables: impl Iterator<Item = (OsString, OsString)>) -> Self {
        let is_ours = |name: &OsStr| name.as_encoded_bytes().starts_with(b"WRAITH_");
        Self(variables.filter(|(name, value)| is_ours(name) && !value.is_empty()).collect())
    }

    /// Returns the variable that sets an option, and its value.
    fn of_key(&self, key: &Key) -> Option<(OsString, &OsString)> {
        key.variables().into_iter().find_map(|name| self.0.get(&name).map(|value| (name, value)))
    }
}

/// The settings for one command line.
#[derive(Debug)]
pub struct Settings {
    /// The definition with the settings as defaults.
    pub definition: Command,
    /// A variable with an invalid value, or two variables that conflict.
    pub fault_in_environment: Option<Failure>,
    /// Two entries of the file that conflict.
    pub fault_in_file: Option<Failure>,
}

/// One setting for the command.
struct Setting<'a> {
    key: &'a Key,
    /// The variable, or the full key of the file.
    name: String,
    /// Line of the file.
    line: Option<usize>,
    /// Whether it states anything: a switch that is off does not.
    is_on: bool,
}

/// Returns the settings for these words. The file must have been checked.
pub fn of(words: &[OsString], keys: &Keys, file: &File, variables: &Variables) -> Settings {
    let given = Given::by(words);
    let mut values = Values::new();
    let mut fault_in_environment = None;
    let mut from_environment = Vec::new();
    for key in keys.iter().filter(|key| !given.overrides(key)) {
        let Some((name, value)) = variables.of_key(key) else { continue };
        let name = name.to_string_lossy().into_owned();
        if let Some(fault) = key.fault(value) {
            let failure = || super::wrong_value(&name, &fault);
            if given.has(key) {
                fault_in_environment.get_or_insert_with(failure);
            }
            continue;
        }
        values.insert((key.command.clone(), key.option.clone()), value.clone());
        if given.has(key) {
            let is_on = !key.is_switch() || keys::means_true(&value.to_string_lossy());
            from_environment.push(Setting { key, name, line: None, is_on });
        }
    }
    let mut from_file = Vec::new();
    for key in keys.iter().filter(|key| !given.overrides(key)) {
        let place = (key.command.clone(), key.option.clone());
        let Some(setting) = file.value(&key.command, &key.option) else { continue };
        let is_excluded = from_environment.iter().any(|other| {
            other.is_on && given.has(key) && given.excludes(&other.key.option, &key.option)
        });
        if is_excluded || values.contains_key(&place) {
            continue;
        }
        values.insert(place, key.with_home(&setting.value));
        if given.has(key) {
            let is_on = !key.is_switch() || keys::means_true(&setting.value);
            let (name, line) = (setting.key.clone(), Some(setting.line));
            from_file.push(Setting { key, name, line, is_on });
        }
    }
    let fault_in_environment =
        fault_in_environment.or_else(|| given.conflict(&from_environment, file));
    let fault_in_file = given.conflict(&from_file, file);
    // Only this definition prints help.
    let definition = args::examples::in_help(keys::with_values(args::definition(), &values));
    Settings { definition, fault_in_environment, fault_in_file }
}

/// The command and the options of a command line.
#[derive(Debug, Default)]
struct Given {
    /// The full name of the command, as in keys. Empty if the command line is invalid; another place
    /// reports that.
    path: String,
    command: Command,
    options: BTreeSet<String>,
}

impl Given {
    fn by(words: &[OsString]) -> Self {
        let mut definition = args::definition().ignore_errors(true);
        // This builds the commands that were named.
        let Ok(mut matches) = definition.try_get_matches_from_mut(words) else {
            return Self::default();
        };
        let (mut command, mut path) = (&definition, Vec::new());
        while let Some((name, inner)) = matches.remove_subcommand() {
            let Some(found) = command.find_subcommand(&name) else { break };
            (command, matches) = (found, inner);
            path.push(name);
        }
        let options = options(command, &matches);
        Self { path: path.join("."), command: command.clone(), options }
    }

    /// Returns whether the command has this key.
    fn has(&self, key: &Key) -> bool {
        key.command.is_empty() || key.command == self.path
    }

    /// Returns whether an option on the command line takes the place of the setting.
    fn overrides(&self, key: &Key) -> bool {
        let by = |given: &String| *given == key.option || self.excludes(given, &key.option);
        self.has(key) && self.options.iter().any(by)
    }

    /// Returns whether two options of the command conflict.
    fn excludes(&self, one: &str, other: &str) -> bool {
        let find = |name: &str| {
            self.command
                .get_arguments()
                .find(|arg| arg.get_long().unwrap_or(arg.get_id().as_str()) == name)
        };
        let (Some(one), Some(other)) = (find(one), find(other)) else { return false };
        let names = |arg: &Arg, other: &Arg| {
            let conflicts = self.command.get_arg_conflicts_with(arg);
            conflicts.iter().any(|arg| arg.get_id() == other.get_id())
        };
        names(one, other) || names(other, one)
    }

    /// Returns the failure for the first two settings that conflict.
    fn conflict(&self, settings: &[Setting<'_>], file: &File) -> Option<Failure> {
        let on: Vec<_> = settings.iter().filter(|setting| setting.is_on).collect();
        let pairs = on
            .iter()
            .enumerate()
            .flat_map(|(n, one)| on[..n].iter().map(move |other| (*other, *one)));
        let mut conflicts =
            pairs.filter(|(one, other)| self.excludes(&one.key.option, &other.key.option));
        let (one, other) = conflicts.next()?;
        // The entries of the file are named in its order.
        let (one, other) = if one.line > other.line { (other, one) } else { (one, other) };
        let both = format!("{} and {}", one.name, other.name);
        Some(match (one.line, other.line) {
            (Some(first), Some(second)) => {
                let (path, lines) = (file.path().display(), format!("lines {first} and {second}"));
                let message = format!("{path}, {lines}: {both} exclude each other");
                Failure::new(Exit::Usage, message)
                    .hint(format!("remove one of them: wraith config unset {}", other.name))
            }
            _ => {
                let message = format!("{both} in the environment exclude each other");
                Failure::new(Exit::Usage, message)
                    .hint("unset one of them; options on the command line override both")
            }
        })
    }
}

/// Returns the long names of the options that were typed, and the ids of the arguments.
fn options(command: &Command, matches: &ArgMatches) -> BTreeSet<String> {
    let is_given = |arg: &&Arg| {
        // `help` and `version` are no values.
        let source = matches.try_contains_id(arg.get_id().as_str()).ok();
        source.is_some()
            && matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let name = |arg: &Arg| arg.get_long().unwrap_or(arg.get_id().as_str()).to_owned();
    command.get_arguments().filter(is_given).map(name).collect()
}
