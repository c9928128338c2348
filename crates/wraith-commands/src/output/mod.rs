//! All output of a command. People read standard error; programs read standard output, with one
//! JSON event per line.
//!
//! Invariants:
//!
//! - Standard output carries only the requested result (the ticket's command, a NodeId, hashes, or
//!   JSON), so it can always be piped.
//! - A failed write to standard output does not stop the command. The error is kept
//!   ([`Reporter::unwritten`]) and fails the command at its end.

mod event;
mod line;
pub mod log;
pub mod qr;
#[cfg(all(test, feature = "crypto"))]
mod schema;
mod ticker;
pub mod wrap;

use std::io::{self, BufWriter, IsTerminal, Stderr, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use event::Event;
use event::NumberedEvent;
pub use ticker::Ticker;

use serde::Serialize;
use wraith::{Progress, ProgressReader, json};

use crate::args::OutputArgs;
use crate::failure::Failure;

/// Interval between progress lines in a log: often enough as a sign of life, rare enough to keep
/// the log readable.
const LOG_PACE: Duration = Duration::from_secs(10);

/// Longest delay between a resize and the terminal's report of it; tmux takes a quarter of a
/// second.
const RESIZING: Duration = Duration::from_millis(400);

/// The output style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// A progress line that is redrawn in place.
    Terminal { color: bool },
    /// A progress line every [`LOG_PACE`].
    Log,
    /// JSON events.
    Json,
    /// No output.
    Quiet,
}

/// The single writer to standard output and standard error, shared by all threads of a command.
#[derive(Debug)]
pub struct Reporter {
    style: Style,
    inner: Mutex<Inner>,
}

struct Inner {
    out: BufWriter<Box<dyn Write + Send>>,
    /// The first error of a write to `out`.
    unwritten: Option<io::Error>,
    /// The event to write last.
    last: Option<String>,
    err: Stderr,
    /// Whether `err` is a terminal. Its width may change at any time.
    is_terminal: bool,
    /// Widths of the progress lines on the terminal, in columns. They must be wiped before any
    /// other output. If the terminal has become narrower, a line may take several rows.
    lines_drawn: Vec<usize>,
    /// Size of the terminal at the last check, and the time of the last change.
    size: (usize, usize),
    resized: Option<Instant>,
    /// Whether a question is on the terminal. Progress must not overwrite it.
    asking: bool,
    /// Whether the cursor is on the line of a question, behind it.
    in_line: bool,
    /// Time of the last progress line in a log.
    last_log: Instant,
}

