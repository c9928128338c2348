//! All pairs of options of each command, from every source: they have one meaning, or an error names
//! both. The options come from clap's own definition, so a new one is covered at once.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};
use wraith_crypto::SecretIdentity;

use super::keys::Keys;
use super::settings::Variables;
use super::{CommandLineError, File};
use crate::args;

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Line,
    Environment,
    File,
}

/// An option with a value.
#[derive(Clone, Debug)]
struct Sample {
    long: String,
    short: Option<char>,
    value: Option<String>,
    is_global: bool,
    /// The key of the config file and the variable, if the option can be a setting.
    setting: Option<(String, OsString)>,
    /// The value as a setting, if the command line has none.
    switched_on: &'static str,
}

impl Sample {
    fn long_words(&self) -> Vec<String> {
        let name = format!("--{}", self.long);
        [name].into_iter().chain(self.value.clone()).collect()
    }

    fn short_words(&self) -> Option<Vec<String>> {
        let name = format!("-{}", self.short?);
        Some([name].into_iter().chain(self.value.clone()).collect())
    }

    /// Returns the value as a setting.
    fn text(&self) -> &str {
        self.value.as_deref().unwrap_or(self.switched_on)
    }

    fn can_be_from(&self, source: Source) -> bool {
        source == Source::Line || self.setting.is_some()
    }
}

/// A command, and the words that make its line valid.
struct Line<'a> {
    keys: &'a Keys,
    command: Vec<String>,
    rest: Vec<String>,
}

/// Options from the command line in this order, and settings.
#[derive(Clone, Debug, Default)]
struct Given {
    before: Vec<String>,
    behind: Vec<String>,
    variables: Vec<(OsString, OsString)>,
    file: Vec<(String, String)>,
}

impl Given {
    fn typed(samples: &[&Sample]) -> Self {
        let behind = samples.iter().flat_map(|sample| sample.long_words()).collect();
        Self { behind, ..Self::default() }
    }

    fn of(samples: &[(&Sample, Source)]) -> Self {
        let mut given = Self::default();
        for (sample, source) in samples {
            match (source, &sample.setting) {
                (Source::Environment, Some((_, variable))) => {
                    given.variables.push((variable.clone(), sample.text().into()));
                }
                (Source::File, Some((key, _))) => {
                    given.file.push((key.clone(), sample.text().to_owned()));
                }
                _ => given.behind.extend(sample.long_words()),
            }
        }
        given
    }
}

/// Returns the parsed command line as text, or the message of the error.
fn outcome(line: &Line<'_>, given: &Given) -> Result<String, String> {
    let parts =
        [&["wraith".to_owned()][..], &given.before, &line.command, &given.behind, &line.rest];
    let words = parts.concat().into_iter().map(OsString::from).collect();
    let words = args::with_command_in_front(words);
    let entry = |(key, value): &(String, String)| format!("{key} = '{value}'\n");
    let text: String = given.file.iter().map(entry).collect();
    let file = File::of(&text, line.keys);
    let variables = Variables::of(given.variables.iter().cloned());
    match super::parse(words.clone(), line.keys, file, &variables) {
        Ok(cli) => Ok(format!("{cli:?}")),
        Err(CommandLineError::Settings(failure)) => Err(failure.message),
        Err(CommandLineError::Clap(error)) => Err(crate::usage::failure(&error, &words).message),
    }
}

/// Returns a valid value that is not the default.
fn value(arg: &Arg) -> Option<String> {
    if matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::Count) {
        return None;
    }
    let possible = arg.get_possible_values();
    if let Some(last) = possible.last() {
        let is_default = arg.get_default_values().iter().any(|value| *value == *last.get_name());
        return Some(if is_default { &possible[0] } else { last }.get_name().to_owned());
    }
    let names = arg.get_value_names().unwrap_or_default();
    let node_id = || SecretIdentity::from_seed([1; 32]).node_id().to_string();
    Some(match names.first().map(clap::builder::Str::as_str).unwrap_or_default() {
        "TIME" => "7s".into(),
        "RATE" => "2M".into(),
        "SIZE" => "128M".into(),
        "N" => "3".into(),
        "BYTES" => "64".into(),
        "HEX" => "00".into(),
        "PORT" | "[IP:]PORT" => "7".into(),
        "IP:PORT" => "127.0.0.1:7".into(),
        "HOST[:PORT]" | "HOST:PORT" => "192.0.2.1:7".into(),
        "NODEID" => node_id(),
        "CODE" => "7-crater-lemon".into(),
        "FILTER" => "info".into(),
        "URL" => "socks5://192.0.2.1:7".into(),
        "NAME" if arg.get_long() == Some("lan") => "lo".into(),
        "NAME" | "DIR" | "FILE" | "TOKEN" => "x".into(),
        other => panic!("{arg} needs a sample for {other}"),
    })
}

