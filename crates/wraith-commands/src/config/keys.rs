//! The config keys: the long options of all commands, as `send.timeout`, or `timeout` for every
//! command that has it.

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Arg, ArgAction};

/// Options that request an action instead of stating a preference; they are no settings.
const NO_SETTINGS: [&str; 3] = ["help", "version", "no-config"];

/// Options that name the peer or the object of a single run. As settings they would silently apply
/// to every later command, for example send its files to a contact.
const OF_ONE_COMMAND: [&str; 15] = [
    "send.to",
    "send.code",
    "send.save-as",
    "send.new",
    "send.receipt",
    "send.qlog",
    "receive.code",
    "receive.save-as",
    "receive.qlog",
    "listen.qlog",
    "verify.list",
    "verify.moved-to",
    "verify.receipt",
    "verify.by",
    "contact.add.address",
];

/// Commands whose options all belong to a single run.
const WITHOUT_SETTINGS: [&str; 2] = ["crypto", "speed"];

/// Variables that are no options. The last three belong to the build script, and cargo passes them
/// to the programs that it runs.
const OTHER_VARIABLES: [&str; 7] = [
    "WRAITH_HOME",
    "WRAITH_KERNELS",
    "WRAITH_BLESS",
    "WRAITH_PROGRAM",
    "WRAITH_COMMIT",
    "WRAITH_PROFILE",
    "WRAITH_TARGET",
];

/// Maximum number of unknown variables to name.
const UNKNOWN_MAX: usize = 8;

/// An option that can be a setting.
#[derive(Clone, Debug)]
pub struct Key {
    /// Name of the command; empty for options of all commands.
    pub command: String,
    /// The option without its dashes.
    pub option: String,
    arg: Arg,
}

impl Key {
    /// Returns the full key: `send.timeout`, or `json` for an option of all commands.
    pub fn name(&self) -> String {
        match self.command.as_str() {
            "" => self.option.clone(),
            command => format!("{command}.{}", self.option),
        }
    }

    /// Returns whether the option is a switch without a value.
    pub fn is_switch(&self) -> bool {
        is_switch(&self.arg)
    }

    /// Returns whether the value is a secret, which lists must not show.
    pub fn is_secret(&self) -> bool {
        self.arg.is_hide_env_values_set()
    }

    /// Returns clap's complaint about a value; None if it is valid.
    pub fn fault(&self, value: impl AsRef<OsStr>) -> Option<String> {
        // The probe has only the name and the parser of the option, because required and
        // conflicting options do not matter here.
        let parser = match self.is_switch() {
            true => BoolishValueParser::new().into(),
            false => self.arg.get_value_parser().clone(),
        };
        let mut probe = Arg::new("value").long(self.option.clone()).action(ArgAction::Set);
        probe = probe.value_parser(parser).allow_hyphen_values(true);
        if let Some(delimiter) = self.arg.get_value_delimiter() {
            probe = probe.action(ArgAction::Append).value_delimiter(delimiter);
        }
        if let Some(names) = self.arg.get_value_names() {
            probe = probe.value_names(names.to_vec());
        }
        let probe = clap::Command::new("wraith").no_binary_name(true).arg(probe);
        let mut word = OsString::from(format!("--{}=", self.option));
        word.push(value.as_ref());
        let error = probe.try_get_matches_from([word]).err()?;
        let text = error.render().to_string();
        // The first paragraph is the error with the possible values; the rest is advice about the
        // command line.
        let first = text.split("\n\n").next().unwrap_or(&text);
        let words = first.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(words.trim_start_matches("error: ").to_owned())
    }

    /// Returns the environment variable that sets the option: the command's own, or that of all
    /// commands if only that is set.
    pub fn variable(&self) -> OsString {
        let [own, general] = self.variables();
        if !is_set(&own) && is_set(&general) { general } else { own }
    }

    /// Returns the value of the file, with `~/` at the start of a path expanded, because no shell has
    /// done so.
    pub fn with_home(&self, value: &str) -> OsString {
        let is_path = self.arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        match (value.strip_prefix("~/"), std::env::var_os("HOME")) {
            (Some(below), Some(home)) if is_path => PathBuf::from(home).join(below).into(),
            _ => value.into(),
        }
    }

    /// Returns the command's own variable, and that of all commands with this option.
    pub fn variables(&self) -> [OsString; 2] {
        variables(&self.command, &self.option, &self.arg)
    }

    /// Returns the built-in default values, separated by spaces; None without a default.
    pub fn default(&self) -> Option<String> {
        let values = self.arg.get_default_values();
        let words: Vec<_> = values.iter().map(|value| value.to_string_lossy()).collect();
        match words.is_empty() {
            true if self.is_switch() => Some("false".into()),
            true => None,
            false => Some(words.join(" ")),
        }
    }
}

fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