impl Reporter {
    pub fn new(args: OutputArgs) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let style = if args.json {
            Style::Json
        } else if args.quiet {
            Style::Quiet
        } else if io::stderr().is_terminal() && !dumb {
            let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
            Style::Terminal { color: !no_color }
        } else {
            Style::Log
        };
        let inner = Inner {
            out: BufWriter::with_capacity(64 << 10, Box::new(io::stdout())),
            unwritten: None,
            last: None,
            err: io::stderr(),
            is_terminal: io::stderr().is_terminal(),
            lines_drawn: Vec::new(),
            size: (0, 0),
            resized: None,
            asking: false,
            in_line: false,
            last_log: Instant::now(),
        };
        Self { style, inner: Mutex::new(inner) }
    }

    /// Redirects all later output from standard output to standard error, because standard output
    /// carries the data.
    pub fn keep_off_stdout(&self) {
        let mut inner = self.lock();
        inner.print(|out| out.flush());
        inner.out = BufWriter::new(Box::new(io::stderr()));
    }

    /// Returns whether the output is JSON events.
    pub fn is_json(&self) -> bool {
        self.style == Style::Json
    }

    /// Writes an event for programs; other styles ignore it.
    pub fn event(&self, event: &impl Serialize) {
        self.write_event(None, event, true);
    }

    /// Reports an event of a transfer, if there is one: to programs as it is, and to people if it
    /// is a notice or a lost connection. `receiver` is one of several. Events about single files
    /// are written in batches, all others at once.
    pub fn transfer_event(&self, receiver: Option<u64>, event: Option<&json::Event>) {
        match event {
            Some(event) if self.is_json() => {
                self.write_event(receiver, event, !matches!(event, json::Event::File { .. }));
            }
            Some(json::Event::Note { message, .. }) => self.warn(message),
            Some(json::Event::Reconnecting { message, seconds_left }) => self.status(format!(
                "{message}\nWaiting {seconds_left} s for the other side to come back."
            )),
            _ => {}
        }
    }

    /// Writes an event of this or another crate. `flushes`: it is written at once.
    pub fn write_event(&self, receiver: Option<u64>, event: &impl Serialize, flushes: bool) {
        if self.style != Style::Json {
            return;
        }
        let mut inner = self.lock();
        inner.print(|out| {
            serde_json::to_writer(&mut *out, &NumberedEvent { event, receiver })?;
            out.write_all(b"\n")?;
            if flushes { out.flush() } else { Ok(()) }
        });
    }

    /// Sets the last event. [`Self::end`] writes it behind all other events.
    pub fn last_event(&self, event: &json::Event) {
        if self.style == Style::Json {
            let line = serde_json::to_string(&NumberedEvent { event, receiver: None });
            self.lock().last = Some(line.expect("plain fields are JSON"));
        }
    }

    /// Ends the output. Only the failure of the command may follow.
    pub fn end(&self) {
        let mut inner = self.lock();
        if let Some(line) = inner.last.take() {
            inner.print(|out| writeln!(out, "{line}").and_then(|()| out.flush()));
        }
    }

    /// Returns whether [`Self::status`] shows anything.
    pub fn shows_status(&self) -> bool {
        matches!(self.style, Style::Terminal { .. } | Style::Log)
    }

    /// Shows a line to people.
    pub fn status(&self, text: impl AsRef<str>) {
        if self.shows_status() {
            self.lock().stderr_line(text.as_ref());
        }
    }

    /// Shows lines in every style, because a person asked for them at a question.
    pub fn show(&self, text: impl AsRef<str>) {
        self.lock().stderr_line(text.as_ref());
    }

    /// Shows an important line to people, even with `-q`.
    pub fn warn(&self, text: impl AsRef<str>) {
        if self.style != Style::Json {
            self.lock().stderr_line(&format!("wraith: {}", text.as_ref()));
        }
    }

    /// Reports a notice to people and to programs, with or without a path.
    pub fn note(&self, path: &str, message: &str) {
        let (path, text) = (path.to_owned().into(), message.to_owned().into());
        self.event(&json::Event::Note { path, message: text });
        self.warn(message);
    }

    /// Reports a file to hash that cannot be read. `path` is as named on the command line.
    pub fn unreadable(&self, path: &str, message: &str) {
        self.event(&Event::HashFailed { path, message });
        self.warn(message);
    }

    /// Prints a requested line on standard output. In JSON mode an event carries it instead.
    pub fn print(&self, text: impl AsRef<[u8]>) {
        if self.style != Style::Json {
            let mut inner = self.lock();
            inner.wipe();
            let line = [text.as_ref(), b"\n"].concat();
            inner.print(|out| out.write_all(&line).and_then(|()| out.flush()));
        }
    }

    /// Prints a requested document on standard output, unchanged in every style.
    pub fn document(&self, bytes: &[u8]) {
        self.lock().print(|out| out.write_all(bytes).and_then(|()| out.flush()));
    }

    /// Returns the failure if a write to standard output failed. A reader that closed the pipe is
    /// no failure.
    pub fn unwritten(&self) -> Result<(), Failure> {
        let mut inner = self.lock();
        // Events about files may still be in the buffer.
        inner.print(|out| out.flush());
        inner.unwritten.as_ref().map_or(Ok(()), |error| Err(cannot_print(error)))
    }

    /// Returns columns and rows if the output goes to a terminal.
    pub fn screen(&self) -> Option<(usize, usize)> {
        let Style::Terminal { .. } = self.style else { return None };
        let size = rustix::termios::tcgetwinsize(&self.lock().err).ok()?;
        Some((size.ws_col.into(), size.ws_row.into()))
    }

    /// Returns whether a person can answer: standard error is a terminal with a drawing style, and
    /// standard input is one too.
    pub fn is_interactive(&self) -> bool {
        matches!(self.style, Style::Terminal { .. }) && io::stdin().is_terminal()
    }

    /// Shows a question. Progress does not overwrite it until [`Self::question_over`].
    pub fn show_question(&self, question: &str) {
        let mut inner = self.lock();
        inner.wipe();
        inner.asking = true;
        inner.in_line = !question.is_empty() && !question.ends_with('\n');
        let question = inner.wrapped(question);
        let _ = write!(inner.err, "{question}");
        let _ = inner.err.flush();
    }

    /// Ends a question, answered or withdrawn. `is_typed`: the terminal has echoed the answer and
    /// its line end.
    pub fn question_over(&self, is_typed: bool) {
        let mut inner = self.lock();
        inner.asking = false;
        inner.in_line &= !is_typed;
    }

    /// Reads a line from standard input that is not a terminal. Returns None at the end of input.
    pub fn read_line(&self) -> Option<String> {
        let mut line = String::new();
        matches!(io::stdin().read_line(&mut line), Ok(1..)).then(|| line.trim().to_owned())
    }

    /// Reports the failure of the command, in every style.
    pub fn failure(&self, failure: &Failure) {
        self.end();
        self.event(&Event::Error {
            code: failure.exit.name(),
            exit: failure.exit as u8,
            message: &failure.message,
            hint: failure.hint.as_deref(),
        });
        // If events cannot be written, the reader of the events cannot get this one either.
        if self.style != Style::Json || self.lock().unwritten.is_some() {
            let mut inner = self.lock();
            inner.stderr_line(&format!("wraith: {}", failure.message));
            for line in failure.hint.iter().flat_map(|hint| hint.lines()) {
                inner.stderr_line(&format!("        {line}"));
            }
        }
    }

    /// Reports the final progress to programs. People get it in the closing line.
    pub fn last_progress(&self, reader: &mut ProgressReader) {
        if self.style == Style::Json
            && let Some(progress) = reader.read()
        {
            self.progress(&progress);
        }
    }

    /// Shows the progress of the transfer in the current style.
    pub fn progress(&self, progress: &Progress) {
        match self.style {
            Style::Terminal { color } => {
                let mut inner = self.lock();
                if inner.asking {
                    return;
                }
                let (columns, rows) = terminal_size(&inner.err);
                if inner.is_being_resized((columns, rows)) {
                    return;
                }
                inner.draw(&line::lines(progress, columns, rows, color));
            }
            Style::Log => {
                let mut inner = self.lock();
                if !progress.is_waiting && inner.last_log.elapsed() >= LOG_PACE {
                    inner.last_log = Instant::now();
                    inner.stderr_line(&line::plain(progress));
                }
            }
            Style::Json => self.event(&json::Event::from(progress)),
            Style::Quiet => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The next line is valid even if a thread panicked while writing.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("asking", &self.asking).finish_non_exhaustive()
    }
}

