//! Guesses the intent of users of other programs: a file without a command, an address, a text, a
//! path on another machine. The message names the right command.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;

use wraith::{Code, CodeError, Source};
use wraith_command_text::shell_word;

use crate::args::{continuing, crypto};
use crate::failure::{Exit, Failure};
use crate::home;

/// Names of commands that other programs have, and the commands that do the same.
const COMMANDS: &[(&[&str], &str)] = &[
    (&["version"], "wraith --version"),
    (&["push", "put", "upload", "share", "serve", "offer"], "wraith send PATH"),
    (&["pull", "download", "fetch"], "wraith receive CODE"),
    (&["ls", "list", "history"], "wraith contact list, or wraith verify --list"),
];

/// Explains a word in place of a command. `paths` are all words of the line that are no options.
pub fn command(word: &str, paths: &[OsString]) -> Option<Failure> {
    let mut commands = COMMANDS.iter().chain(crypto::FOREIGN_COMMANDS);
    if let Some((_, right)) = commands.find(|(names, _)| names.contains(&word)) {
        return Some(usage(format!("there is no command {word}"), (*right).to_owned()));
    }
    let paths: Vec<_> = paths.iter().map(std::path::PathBuf::from).collect();
    let (there, others): (Vec<_>, Vec<_>) =
        paths.iter().partition(|path| path.symlink_metadata().is_ok());
    if Path::new(word).symlink_metadata().is_ok() {
        if let [other] = &others[..]
            && of_a_remote_path(&other.to_string_lossy()).is_some()
        {
            return missing(&paths);
        }
        let kind = if Path::new(word).is_dir() { "folder" } else { "file" };
        let words: Vec<_> = there.iter().map(shell_word).collect();
        let hint = format!("to send it: wraith send {}", words.join(" "));
        return Some(usage(format!("{} is a {kind}, not a command", shown(word)), hint));
    }
    if let Some(hint) = of_an_address(word) {
        return Some(usage(
            format!("{} is not a command: wraith sends files from this machine", shown(word)),
            hint,
        ));
    }
    if let Some((host, path)) = of_a_remote_path(word).filter(|(_, path)| is_path(path)) {
        // A file of this machine beside it is the source. A folder may be the target.
        if there.iter().any(|path| path.is_file()) {
            return missing(&paths);
        }
        return Some(usage(
            format!("{} is not a command; wraith must run on both machines", shown(word)),
            sending_there(host, path),
        ));
    }
    is_code_without_number(word).then(|| without_number(word))
}

/// Explains an argument of `wraith receive` that is neither a code nor a ticket.
pub fn wanted(text: &str) -> Option<Failure> {
    if is_code_without_number(text) {
        return Some(without_number(text));
    }
    Path::new(text).symlink_metadata().ok()?;
    let hint = format!("to send it: wraith send {}", shell_word(text));
    Some(usage(format!("{} is a file, neither a code nor a ticket", shown(text)), hint))
}

/// Explains words behind a complete code or ticket, such as a folder.
pub fn behind_a_code(words: &[OsString], out: &Path) -> Option<Failure> {
    let is_wanted = |words: &[OsString]| {
        let words: Option<Vec<_>> = words.iter().map(|word| word.to_str()).collect();
        let text = words.unwrap_or_default().join(" ");
        text.parse::<Code>().is_ok() || text.parse::<Source>().is_ok()
    };
    // A code may be typed with spaces, and a longer one may begin like a shorter one.
    let end = (1..=words.len()).rev().find(|end| is_wanted(&words[..*end]))?;
    let others = &words[end..];
    if others.is_empty() || end > 1 && is_misspelt_code(words) {
        return None;
    }
    let other = shown(&others[0].to_string_lossy());
    Some(match others {
        [another, ..] if is_wanted(std::slice::from_ref(another)) => usage(
            "wraith receive takes one code or ticket".to_owned(),
            "run it once for each code; --yes accepts without asking".to_owned(),
        ),
        [dir] if out.as_os_str() == "." => usage(
            format!(
                "{other} is neither a code nor a ticket; the folder for received files needs -o"
            ),
            continuing::command_with_folder(dir),
        ),
        [_] => usage(
            format!("there are two folders for received files: {} and {other}", out.display()),
            format!("leave {other} out"),
        ),
        _ => usage(
            "words behind the code have no meaning: everything in the offer is received".to_owned(),
            "for a folder: wraith receive CODE -o DIR".to_owned(),
        ),
    })
}

/// Returns whether the last word of a code that was typed with spaces resembles a word of a longer
/// code, and is no folder here.
fn is_misspelt_code(words: &[OsString]) -> bool {
    let text: Option<Vec<_>> = words.iter().map(|word| word.to_str()).collect();
    let is_similar = match text.unwrap_or_default().join(" ").parse::<Code>() {
        Err(CodeError::UnknownWord { nearest, .. }) => !nearest.is_empty(),
        _ => false,
    };
    is_similar && words.last().is_some_and(|word| !Path::new(word).is_dir())
}