fn is_setting(command: &str, arg: &Arg) -> bool {
    arg.get_long().is_some_and(|long| {
        let of = command.split('.').next().unwrap_or_default();
        let is_of_one = || OF_ONE_COMMAND.contains(&format!("{command}.{long}").as_str());
        !NO_SETTINGS.contains(&long) && !WITHOUT_SETTINGS.contains(&of) && !is_of_one()
    })
}

/// Returns the full name of an option that belongs to a single run and is therefore no setting.
pub fn of_one_command(name: &str) -> Option<&'static str> {
    let is_named = |full: &&&str| {
        let (_, option) = full.rsplit_once('.').expect("each is of a command");
        **full == name || option == name
    };
    OF_ONE_COMMAND.iter().find(is_named).copied()
}

/// Returns the variable name, such as `WRAITH_SEND_TIMEOUT`. It contains the command, because an
/// option can be a switch in one command and take a value in another.
fn variable(command: &str, option: &str) -> OsString {
    let words = ["wraith", command, option].into_iter().filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("_");
    name.replace(['-', '.'], "_").to_ascii_uppercase().into()
}

/// Returns the variable of one command's option, and that of all commands with this option. The
/// latter may have a name of its own.
fn variables(command: &str, option: &str, arg: &Arg) -> [OsString; 2] {
    let general = arg.get_env().map_or_else(|| variable("", option), OsString::from);
    match command {
        "" => [general.clone(), general],
        command => [variable(command, option), general],
    }
}

/// Returns whether the variable is set. An empty value counts as unset.
fn is_set(variable: &OsString) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// All keys.
#[derive(Debug)]
pub struct Keys(Vec<Key>);

impl Keys {
    /// Collects the keys of a definition that clap has not built yet.
    pub fn of(definition: &clap::Command) -> Self {
        let mut keys = Vec::new();
        collect(definition, "", &mut keys);
        Self(keys)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        self.0.iter()
    }

    /// Returns the variables with an invalid value, and the fault.
    pub fn faults_in_environment(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().filter_map(|key| {
            let variable = key.variable();
            let value = std::env::var_os(&variable).filter(|value| !value.is_empty())?;
            Some((variable.to_string_lossy().into_owned(), key.fault(&value)?))
        })
    }

    /// Returns the keys of a name: one for `send.timeout`, all with this option for `timeout`, none
    /// if unknown.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Key> {
        let of = move |key: &&Key| key.name() == name || key.option == name;
        self.0.iter().filter(of)
    }

    /// Returns all names that a setting may be given by.
    pub fn names(&self) -> BTreeSet<String> {
        self.0.iter().flat_map(|key| [key.name(), key.option.clone()]).collect()
    }

    /// Returns the known key that is most similar to `name`.
    pub fn nearest(&self, name: &str) -> Option<String> {
        nearest(name, self.names().into_iter())
    }

    /// Returns the `WRAITH_` variables that set nothing, each with a similar valid name.
    pub fn unknown_variables(
        &self,
        names: impl Iterator<Item = OsString>,
    ) -> Vec<(String, Option<String>)> {
        let known: BTreeSet<_> = self.0.iter().flat_map(Key::variables).collect();
        let is_ours = |name: &OsString| name.as_encoded_bytes().starts_with(b"WRAITH_");
        let is_other = |name: &OsString| {
            let text = name.to_string_lossy();
            OTHER_VARIABLES.contains(&&*text) || text.starts_with("WRAITH_TEST_")
        };
        let unknown = names.filter(|n| is_ours(n) && !known.contains(n) && !is_other(n));
        let shown = |name: OsString| {
            let name = name.to_string_lossy().into_owned();
            let near = nearest(&name, known.iter().map(|n| n.to_string_lossy().into_owned()));
            (name.escape_debug().to_string(), near)
        };
        unknown.take(UNKNOWN_MAX).map(shown).collect()
    }
}

/// Returns the known name of which `name` is a typo. One letter may be wrong, in a long name two or
/// three.
fn nearest(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let rated = known.map(|known| (strsim::osa_distance(&known, name), known));
    let best = rated.min_by_key(|(distance, _)| *distance);
    let most = (name.chars().count() / 6).max(1);
    best.filter(|(distance, _)| *distance <= most).map(|(_, known)| known)
}

fn collect(command: &clap::Command, path: &str, keys: &mut Vec<Key>) {
    for arg in command.get_arguments().filter(|arg| is_setting(path, arg)) {
        let option = arg.get_long().expect("a setting has a long name").to_owned();
        keys.push(Key { command: path.to_owned(), option, arg: arg.clone() });
    }
    for sub in command.get_subcommands() {
        collect(sub, &below(path, sub), keys);
    }
}

fn below(path: &str, sub: &clap::Command) -> String {
    match path {
        "" => sub.get_name().to_owned(),
        path => format!("{path}.{}", sub.get_name()),
    }
}