impl Inner {
    /// Writes to standard output, and keeps an error for the end.
    fn print(
        &mut self,
        write: impl FnOnce(&mut BufWriter<Box<dyn Write + Send>>) -> io::Result<()>,
    ) {
        match write(&mut self.out) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                self.unwritten.get_or_insert(error);
            }
            _ => {}
        }
    }

    fn stderr_line(&mut self, text: &str) {
        self.wipe();
        if std::mem::take(&mut self.in_line) {
            let _ = writeln!(self.err);
        }
        let text = self.wrapped(text);
        let _ = writeln!(self.err, "{text}");
    }

    /// Wraps the text to the width of the terminal.
    fn wrapped(&self, text: &str) -> String {
        if !self.is_terminal {
            return text.to_owned();
        }
        wrap::at_words(text, terminal_size(&self.err).0)
    }

    /// Returns whether the terminal was resized a moment ago. Some terminals reflow their content
    /// at once and report the size later; lines drawn in between would mix with it.
    fn is_being_resized(&mut self, size: (usize, usize)) -> bool {
        if std::mem::replace(&mut self.size, size) != size && !self.lines_drawn.is_empty() {
            self.resized = Some(Instant::now());
        }
        self.resized.is_some_and(|at| at.elapsed() < RESIZING)
    }

    /// Draws lines over the previous ones. The cursor stays in the last line, so that the terminal
    /// does not scroll.
    fn draw(&mut self, lines: &[String]) {
        let mut text = self.to_first_line();
        text.push_str(&lines.join("\x1b[K\n"));
        // Erases the remains of earlier lines below.
        text.push_str("\x1b[J");
        let _ = self.err.write_all(text.as_bytes());
        let _ = self.err.flush();
        self.lines_drawn = lines.iter().map(|line| line::columns(line)).collect();
    }

    fn wipe(&mut self) {
        if !self.lines_drawn.is_empty() {
            let _ = write!(self.err, "{}\x1b[J", self.to_first_line());
            self.lines_drawn.clear();
        }
    }

    /// Returns the escape sequence that moves the cursor to the first drawn line.
    fn to_first_line(&self) -> String {
        let (columns, _) = terminal_size(&self.err);
        let rows = |line: &usize| line.div_ceil(columns).max(1);
        match self.lines_drawn.iter().map(rows).sum() {
            0 | 1 => "\r".into(),
            rows => format!("\r\x1b[{}A", rows - 1),
        }
    }
}

/// Builds the failure for an error of standard output.
pub fn cannot_print(error: &io::Error) -> Failure {
    Failure::disk("cannot write to standard output", error).hint("is the disk full?")
}

/// Returns columns and rows of the terminal.
fn terminal_size(err: &Stderr) -> (usize, usize) {
    const USUAL: (usize, usize) = (80, 24);
    rustix::termios::tcgetwinsize(err).map_or(USUAL, |size| match (size.ws_col, size.ws_row) {
        (0, _) | (_, 0) => USUAL,
        (columns, rows) => (columns.into(), rows.into()),
    })
}
