//! Everything a command says. People read standard error; programs read one JSON event a line on standard output.
//!
//! Invariants: standard output carries nothing but what was asked for (the ticket's command, a NodeId, hashes, or JSON),
//! so it can always be piped; and what could not be written there is remembered until the end ([`Reporter::unwritten`]), so
//! that nothing is stopped by it and nothing passes for done.

mod event;
mod line;
pub mod log;
pub mod qr;
#[cfg(test)]
mod schema;
mod ticker;
pub mod wrap;

use std::io::{self, BufWriter, IsTerminal, Stderr, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use event::Event;
use event::Numbered;
pub use ticker::Ticker;

use wraith::{Bottleneck, PathKind, Progress, ProgressReader};

use crate::args::OutputArgs;
use crate::failure::Failure;

/// Between two lines of progress in a log: often enough to see that it lives, rare enough to keep the log readable.
const LOG_PACE: Duration = Duration::from_secs(10);

/// How long a terminal may take between another size and its word of it: tmux takes a quarter of a second.
const RESIZING: Duration = Duration::from_millis(400);

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// A line that is redrawn in place.
    Terminal { color: bool },
    /// A line now and then.
    Log,
    /// JSON events.
    Json,
    /// Nothing.
    Quiet,
}

/// The one writer to both outputs; shared by every thread of a command.
#[derive(Debug)]
pub struct Reporter {
    style: Style,
    inner: Mutex<Inner>,
}

struct Inner {
    out: BufWriter<Box<dyn Write + Send>>,
    /// Why something of it could not be written.
    unwritten: Option<io::Error>,
    /// The line that ends the events.
    last: Option<String>,
    err: Stderr,
    /// People read `err` on a terminal, of whatever width it has at the time.
    is_terminal: bool,
    /// Lines of progress that stand on the terminal and must be wiped before anything else is written.
    /// Their columns; in a terminal that has become narrower since, each may take several rows.
    lines_drawn: Vec<usize>,
    /// What the terminal had when it was last looked at, and when that became another.
    size: (usize, usize),
    resized: Option<Instant>,
    /// A question stands there, which no progress may overwrite.
    asking: bool,
    /// The cursor stands behind a question, on its line.
    in_line: bool,
    /// When a log last got a line of progress.
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

    /// Standard output belongs to the data from now on: what would go there goes to standard error.
    pub fn keep_off_stdout(&self) {
        let mut inner = self.lock();
        inner.print(|out| out.flush());
        inner.out = BufWriter::new(Box::new(io::stderr()));
    }

    /// An event for programs; people never see it. Events about single files are written in batches, all others at once.
    pub fn event(&self, event: &Event<'_>) {
        self.event_of(None, event);
    }

    /// The same about one of several receivers.
    pub fn event_of(&self, receiver: Option<u64>, event: &Event<'_>) {
        if self.style != Style::Json {
            return;
        }
        let mut inner = self.lock();
        inner.print(|out| {
            serde_json::to_writer(&mut *out, &Numbered { event, receiver })?;
            out.write_all(b"\n")?;
            if matches!(event, Event::File { .. }) { Ok(()) } else { out.flush() }
        });
    }

    /// The event that everything else comes before, whatever is still said: [`Self::end`] writes it.
    pub fn last_event(&self, event: &Event<'_>) {
        if self.style == Style::Json {
            let line = serde_json::to_string(&Numbered { event, receiver: None });
            self.lock().last = Some(line.expect("plain fields are JSON"));
        }
    }

    /// Nothing is said any more but how the command failed.
    pub fn end(&self) {
        let mut inner = self.lock();
        if let Some(line) = inner.last.take() {
            inner.print(|out| writeln!(out, "{line}").and_then(|()| out.flush()));
        }
    }

    /// Whether people get what [`Self::say`] says.
    pub fn says(&self) -> bool {
        matches!(self.style, Style::Terminal { .. } | Style::Log)
    }

    /// A line for people.
    pub fn say(&self, text: impl AsRef<str>) {
        if self.says() {
            self.lock().stderr_line(text.as_ref());
        }
    }

    /// Lines that a person asked for at a question, in every style.
    pub fn show(&self, text: impl AsRef<str>) {
        self.lock().stderr_line(text.as_ref());
    }

    /// A line that people get even with `-q`, because it is about something they must know.
    pub fn warn(&self, text: impl AsRef<str>) {
        if self.style != Style::Json {
            self.lock().stderr_line(&format!("wraith: {}", text.as_ref()));
        }
    }

    /// Something worth knowing, about a path or none, for people and for programs.
    pub fn note(&self, path: &str, message: &str) {
        self.event(&Event::Note { path, message });
        self.warn(message);
    }

    /// A line that was asked for, on standard output; not in JSON mode, where an event says the same.
    pub fn answer(&self, text: impl AsRef<[u8]>) {
        if self.style != Style::Json {
            let mut inner = self.lock();
            inner.wipe();
            let line = [text.as_ref(), b"\n"].concat();
            inner.print(|out| out.write_all(&line).and_then(|()| out.flush()));
        }
    }

    /// A document that was asked for, on standard output, in every style: it is what it is.
    pub fn document(&self, bytes: &[u8]) {
        self.lock().print(|out| out.write_all(bytes).and_then(|()| out.flush()));
    }

    /// The failure that it is if standard output did not take what was asked for. A reader that went away has seen enough.
    pub fn unwritten(&self) -> Result<(), Failure> {
        let mut inner = self.lock();
        // Events about files may still be on their way.
        inner.print(|out| out.flush());
        inner.unwritten.as_ref().map_or(Ok(()), |error| Err(cannot_print(error)))
    }

