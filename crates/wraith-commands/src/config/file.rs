//! `config.toml`: loading, checking, and changing one setting without touching the rest.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml_edit::{Document, DocumentMut, Item, TableLike, Value};
use wraith::state::{ConfigFile, StateError, StateErrorKind, users_folder};

use super::keys::{Key, Keys, means_true, of_one_command};
use crate::failure::{Exit, Failure};
use crate::home;

/// Format version of the file, for other versions of the program; not a setting.
const VERSION: &str = "version";
/// Maximum nesting of tables. The program has two levels of commands.
const MAX_DEPTH: usize = 4;

/// The settings of the file. A missing file has none.
#[derive(Debug, Default)]
pub struct File {
    path: PathBuf,
    settings: Vec<Setting>,
}

/// One setting of the file.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The full key with its tables: `timeout`, `send.timeout`.
    pub key: String,
    pub value: String,
    /// Line number, from 1.
    pub line: usize,
}

impl File {
    /// Loads the file of this user. Does not check its keys and values.
    ///
    /// # Errors
    /// The file cannot be read, or is no TOML.
    pub fn load() -> Result<Self, Failure> {
        // Without a home there is no file. That is no error until a command needs the home.
        let Some(file) = config_file() else { return Ok(Self::default()) };
        let text = file.read().map_err(unusable)?;
        Ok(Self { settings: settings(file.path(), &text)?, path: file.path().to_owned() })
    }

