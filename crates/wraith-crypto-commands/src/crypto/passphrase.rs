//! Passphrases: the first line of a file, or a line typed at the terminal without echo.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use signal_hook::consts::SIGCONT;
use signal_hook::iterator::Signals;
use zeroize::Zeroizing;

use super::input::{Input, name};
use crate::failure::{Exit, Failure};

/// Maximum length in bytes.
const BYTES_MAX: u64 = 4096;

/// The controlling terminal, independent of standard input.
const TERMINAL: &str = "/dev/tty";

/// Reads the first line of a file.
pub fn of_file(path: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let all = Input::open(Some(path))?.all(BYTES_MAX)?;
    let mut line = all.ok_or_else(|| {
        Failure::new(Exit::Usage, format!("{} is longer than {BYTES_MAX} bytes", name(path)))
            .hint("a passphrase must be one line")
    })?;
    let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
    line.truncate(end);
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    not_empty(line)
}

/// Asks for a passphrase at the terminal; twice for a new one.
pub fn ask(is_new: bool) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let first = not_empty(asked("Passphrase: ")?)?;
    if is_new && asked("Repeat the passphrase: ")? != first {
        return Err(Failure::new(Exit::Usage, "the two passphrases differ"));
    }
    Ok(first)
}

fn not_empty(passphrase: Zeroizing<Vec<u8>>) -> Result<Zeroizing<Vec<u8>>, Failure> {
    match passphrase.is_empty() {
        true => Err(Failure::new(Exit::Usage, "the passphrase is empty")),
        false => Ok(passphrase),
    }
}

fn asked(question: &'static str) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let nobody = |_| {
        Failure::new(Exit::Usage, "there is no terminal to ask for a passphrase")
            .hint("--passphrase-file FILE reads it from a file")
    };
    let mut terminal = File::options().read(true).write(true).open(TERMINAL).map_err(nobody)?;
    let failed = |error: io::Error| Failure::disk("cannot ask for a passphrase", &error);
    let silent = EchoOff::start(&terminal, question).map_err(failed)?;
    terminal.write_all(question.as_bytes()).map_err(failed)?;
    // Reads without a buffered reader, which would not wipe its buffer. A terminal returns at most
    // a line at a time.
    let mut line = Zeroizing::new(vec![0; BYTES_MAX as usize]);
    let mut filled = 0;
    while filled < line.len() && !line[..filled].ends_with(b"\n") {
        // The kernel stops a background process that reads, before it can end on the signal that
        // continued it. Polling stops no process.
        let _ = poll(&mut [PollFd::new(&terminal, PollFlags::IN)], None);
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

/// An open question at the terminal.
struct OpenPrompt {
    text: &'static str,
    /// Terminal mode before the echo was turned off.
    before: Termios,
}

static OPEN: Mutex<Option<OpenPrompt>> = Mutex::new(None);

/// Restores the echo of the terminal, if it is off.
pub fn show_again() {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let (Some(question), Ok(terminal)) = (open, File::open(TERMINAL))
        && is_ours(&terminal)
    {
        // A failure leaves nothing else to try.
        let _ = tcsetattr(&terminal, OptionalActions::Flush, &question.before);
    }
}

/// Returns whether this process is in the foreground. The kernel stops a background process that
/// changes a terminal.
fn is_ours(terminal: &File) -> bool {
    tcgetpgrp(terminal).is_ok_and(|front| front == getpgrp())
}

/// A terminal without echo. Drop restores the echo.
struct EchoOff;

impl EchoOff {
    fn start(terminal: &File, text: &'static str) -> io::Result<Self> {
        ask_again_when_continued()?;
        let before = tcgetattr(terminal)?;
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        *open = Some(OpenPrompt { text, before: before.clone() });
        // From here on, Drop restores the echo after a failure.
        drop(open);
        let silent = Self;
        hide(terminal, before)?;
        Ok(silent)
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        show_again();
    }
}

fn hide(terminal: &File, mut modes: Termios) -> io::Result<()> {
    modes.local_modes.remove(LocalModes::ECHO);
    Ok(tcsetattr(terminal, OptionalActions::Flush, &modes)?)
}

/// Installs a handler for SIGCONT. After Ctrl-Z and `fg`, the shell leaves the echo on, so it must
/// be turned off again.
fn ask_again_when_continued() -> io::Result<()> {
    static IS_HEARD: Mutex<bool> = Mutex::new(false);
    let mut is_heard = IS_HEARD.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_heard {
        let mut continued = Signals::new([SIGCONT])?;
        std::thread::spawn(move || continued.forever().for_each(|_| ask_again()));
        *is_heard = true;
    }
    Ok(())
}

fn ask_again() {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let terminal = File::options().read(true).write(true).open(TERMINAL);
    if let (Some(question), Ok(mut terminal)) = (&*open, terminal)
        && is_ours(&terminal)
        && hide(&terminal, question.before.clone()).is_ok()
    {
        // If the write fails, the user still remembers the question.
        let _ = terminal.write_all(question.text.as_bytes());
    }
}