    /// Columns and rows, if people see a terminal.
    pub fn screen(&self) -> Option<(usize, usize)> {
        let Style::Terminal { .. } = self.style else { return None };
        let size = rustix::termios::tcgetwinsize(&self.lock().err).ok()?;
        Some((size.ws_col.into(), size.ws_row.into()))
    }

    /// Whether there is a person to ask: one who sees the terminal and can type.
    pub fn is_interactive(&self) -> bool {
        matches!(self.style, Style::Terminal { .. }) && io::stdin().is_terminal()
    }

    /// Shows a question, which no progress overwrites until [`Self::question_over`].
    pub fn show_question(&self, question: &str) {
        let mut inner = self.lock();
        inner.wipe();
        inner.asking = true;
        inner.in_line = !question.is_empty() && !question.ends_with('\n');
        let question = inner.wrapped(question);
        let _ = write!(inner.err, "{question}");
        let _ = inner.err.flush();
    }

    /// The question was answered, or need not be any more. `is_typed`: the terminal has shown the answer, with the end of the line.
    pub fn question_over(&self, is_typed: bool) {
        let mut inner = self.lock();
        inner.asking = false;
        inner.in_line &= !is_typed;
    }

    /// A line of standard input that is no terminal's. None at its end.
    pub fn read_line(&self) -> Option<String> {
        let mut line = String::new();
        matches!(io::stdin().read_line(&mut line), Ok(1..)).then(|| line.trim().to_owned())
    }

    /// How the command failed, in every style.
    pub fn failure(&self, failure: &Failure) {
        self.end();
        self.event(&Event::Error {
            code: failure.exit.name(),
            exit: failure.exit as u8,
            message: &failure.message,
            hint: failure.hint.as_deref(),
        });
        // Whoever reads the events cannot be told by them that they cannot be written.
        if self.style != Style::Json || self.lock().unwritten.is_some() {
            let mut inner = self.lock();
            inner.stderr_line(&format!("wraith: {}", failure.message));
            for line in failure.hint.iter().flat_map(|hint| hint.lines()) {
                inner.stderr_line(&format!("        {line}"));
            }
        }
    }

    /// The connection is gone and will be made again, if it can within the time.
    pub fn reconnecting(&self, message: &str, seconds_left: u64) {
        self.event(&Event::Reconnecting { message, seconds_left });
        self.say(format!("{message}\nWaiting {seconds_left} s for the other side to come back."));
    }

    /// The last state of a transfer. Programs get it too; people get it in the closing line.
    pub fn last_progress(&self, reader: &mut ProgressReader) {
        if self.style == Style::Json
            && let Some(progress) = reader.read()
        {
            self.progress(&progress);
        }
    }

    /// Shows how far the transfer is, in the way of the style.
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
            Style::Json => self.event(&progress_event(progress)),
            Style::Quiet => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Whatever a panicking thread was writing, the next line still comes out.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("asking", &self.asking).finish_non_exhaustive()
    }
}

impl Inner {
    /// Writes to standard output; what goes wrong is kept for the end.
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

    /// The text as it fits on a terminal.
    fn wrapped(&self, text: &str) -> String {
        if !self.is_terminal {
            return text.to_owned();
        }
        wrap::at_words(text, terminal_size(&self.err).0)
    }

    /// Whether the terminal has another size than a moment ago. Some move what stands on them at once and say so later: what is drawn
    /// meanwhile lands among it.
    fn is_being_resized(&mut self, size: (usize, usize)) -> bool {
        if std::mem::replace(&mut self.size, size) != size && !self.lines_drawn.is_empty() {
            self.resized = Some(Instant::now());
        }
        self.resized.is_some_and(|at| at.elapsed() < RESIZING)
    }

    /// Draws lines over those that stand there. The cursor stays in the last, so that the terminal does not scroll.
    fn draw(&mut self, lines: &[String]) {
        let mut text = self.to_first_line();
        text.push_str(&lines.join("\x1b[K\n"));
        // What is left of earlier lines below.
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

    /// What brings the cursor to where the lines begin.
    fn to_first_line(&self) -> String {
        let (columns, _) = terminal_size(&self.err);
        let rows = |line: &usize| line.div_ceil(columns).max(1);
        match self.lines_drawn.iter().map(rows).sum() {
            0 | 1 => "\r".into(),
            rows => format!("\r\x1b[{}A", rows - 1),
        }
    }
}

/// How far a transfer is, for programs.
fn progress_event(progress: &Progress) -> Event<'_> {
    Event::Progress {
        bytes: progress.bytes,
        total: progress.bytes_total,
        bytes_per_second: progress.bytes_per_second,
        eta_seconds: progress.eta_seconds(),
        files: progress.files,
        total_files: progress.files_total,
        file: &progress.current_file,
        path: progress.path.map(PathKind::name),
        bottleneck: progress.bottleneck.map(Bottleneck::name),
    }
}

/// Standard output did not take what was asked for.
pub fn cannot_print(error: &io::Error) -> Failure {
    Failure::disk("cannot write to standard output", error).hint("is the disk full?")
}

/// Columns and rows.
fn terminal_size(err: &Stderr) -> (usize, usize) {
    const USUAL: (usize, usize) = (80, 24);
    rustix::termios::tcgetwinsize(err).map_or(USUAL, |size| match (size.ws_col, size.ws_row) {
        (0, _) | (_, 0) => USUAL,
        (columns, rows) => (columns.into(), rows.into()),
    })
}