    /// Parses and checks the text of a file.
    #[cfg(test)]
    pub fn of(text: &str, keys: &Keys) -> Result<Self, Failure> {
        let path = PathBuf::from("/home/config.toml");
        let file = Self { settings: settings(&path, text)?, path };
        file.check(keys).map(|()| file)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of settings.
    pub fn len(&self) -> usize {
        self.settings.len()
    }

    /// Returns the setting for an option of a command: its own, or else that of all commands.
    pub fn value(&self, command: &str, option: &str) -> Option<&Setting> {
        let find = |name: &str| self.settings.iter().find(|setting| setting.key == name);
        let own = (!command.is_empty()).then(|| find(&format!("{command}.{option}"))).flatten();
        own.or_else(|| find(option))
    }

    /// Checks that every key exists and has a valid value.
    ///
    /// # Errors
    /// The first setting that is invalid.
    pub fn check(&self, keys: &Keys) -> Result<(), Failure> {
        self.settings.iter().try_for_each(|setting| {
            let place = format!("{}, line {}", self.path.display(), setting.line);
            check(keys, &setting.key, &setting.value, &place)
        })
    }

    /// Writes a value into the file.
    ///
    /// # Errors
    /// The key or the value is invalid, or the file cannot be read or written.
    pub fn set(keys: &Keys, name: &str, value: &str) -> Result<PathBuf, Failure> {
        check(keys, name, value, "the command line")?;
        let is_switch = keys.named(name).any(Key::is_switch);
        change(|path, document| put(path, document, name, typed(value, is_switch)))
    }

    /// Removes a value from the file. The key may be unknown.
    ///
    /// # Errors
    /// The value is not there, or the file cannot be read or written.
    pub fn unset(name: &str) -> Result<PathBuf, Failure> {
        change(|path, document| take(path, document, name))
    }
}

/// Changes the text of the file, and keeps its comments and order. A file that is not valid is left
/// unchanged, and the error names the place.
fn change(
    change: impl FnOnce(&Path, &mut DocumentMut) -> Result<(), Failure>,
) -> Result<PathBuf, Failure> {
    let file = home_file()?;
    let path = file.path();
    file.read().map_err(unusable)?;
    file.change(|text| {
        settings(path, text)?;
        let parsed = text.parse();
        let mut document: DocumentMut =
            parsed.map_err(|error: toml_edit::TomlError| wrong(path, error.message()))?;
        change(path, &mut document)?;
        Ok::<_, Failure>(document.to_string())
    })?;
    Ok(path.to_owned())
}

fn put(path: &Path, document: &mut DocumentMut, name: &str, mut new: Value) -> Result<(), Failure> {
    let (tables, option) = split(name);
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in tables {
        let inner = table.entry(name).or_insert_with(toml_edit::table);
        table = inner
            .as_table_like_mut()
            .ok_or_else(|| wrong(path, &format!("{name} is a value, not a table")))?;
    }
    match table.get_mut(option) {
        // Keep the comments around the old value.
        Some(Item::Value(old)) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        Some(Item::Table(_) | Item::ArrayOfTables(_)) => {
            let advice = "set it for each command instead, as in send.KEY";
            let message =
                format!("{option} is a table here, and its settings would be lost; {advice}");
            return Err(wrong(path, &message));
        }
        _ => {
            table.insert(option, Item::Value(new));
        }
    }
    Ok(())
}

fn take(path: &Path, document: &mut DocumentMut, name: &str) -> Result<(), Failure> {
    let (tables, option) = split(name);
    let mut table: Option<&mut dyn TableLike> = Some(document.as_table_mut());
    for name in tables {
        table = table.and_then(|t| t.get_mut(name)).and_then(Item::as_table_like_mut);
    }
    if table.and_then(|table| table.remove(option)).is_none() {
        let missing = format!("{name} is not set in {}", path.display());
        return Err(Failure::new(Exit::Usage, missing)
            .hint("wraith config list shows all settings and their sources"));
    }
    Ok(())
}

/// Returns the path of the file, which need not exist; None without a home.
pub fn path() -> Option<PathBuf> {
    config_file().map(|file| file.path().to_owned())
}

fn check(keys: &Keys, name: &str, value: &str, place: &str) -> Result<(), Failure> {
    let mut known = false;
    for key in keys.named(name) {
        known = true;
        if let Some(fault) = key.fault(value) {
            let failure = Failure::new(Exit::Usage, format!("{place}: key {name}: {fault}"));
            let more = keys.named(name).nth(1).is_some();
            let hint = match more {
                true => format!(
                    "{name} applies to all commands; this error comes from wraith {}",
                    key.command
                ),
                false if key.command.is_empty() => "wraith --help describes its values".into(),
                false => format!("wraith help {} describes its values", key.command),
            };
            return Err(failure.hint(hint.trim_end().to_owned()));
        }
    }
    if known {
        return Ok(());
    }
    if let Some(full) = of_one_command(name) {
        let (command, option) = full.rsplit_once('.').expect("each is of a command");
        let command = command.replace('.', " ");
        let what = format!("{place}: {name} belongs to a single run and is not a setting");
        let hint = format!("use it on the command line: wraith {command} --{option}");
        return Err(Failure::new(Exit::Usage, what).hint(hint));
    }
    let failure = Failure::new(Exit::Usage, format!("{place}: unknown key {name}"));
    Err(match keys.nearest(name) {
        Some(nearest) => failure.hint(format!("did you mean {nearest}? wraith config lists all")),
        None => failure.hint("wraith config lists all keys"),
    })
}

/// Splits a key: `send.timeout` is the option `timeout` in the table `send`.
fn split(name: &str) -> (impl Iterator<Item = &str>, &str) {
    let (tables, option) = name.rsplit_once('.').unwrap_or(("", name));
    (tables.split('.').filter(|name| !name.is_empty()), option)
}

/// Returns the value as a person would write it. It reads back as the same text.
fn typed(value: &str, is_switch: bool) -> Value {
    if is_switch {
        // The caller has checked that it is a boolean.
        return means_true(value).into();
    }
    match value.parse::<i64>() {
        Ok(number) if number.to_string() == value => number.into(),
        _ => value.into(),
    }
}

/// Returns the config file of this user; None without a home.
fn config_file() -> Option<ConfigFile> {
    users_folder().map(|folder| ConfigFile::in_folder(&folder))
}

fn home_file() -> Result<ConfigFile, Failure> {
    let state = home::open()?;
    Ok(ConfigFile::in_folder(state.folder().expect("a user's state is in a folder")))
}

/// An invalid config file is the user's mistake, so it exits like an invalid option.
fn unusable(error: StateError) -> Failure {
    let is_mistake = error.kind() == StateErrorKind::Damaged;
    let failure = Failure::from(error);
    if is_mistake { Failure { exit: Exit::Usage, ..failure } } else { failure }
}

fn wrong(path: &Path, what: &str) -> Failure {
    Failure::new(Exit::Usage, format!("{}: {what}", path.display()))
}

fn line_of(text: &str, span: Option<Range<usize>>) -> usize {
    let before = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
    before.matches('\n').count() + 1
}

fn settings(path: &Path, text: &str) -> Result<Vec<Setting>, Failure> {
    let document = Document::parse(text).map_err(|error| {
        let line = line_of(text, error.span());
        wrong(path, &format!("line {line}: {}", error.message().replace('\n', ", ")))
            .hint("the format is TOML, as in: timeout = 60")
    })?;
    let mut settings = Vec::new();
    gather(path, text, document.as_table(), "", 0, &mut settings)?;
    Ok(settings)
}

fn gather(
    path: &Path,
    text: &str,
    table: &dyn TableLike,
    prefix: &str,
    depth: usize,
    settings: &mut Vec<Setting>,
) -> Result<(), Failure> {
    for (name, item) in table.iter() {
        let span = table.key(name).and_then(|key| key.span()).or_else(|| item.span());
        let line = line_of(text, span);
        if depth == 0 && name == VERSION && item.is_integer() {
            continue;
        }
        let key = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        if let Some(inner) = item.as_table_like().filter(|_| depth < MAX_DEPTH) {
            gather(path, text, inner, &key, depth + 1, settings)?;
            continue;
        }
        let value = match item.as_value() {
            Some(Value::String(value)) => value.value().clone(),
            Some(Value::Integer(value)) => value.value().to_string(),
            Some(Value::Boolean(value)) => value.value().to_string(),
            _ => {
                let what = format!("line {line}: key {key}: not a text, number, true or false");
                return Err(wrong(path, &what));
            }
        };
        settings.push(Setting { key, value, line });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::of(&crate::args::definition())
    }

    fn file(text: &str) -> Result<File, Failure> {
        File::of(text, &keys())
    }

    #[test]
    fn a_setting_of_one_command_overrides_the_common_one() {
        let file = file("timeout = 5\n[send]\ntimeout = 7\n").unwrap();
        assert_eq!(file.value("send", "timeout").unwrap().value, "7");
        assert_eq!(file.value("receive", "timeout").unwrap().value, "5");
        assert!(file.value("receive", "out").is_none());
    }

    #[test]
    fn a_config_mistake_is_reported_with_file_line_and_key() {
        let fault = |text| file(text).unwrap_err();
        let unknown = fault("# mine\n\n[send]\ntiemout = 7\n");
        assert_eq!(unknown.message, "/home/config.toml, line 4: unknown key send.tiemout");
        assert!(unknown.hint.unwrap().contains("send.timeout"));
        let bad = fault("json = true\nsend.timeout = \"soon\"\n");
        assert!(bad.message.starts_with("/home/config.toml, line 2: key send.timeout: "));
        let list = fault("lan = [1]\n");
        assert!(list.message.contains("line 1: key lan: not a text"), "{}", list.message);
        let broken = fault("json = true\nquiet = \n");
        assert!(broken.message.starts_with("/home/config.toml: line 2: "), "{}", broken.message);
        assert!(fault("json = 7").message.contains("line 1: key json"));
    }

    #[test]
    fn deep_tables_are_no_way_to_the_end_of_the_stack() {
        let deep = format!("{}1{}", "a={".repeat(5000), "}".repeat(5000));
        assert!(file(&format!("x={deep}")).is_err());
    }

    #[test]
    fn values_are_written_as_people_write_them() {
        let text = |value: Value| value.to_string().trim().to_owned();
        assert_eq!(text(typed("60", false)), "60");
        assert_eq!(text(typed("007", false)), "\"007\"");
        assert_eq!(text(typed("on", true)), "true");
        assert_eq!(text(typed("all", false)), "\"all\"");
    }
}