/// Explains the first missing path, if it is a code, a contact, a remote path or a text.
pub fn missing(paths: &[std::path::PathBuf]) -> Option<Failure> {
    let is_missing = |path: &&std::path::PathBuf| {
        let found = path.symlink_metadata();
        path.as_os_str() != "-" && found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
    };
    let word = paths.iter().find(is_missing)?.to_str()?;
    let others: Vec<_> =
        paths.iter().filter(|path| path.as_os_str() != word).map(shell_word).collect();
    let others = if others.is_empty() { "PATH".to_owned() } else { others.join(" ") };
    let name = shown(word);
    let (what, hint) = if let Some(hint) = of_an_address(word) {
        (format!("{name} is not a file on this machine"), hint)
    } else if word.parse::<Code>().is_ok() {
        let hint = format!(
            "to receive with it: wraith receive {word}\nto send to its creator: wraith send --code {word} {others}"
        );
        (format!("{name} is a code, not a file"), hint)
    } else if is_contact(word) {
        (format!("{name} is a contact, not a file"), format!("wraith send {others} --to {word}"))
    } else if let Some((host, path)) = of_a_remote_path(word) {
        let hint = match others.as_str() {
            "PATH" => sending_there(host, path),
            others => format!(
                "here: wraith send {others}\non {host}, with the code that it prints: wraith receive CODE{}",
                if path.is_empty() { String::new() } else { format!(" -o {}", shell_word(path)) }
            ),
        };
        (format!("{name} is not a file on this machine; wraith must run on both machines"), hint)
    } else if is_text(word) {
        let hint =
            format!("to send the text itself: printf '%s\\n' {} | wraith send -", shell_word(word));
        (format!("there is no file or folder {name}"), hint)
    } else {
        return None;
    };
    Some(usage(what, hint))
}

fn usage(message: String, hint: String) -> Failure {
    Failure::new(Exit::Usage, message).hint(hint)
}

fn shown(word: &str) -> String {
    wraith_files::shown(word.as_bytes()).to_string()
}

/// Returns advice for a URL.
fn of_an_address(word: &str) -> Option<String> {
    let (scheme, rest) = word.split_once("://")?;
    let is_scheme = scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    if !is_scheme || scheme.is_empty() || rest.is_empty() {
        return None;
    }
    Some(format!("to download and send it: curl -L {} | wraith send -", shell_word(word)))
}

/// Returns host and path of `host:/tmp` or `user@host:file`.
fn of_a_remote_path(word: &str) -> Option<(&str, &str)> {
    let (host, path) = word.split_once(':')?;
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._@".contains(c);
    (host.len() > 1 && host.chars().all(is_host)).then_some((host, path))
}

/// Returns whether it may be a path: an address has a port in its place.
fn is_path(text: &str) -> bool {
    !text.is_empty() && text.parse::<u16>().is_err()
}

/// Returns the command that sends a file of another machine. Two shells read the path.
fn sending_there(host: &str, path: &str) -> String {
    let path = if path.is_empty() { "PATH".to_owned() } else { shell_word(path) };
    let command = format!("wraith send {path}");
    let is_plain = |c: char| c.is_alphanumeric() || " -_./,+@%".contains(c);
    let command = if command.chars().all(is_plain) { command } else { shell_word(command) };
    format!("start wraith there: ssh {host} {command}")
}

/// Returns whether it looks like a text rather than a file name.
fn is_text(word: &str) -> bool {
    word.contains(char::is_whitespace) || !word.contains(['/', '.'])
}

fn is_contact(word: &str) -> bool {
    let Ok(name) = word.parse() else { return false };
    let book = home::open().ok().and_then(|state| state.contacts().load().ok());
    book.is_some_and(|book| book.named(&name).is_some())
}

/// Returns whether these are the words of a code without its number.
fn is_code_without_number(text: &str) -> bool {
    !Code::looks_like(text) && format!("1-{text}").parse::<Code>().is_ok()
}

fn without_number(text: &str) -> Failure {
    let text = text.split_whitespace().collect::<Vec<_>>().join("-");
    usage(
        "a code begins with a number, and this one has none".to_owned(),
        format!("type the whole code, as in: wraith receive 7-{text}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_distinguish_mistakes_from_similar_words() {
        assert!(of_an_address("https://example.org/x").is_some());
        for none in ["a://", "://x", "C:\\x", "7-crater-lemon", "no address://x"] {
            assert_eq!(of_an_address(none), None);
        }
        assert_eq!(of_a_remote_path("bob@host:/tmp"), Some(("bob@host", "/tmp")));
        assert_eq!(of_a_remote_path("host:"), Some(("host", "")));
        for none in ["a/b:c", ":x", "x", "C:\\x"] {
            assert_eq!(of_a_remote_path(none), None);
        }
        assert!(is_text("hello") && is_text("see you.") && !is_text("film.mov") && !is_text("a/b"));
        assert!(is_code_without_number("crater-lemon") && is_code_without_number("crater lemon"));
        assert!(!is_code_without_number("7-crater-lemon") && !is_code_without_number("film.mov"));
    }
}
