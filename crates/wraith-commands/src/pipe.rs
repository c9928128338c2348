//! Standard input and output as the ends of a transfer.

use std::io::{self, IsTerminal};

use wraith::{Payload, Target};
use wraith_files::RelPath;

use crate::args::{ReceiveArgs, SendArgs};
use crate::failure::{Exit, Failure};
use crate::output::Reporter;

/// Pipe capacity in bytes: the maximum for an unprivileged user. With the usual 64 KiB, both
/// programs wait for each other four times as often.
const PIPE_BYTES: usize = 1024 * 1024;

/// Returns standard input as the payload, if the arguments name it.
pub fn source(args: &SendArgs, reporter: &Reporter) -> Result<Option<Payload>, Failure> {
    if !args.is_piped() {
        return Ok(None);
    }
    let usage = |message: &str, hint: &str| Err(Failure::new(Exit::Usage, message).hint(hint));
    if args.paths.len() > 1 {
        return usage(
            "standard input (-) cannot be combined with files",
            "send the files with a separate command",
        );
    }
    if args.receivers() != Some(1) {
        return usage(
            "standard input can be read only once, so it allows one receiver",
            "write it to a file first",
        );
    }
    let fits = RelPath::parse(args.name.as_bytes()).is_ok_and(|name| name.depth() == 1);
    if !fits {
        return usage("--name must be a single file name", "remove the folders from the name");
    }
    let stdin = io::stdin();
    if stdin.is_terminal() {
        reporter.status("Type the data to send; Ctrl-D ends it.");
    }
    widen(&stdin);
    Ok(Some(Payload::reader(args.name.clone(), None, stdin)))
}

/// Returns the target of the transfer. Refuses to write binary data to a terminal.
pub fn target(args: &ReceiveArgs, reporter: &Reporter) -> Result<Target, Failure> {
    if !args.is_piped() {
        return Ok(Target::folder(&args.out));
    }
    let stdout = io::stdout();
    if stdout.is_terminal() && !args.force {
        let message = "standard output is a terminal, and file data can disturb it";
        return Err(Failure::new(Exit::Usage, message)
            .hint("write to a program or a file: wraith receive -o - CODE | …; or use --force"));
    }
    reporter.keep_off_stdout();
    widen(&stdout);
    Ok(Target::writer(UnbufferedStdout))
}

/// Increases the capacity of a pipe.
fn widen(stream: &impl std::os::fd::AsFd) {
    // It fails if the stream is no pipe, or if this user has too many large pipes; then the
    // transfer is only slower.
    let _ = rustix::pipe::fcntl_setpipe_size(stream, PIPE_BYTES);
}

/// Standard output without the line buffer of the standard library.
struct UnbufferedStdout;

impl io::Write for UnbufferedStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(io::stdout(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