/// Returns the words of each valid form of a command, without options.
fn forms(path: &str) -> Vec<Vec<String>> {
    let forms: &[&[&str]] = match path {
        "send" => &[&["film"], &["-"]],
        "receive" => &[&["7-crater-lemon"], &["--code"]],
        "verify" => &[&[], &["--receipt", "x"]],
        "contact.add" => &[&["anna", "NODEID"]],
        "contact.rename" => &[&["anna", "bob"]],
        "contact.remove" => &[&["anna"]],
        "config.get" | "config.unset" => &[&["lan"]],
        "config.set" => &[&["lan", "off"]],
        "completions" => &[&["bash"]],
        "crypto.hash" | "crypto.genkey" => &[&["SHA-256"]],
        "crypto.mac" => &[&["GMAC-AES", "-k", "x"], &["GMAC-AES"]],
        "crypto.enc" | "crypto.dec" => {
            &[&["x"], &["x", "--raw", "-a", "x", "-k", "x"], &["x", "-a", "x", "-k", "x"]]
        }
        "crypto.pub" | "crypto.rand" => &[&["7"]],
        "crypto.sign" | "crypto.kem.decapsulate" => &[&["x", "-k", "x"], &["x"]],
        "crypto.verify" => &[&["-k", "x", "-s", "x"], &["-k", "x"], &["-s", "x"]],
        "crypto.kem.encapsulate" => &[&["-k", "x", "-s", "x"], &["-k", "x"], &["-s", "x"]],
        _ => &[&[]],
    };
    let node_id = SecretIdentity::from_seed([1; 32]).node_id().to_string();
    let filled = |word: &&str| if *word == "NODEID" { node_id.clone() } else { (*word).to_owned() };
    forms.iter().map(|words| words.iter().map(filled).collect()).collect()
}