/// Values of settings, by command and option.
pub type Values = BTreeMap<(String, String), OsString>;

/// Returns the definition with these values as defaults.
pub fn with_values(definition: clap::Command, values: &Values) -> clap::Command {
    each_setting(definition, "", &|command, arg| {
        let arg = match is_switch(&arg) {
            // Users set variables to 1 and yes as often as to true.
            true => arg.value_parser(BoolishValueParser::new()),
            false => arg,
        };
        let option = arg.get_long().expect("a setting has a long name");
        match values.get(&(command.to_owned(), option.to_owned())) {
            Some(value) => {
                let is_secret = arg.is_hide_env_values_set();
                let arg = arg.default_value(value.clone()).required(false);
                arg.env(None::<&'static str>).hide_default_value(is_secret)
            }
            // A variable that does not count: it is empty, invalid, or overridden.
            None if arg.get_env().is_some_and(|name| std::env::var_os(name).is_some()) => {
                arg.env(None::<&'static str>)
            }
            None => arg,
        }
    })
}

/// Returns whether the value of a switch turns it on. The value is valid.
pub fn means_true(value: &str) -> bool {
    ["y", "yes", "t", "true", "on", "1"].contains(&value.to_ascii_lowercase().as_str())
}

fn each_setting(
    definition: clap::Command,
    path: &str,
    change: &dyn Fn(&str, Arg) -> Arg,
) -> clap::Command {
    let own =
        definition.mut_args(|arg| if is_setting(path, &arg) { change(path, arg) } else { arg });
    own.mut_subcommands(|sub| {
        let path = below(path, &sub);
        each_setting(sub, &path, change)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::of(&crate::args::definition())
    }

    #[test]
    fn every_long_option_is_a_key() {
        let names: Vec<String> = keys().iter().map(Key::name).collect();
        for name in ["json", "quiet", "send.timeout", "receive.out", "rendezvous.listen"] {
            assert!(names.contains(&name.to_owned()), "{name} is not in {names:?}");
        }
        assert!(!names.iter().any(|name| name.ends_with("no-config") || name.ends_with("help")));
        assert!(
            !names.iter().any(|name| name.starts_with("crypto.") || name.starts_with("speed."))
        );
        assert!(!names.iter().any(|name| OF_ONE_COMMAND.contains(&name.as_str())));
    }

    #[test]
    fn options_of_one_command_exist() {
        fn has(command: &clap::Command, name: &str) -> bool {
            match name.split_once('.') {
                Some((sub, rest)) => command.find_subcommand(sub).is_some_and(|sub| has(sub, rest)),
                None => command.get_arguments().any(|arg| arg.get_long() == Some(name)),
            }
        }
        let definition = crate::args::definition();
        for name in OF_ONE_COMMAND {
            assert!(has(&definition, name), "{name}");
        }
    }

    #[test]
    fn a_name_without_a_command_stands_for_all_that_have_it() {
        let keys = keys();
        let named = |name| keys.named(name).map(Key::name).collect::<Vec<_>>();
        assert_eq!(named("send.timeout"), ["send.timeout"]);
        assert!(named("timeout").len() >= 2);
        assert!(named("tiemout").is_empty());
    }

    #[test]
    fn a_misspelt_name_has_a_nearest() {
        assert_eq!(keys().nearest("send.tiemout").as_deref(), Some("send.timeout"));
        assert_eq!(keys().nearest("rendez-vous").as_deref(), Some("rendezvous"));
        for none in ["xyzzy", "sned"] {
            assert_eq!(keys().nearest(none), None);
        }
    }

    #[test]
    fn values_are_judged_by_the_parser_of_their_option() {
        let keys = keys();
        let fault = |name: &'static str, value| keys.named(name).next().unwrap().fault(value);
        assert_eq!(fault("send.timeout", "60"), None);
        assert!(fault("send.timeout", "soon").unwrap().contains("a number of seconds"));
        assert!(
            fault("send.congestion", "reno").unwrap().contains("[possible values: bbr, cubic]")
        );
        assert_eq!(fault("send.relay", "one.example,two.example:7"), None);
        assert!(fault("send.relay", "one.example,two three").unwrap().contains("'two three'"));
        assert_eq!(fault("receive.yes", "on"), None);
        assert!(fault("receive.yes", "perhaps").is_some());
        assert_eq!(fault("receive.out", "-strange name"), None);
    }

    #[test]
    fn variables_have_the_name_of_command_and_option() {
        let keys = keys();
        let variable = |name: &'static str| keys.named(name).next().unwrap().variable();
        assert_eq!(variable("receive.on-conflict"), "WRAITH_RECEIVE_ON_CONFLICT");
        assert_eq!(variable("json"), "WRAITH_JSON");
        assert_eq!(variable("send.lan"), "WRAITH_SEND_LAN");
    }
}
