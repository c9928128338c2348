//! `wraith config`: lists the settings with their values and sources, and changes them.

use std::fmt::Write;
use std::sync::Arc;

use super::File;
use super::file;
use super::keys::{Key, Keys};
use crate::args::{self, ConfigAction, ConfigArgs, OutputArgs};
use crate::failure::{Exit, Failure};
use crate::output::{Event, Reporter};

/// Placeholder for a secret in the list of all settings.
const HIDDEN: &str = "(hidden)";

/// The effective value of a setting.
#[derive(Debug, PartialEq, Eq)]
struct EffectiveSetting {
    key: String,
    value: Option<String>,
    source: &'static str,
    /// The environment variable, or the line of the file.
    place: Option<String>,
}

pub fn run(args: &ConfigArgs, given: OutputArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    let keys = Keys::of(&args::definition());
    match args.action.as_ref().unwrap_or(&ConfigAction::List) {
        ConfigAction::List => list(&keys, given, reporter),
        ConfigAction::Get { key } => get(&keys, key, given, reporter),
        ConfigAction::Set { key, value } => {
            let path = File::set(&keys, key, value)?;
            reporter.status(format!("{key} is set in {}.", path.display()));
            Ok(())
        }
        ConfigAction::Unset { key } => {
            let path = File::unset(key)?;
            reporter.status(format!("{key} is no longer set in {}.", path.display()));
            Ok(())
        }
        ConfigAction::Path => {
            let path = file::path().ok_or_else(|| {
                Failure::new(Exit::Other, "there is no home folder for the config file")
                    .hint("set WRAITH_HOME to a folder of your own")
            })?;
            let path = path.to_string_lossy();
            reporter.event(&Event::Config { path: &path });
            reporter.print(path.as_bytes());
            Ok(())
        }
    }
}

fn list(keys: &Keys, given: OutputArgs, reporter: &Reporter) -> Result<(), Failure> {
    let file = File::load()?;
    let all: Vec<_> = keys.iter().map(|key| listed(key, &file, given)).collect();
    for setting in &all {
        report_setting(setting, reporter);
    }
    let width = all.iter().map(|setting| setting.key.len()).max().unwrap_or(0);
    let mut text = String::new();
    for setting in &all {
        let value = setting.value.as_deref().unwrap_or("-");
        let place = setting.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        let (key, source) = (&setting.key, setting.source);
        writeln!(text, "{key:width$}  {value:<20}  {source}{place}").expect("into a String");
    }
    reporter.print(text.trim_end());
    // An invalid setting has no effective value, so it is reported.
    file.check(keys)?;
    super::check_environment()
}

/// Returns the effective value for the list. Secrets are hidden; `wraith config get` prints them.
fn listed(key: &Key, file: &File, given: OutputArgs) -> EffectiveSetting {
    let mut setting = effective(key, file, given);
    if key.is_secret() {
        setting.value = setting.value.map(|_| HIDDEN.to_owned());
    }
    setting
}

fn get(keys: &Keys, name: &str, given: OutputArgs, reporter: &Reporter) -> Result<(), Failure> {
    let file = File::load()?;
    file.check(keys)?;
    let mut all: Vec<_> = keys.named(name).map(|key| effective(key, &file, given)).collect();
    let Some(first) = all.first() else {
        let failure = Failure::new(Exit::Usage, format!("unknown key {name}"));
        return Err(match keys.nearest(name) {
            Some(nearest) => failure.hint(format!("did you mean {nearest}?")),
            None => failure.hint("wraith config lists all keys"),
        });
    };
    if all.iter().any(|setting| setting.value != first.value) {
        let names: Vec<_> = all.iter().map(|setting| setting.key.as_str()).collect();
        let message = format!("{name} has different values for different commands");
        return Err(
            Failure::new(Exit::Usage, message).hint(format!("name one of: {}", names.join(", ")))
        );
    }
    let setting = all.swap_remove(0);
    report_setting(&setting, reporter);
    reporter.print(setting.value.unwrap_or_default());
    Ok(())
}

fn report_setting(setting: &EffectiveSetting, reporter: &Reporter) {
    reporter.event(&Event::Setting {
        key: &setting.key,
        value: setting.value.as_deref(),
        source: setting.source,
        place: setting.place.as_deref(),
    });
}

fn effective(key: &Key, file: &File, given: OutputArgs) -> EffectiveSetting {
    let of = |value: Option<String>, source, place| EffectiveSetting {
        key: key.name(),
        value,
        source,
        place,
    };
    let flagged = (key.name() == "json" && given.json) || (key.name() == "quiet" && given.quiet);
    let variable = key.variable();
    let from_env = std::env::var_os(&variable).filter(|value| !value.is_empty());
    let from_file = file.value(&key.command, &key.option);
    match (from_env, from_file) {
        (None, None) if flagged => of(Some("true".into()), "flag", None),
        (Some(value), _) => {
            let place = variable.to_string_lossy().into_owned();
            of(Some(value.to_string_lossy().into_owned()), "env", Some(place))
        }
        (None, Some(setting)) => {
            of(Some(setting.value.clone()), "file", Some(format!("line {}", setting.line)))
        }
        (None, None) => of(key.default(), "default", None),
    }
}
