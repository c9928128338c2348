//! The log: `tracing` events of all crates, for debugging. Nothing is logged unless an option asks
//! for it.
//!
//! Invariant: the [`Reporter`] writes all log lines on standard error. So a log line never splits a
//! progress drawing or another line, and no control character of a peer reaches the terminal.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex};

use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::{fmt, registry};

use super::Reporter;
use crate::args::LogArgs;
use crate::failure::Failure;

/// Starts the log that the arguments ask for.
///
/// # Errors
/// The file cannot be opened.
pub fn start(args: &LogArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    let Some(filter) = filter(args) else { return Ok(()) };
    let layer = fmt::layer().with_ansi(false);
    let layer = match &args.log {
        Some(path) => layer.with_writer(Mutex::new(open(path)?)).boxed(),
        None => layer.with_writer(LogOutput(Arc::clone(reporter))).boxed(),
    };
    let subscriber = registry().with(layer.with_filter(filter));
    tracing::subscriber::set_global_default(subscriber).expect("a program starts its log once");
    Ok(())
}

/// Returns the log filter; None without a log. A log file without a filter gets each step, because
/// its purpose is debugging.
fn filter(args: &LogArgs) -> Option<Targets> {
    if let Some(filter) = &args.log_filter {
        return Some(filter.clone());
    }
    let level = match (args.verbose, &args.log) {
        (0, None) => return None,
        (1, _) => Level::INFO,
        _ => Level::DEBUG,
    };
    Some(Targets::new().with_default(level))
}

fn open(path: &Path) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).open(path);
    // Also restricts a file that existed before.
    let private = |file: File| file.set_permissions(Permissions::from_mode(0o600)).map(|()| file);
    file.and_then(private)
        .map_err(|error| Failure::disk(format!("cannot log into {}", path.display()), &error))
}

/// Standard error, which all output shares through the reporter.
struct LogOutput(Arc<Reporter>);

/// One line of the log.
struct LogLine<'a>(&'a Reporter);

impl<'a> MakeWriter<'a> for LogOutput {
    type Writer = LogLine<'a>;

    fn make_writer(&'a self) -> LogLine<'a> {
        LogLine(&self.0)
    }
}

impl Write for LogLine<'_> {
    /// Takes a whole line, because the formatter writes whole lines.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.show(printable(&String::from_utf8_lossy(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn printable(line: &str) -> String {
    let line = line.trim_end_matches('\n');
    let mut shown = String::with_capacity(line.len());
    for c in line.chars() {
        if c.is_control() { shown.extend(c.escape_debug()) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_off_by_default() {
        assert!(filter(&LogArgs::default()).is_none());
        let level = |args: LogArgs| filter(&args).unwrap().default_level().unwrap();
        let of = |verbose| LogArgs { verbose, ..LogArgs::default() };
        assert_eq!((level(of(1)), level(of(2))), (Level::INFO.into(), Level::DEBUG.into()));
        let file = LogArgs { log: Some("x".into()), ..LogArgs::default() };
        assert_eq!(level(file), tracing::level_filters::LevelFilter::DEBUG);
        let trace = LogArgs { log_filter: Some("trace".parse().unwrap()), ..of(1) };
        assert_eq!(level(trace), tracing::level_filters::LevelFilter::TRACE);
    }

    #[test]
    fn a_line_for_the_terminal_has_no_control_characters() {
        assert_eq!(printable("a\x1b[2Jb\n"), "a\\u{1b}[2Jb");
    }
}
