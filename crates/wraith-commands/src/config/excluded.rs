//! Settings that conflict with the command line. The command line takes precedence.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use crate::args;

/// Options of one command whose settings are ignored.
#[derive(Debug, Default)]
pub struct Excluded {
    command: String,
    options: BTreeSet<String>,
}

impl Excluded {
    pub fn contains(&self, command: &str, option: &str) -> bool {
        command == self.command && self.options.contains(option)
    }
}

/// Returns the options that conflict with these words. An invalid command line excludes nothing;
/// another place reports it.
pub fn by(words: &[OsString]) -> Excluded {
    let mut definition = args::definition().ignore_errors(true);
    definition.build();
    let Ok(matches) = definition.try_get_matches_from_mut(words) else {
        return Excluded::default();
    };
    let Some((name, given)) = matches.subcommand() else { return Excluded::default() };
    let command = definition.find_subcommand(name);
    let options = command.map(|command| of(command, given)).unwrap_or_default();
    Excluded { command: name.to_owned(), options }
}

fn of(command: &Command, given: &ArgMatches) -> BTreeSet<String> {
    let is_given = |arg: &&clap::Arg| {
        given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let excludes = |one: &clap::Arg, other: &clap::Arg| {
        command.get_arg_conflicts_with(one).iter().any(|arg| arg.get_id() == other.get_id())
    };
    let mut options = BTreeSet::new();
    for one in command.get_arguments().filter(is_given) {
        let others = command.get_arguments().filter(|other| !is_given(other));
        let excluded = others.filter(|other| excludes(one, other) || excludes(other, one));
        options.extend(excluded.filter_map(|other| other.get_long().map(str::to_owned)));
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_exclude_conflicting_settings() {
        let by = |words: &[&str]| by(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(by(&["wraith", "receive", "--dry-run", "x"]).contains("receive", "yes"));
        assert!(by(&["wraith", "receive", "-y", "x"]).contains("receive", "dry-run"));
        assert!(by(&["wraith", "send", "--to", "anna", "x"]).contains("send", "keep"));
        assert!(!by(&["wraith", "receive", "--dry-run", "-y", "x"]).contains("receive", "yes"));
        assert!(!by(&["wraith", "listen"]).contains("receive", "yes"));
        assert!(by(&["wraith", "frobnicate"]).options.is_empty());
    }
}
