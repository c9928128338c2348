//! Passphrases: the first line of a file, or typed at the terminal, which does not show it.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

use super::input::{Input, name};
use crate::failure::{Exit, Failure};

/// Bytes of the longest.
const BYTES_MAX: u64 = 4096;

/// Where the person sits, whatever standard input is.
const TERMINAL: &str = "/dev/tty";

/// The first line of a file.
pub fn of_file(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let all = Input::open(Some(path))?.all(BYTES_MAX)?;
    let mut line = all.ok_or_else(|| {
        Failure::new(Exit::Usage, format!("{} has more than {BYTES_MAX} bytes", name(path)))
            .hint("a passphrase is one line")
    })?;
    let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
    line.truncate(end);
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    not_empty(line)
}

/// Asks the person; twice where it is a new one.
pub fn ask(is_new: bool) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let first = not_empty(asked("Passphrase: ")?)?;
    if is_new && asked("The same once more: ")? != first {
        return Err(Failure::new(Exit::Usage, "the two passphrases are not the same"));
    }
    Ok(first)
}

fn not_empty(passphrase: Zeroizing<Vec<u8>>) -> Result<Zeroizing<Vec<u8>>, Failure> {
    match passphrase.is_empty() {
        true => Err(Failure::new(Exit::Usage, "the passphrase is empty")),
        false => Ok(passphrase),
    }
}

fn asked(question: &str) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let nobody = |_| {
        Failure::new(Exit::Usage, "there is no terminal to ask for a passphrase")
            .hint("--passphrase-file FILE reads it from a file")
    };
    let mut terminal = File::options().read(true).write(true).open(TERMINAL).map_err(nobody)?;
    let silent = Silent::begin(&terminal)
        .map_err(|error| Failure::disk("cannot ask for a passphrase", &error.into()))?;
    let failed = |error: std::io::Error| Failure::disk("cannot ask for a passphrase", &error);
    terminal.write_all(question.as_bytes()).map_err(failed)?;
    // By itself, because a reader with a buffer would not wipe it. A terminal gives at most a line at a time.
    let mut line = Zeroizing::new(vec![0; BYTES_MAX as usize]);
    let mut filled = 0;
    while filled < line.len() && !line[..filled].ends_with(b"\n") {
        match terminal.read(&mut line[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    line.truncate(filled);
    drop(silent);
    terminal.write_all(b"\n").map_err(failed)?;
    while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        line.pop();
    }
    Ok(line)
}

/// How the terminal was before it was told not to show what is typed.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The terminal shows again what is typed, if it does not.
pub fn show_again() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let (Some(before), Ok(terminal)) = (before, File::open(TERMINAL)) {
        // If it fails there is nothing else to try.
        let _ = tcsetattr(&terminal, OptionalActions::Flush, &before);
    }
}

/// A terminal that does not show what is typed, until this is dropped.
struct Silent;

impl Silent {
    fn begin(terminal: &File) -> rustix::io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(Self)
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        show_again();
    }
}