/// Calls `check` with each command, one of its forms, and two options that are valid in it; once for
/// each pair. Panics if an option is valid in no form.
fn each_pair(check: &dyn Fn(&Line<'_>, &Sample, &Sample)) {
    let mut definition = args::definition();
    let keys = Keys::of(&definition);
    definition.build();
    let mut commands: Vec<(Vec<String>, &Command)> = vec![(Vec::new(), &definition)];
    while let Some((path, command)) = commands.pop() {
        let inner = command.get_subcommands().filter(|sub| sub.get_name() != "help");
        commands.extend(inner.map(|sub| ([&path[..], &[sub.get_name().to_owned()]].concat(), sub)));
        if command.get_subcommands().next().is_some() {
            continue;
        }
        let name = path.join(".");
        let args = command.get_arguments().filter_map(|arg| sample(arg, &name, &keys));
        let samples: Vec<_> = args.collect();
        let mut checked = BTreeSet::new();
        for rest in forms(&name) {
            let line = Line { keys: &keys, command: path.clone(), rest };
            let is_valid = |sample: &Sample| outcome(&line, &Given::typed(&[sample])).is_ok();
            let valid: Vec<_> = (0..samples.len()).filter(|n| is_valid(&samples[*n])).collect();
            for (one, other) in
                valid.iter().flat_map(|one| valid.iter().map(move |other| (one, other)))
            {
                let is_global = [one, other].iter().all(|n| samples[**n].is_global);
                // Options of all commands are the same everywhere.
                if one >= other && checked.insert((*one, *other)) && (!is_global || name == "id") {
                    check(&line, &samples[*one], &samples[*other]);
                }
            }
        }
        for (n, sample) in samples.iter().enumerate() {
            assert!(checked.contains(&(n, n)), "wraith {name} --{} is in no line", sample.long);
        }
    }
}

fn sample(arg: &Arg, path: &str, keys: &Keys) -> Option<Sample> {
    let long = arg.get_long().filter(|long| !["help", "version", "no-config"].contains(long))?;
    let is_global = arg.is_global_set();
    let command = if is_global { "" } else { path };
    let key = keys.iter().find(|key| key.command == command && key.option == long);
    let [own, _] = key.map(super::keys::Key::variables).unwrap_or_default();
    let setting = key.map(|key| (key.name(), own));
    let (long, short) = (long.to_owned(), arg.get_short());
    let switched_on = if matches!(arg.get_action(), ArgAction::Count) { "1" } else { "true" };
    Some(Sample { long, short, value: value(arg), is_global, setting, switched_on })
}

/// Returns whether a message contains both words.
fn names_both(message: &str, one: &str, other: &str) -> bool {
    message.contains(one) && message.contains(other)
}

#[test]
fn two_options_have_one_meaning_or_the_error_names_both() {
    each_pair(&|line, one, other| {
        let typed = outcome(line, &Given::typed(&[one, other]));
        assert_same_in_every_form(line, one, other, &typed);
        match &typed {
            Ok(typed) => assert_settings_are_equal(line, one, other, typed),
            Err(_) => assert_the_stronger_source_wins(line, one, other),
        }
    });
}

/// Two typed options: their order, their short forms, and their place before the command.
#[track_caller]
fn assert_same_in_every_form(
    line: &Line<'_>,
    one: &Sample,
    other: &Sample,
    typed: &Result<String, String>,
) {
    let (a, b) = (one.long_words(), other.long_words());
    let behind = |words: &[&[String]]| Given { behind: words.concat(), ..Given::default() };
    let mut variants = vec![behind(&[&b, &a])];
    if let Some(short) = one.short_words() {
        variants.push(behind(&[&short, &b]));
    }
    let global = [(one, &b), (other, &a)].into_iter().find(|(sample, _)| sample.is_global);
    if let Some((global, rest)) = global {
        let (before, behind) = (global.long_words(), rest.clone());
        variants.push(Given { before, behind, ..Given::default() });
    }
    let names = [format!("--{}", one.long), format!("--{}", other.long)];
    for variant in variants {
        let is_same = match (typed, &outcome(line, &variant)) {
            (Ok(one), Ok(other)) => one == other,
            (Err(one), Err(other)) => {
                [one, other].iter().all(|said| names_both(said, &names[0], &names[1]))
            }
            _ => false,
        };
        assert!(is_same, "{:?} {variant:?}: {typed:?}", line.command);
    }
}

/// Two options that do not conflict have the same effect as settings.
#[track_caller]
fn assert_settings_are_equal(line: &Line<'_>, one: &Sample, other: &Sample, typed: &str) {
    if one.long == other.long || one.setting.is_none() {
        return;
    }
    let source = if other.setting.is_some() { Source::File } else { Source::Line };
    let given = Given::of(&[(one, Source::Environment), (other, source)]);
    let found = outcome(line, &given);
    assert_eq!(found.as_deref(), Ok(typed), "{:?} {given:?}", line.command);
}

/// Of two options that conflict, the one from the stronger source counts. From one source, the error
/// names both.
#[track_caller]
fn assert_the_stronger_source_wins(line: &Line<'_>, one: &Sample, other: &Sample) {
    use Source::{Environment, File, Line as Typed};
    for (strong, weak) in [(one, other), (other, one)] {
        for (of_strong, of_weak) in [(Typed, Environment), (Typed, File), (Environment, File)] {
            let given = Given::of(&[(strong, of_strong), (weak, of_weak)]);
            if strong.can_be_from(of_strong) && weak.can_be_from(of_weak) {
                let alone = outcome(line, &Given::typed(&[strong]));
                assert_eq!(outcome(line, &given), alone, "{:?} {given:?}", line.command);
            }
        }
    }
    let (Some((key, variable)), Some((other_key, other_variable))) = (&one.setting, &other.setting)
    else {
        return;
    };
    if one.long == other.long {
        return;
    }
    for (source, one_name, other_name) in [
        (Environment, variable.to_str().unwrap(), other_variable.to_str().unwrap()),
        (File, key, other_key),
    ] {
        let said = outcome(line, &Given::of(&[(one, source), (other, source)]));
        let is_told = said.as_ref().is_err_and(|said| names_both(said, one_name, other_name));
        assert!(is_told, "{:?} {one_name} {other_name}: {said:?}", line.command);
    }
}

#[test]
fn one_option_from_two_sources_has_the_value_of_the_stronger_one() {
    use Source::{Environment, File, Line as Typed};
    each_pair(&|line, sample, same| {
        if sample.long != same.long || sample.setting.is_none() {
            return;
        }
        let typed = outcome(line, &Given::typed(&[sample]));
        for source in [Environment, File] {
            let found = outcome(line, &Given::of(&[(sample, source)]));
            assert_eq!(found, typed, "{:?} {sample:?} {source:?}", line.command);
        }
        let Some(weak) = weaker(sample) else { return };
        for pair in [[Typed, Environment], [Typed, File], [Environment, File]] {
            let found = outcome(line, &Given::of(&[(sample, pair[0]), (&weak, pair[1])]));
            assert_eq!(found, typed, "{:?} {sample:?} {pair:?}", line.command);
        }
    });
}

/// Returns the same option with another valid value, if there is one.
fn weaker(sample: &Sample) -> Option<Sample> {
    let value = match (sample.value.as_deref(), sample.text()) {
        (None, "1") => "2",
        (None, _) => "false",
        (_, "7s") => "9m",
        (_, "2M" | "128M") => "64M",
        (_, "x") => "y",
        (_, "3") => "2",
        (_, "7") => "9",
        _ => return None,
    };
    Some(Sample { value: Some(value.to_owned()), ..sample.clone() })
}
