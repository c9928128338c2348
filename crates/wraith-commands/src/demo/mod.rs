//! `wraith demo`: a real transfer on this machine, between two processes of this program, with an
//! independent check.
//!
//! Invariant: it succeeds only if every byte, name, mode, time and link at the receiver matches the
//! source. The comparison shares no code with the transfer's own verification.

mod compare;
mod data;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use std::{fs, io, thread};

use serde_json::Value;
use wraith::Progress;
use wraith_command_text::units::{Bytes, Files};
use wraith_crypto::Backends;

use crate::args::DemoArgs;
use crate::failure::{Exit, Failure, plain};
use crate::output::{Event, Reporter};
use crate::signals::{Signals, blocking};
use data::DataAmount;

/// The processes of the demonstration, which a signal must end.
type Children = Arc<Mutex<Vec<Child>>>;

/// Makes data, transfers it, compares it, copies it with cp, and cleans up.
pub async fn run(args: &DemoArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    let children = Children::default();
    let signals = Signals::for_transfer(reporter)?;
    let (own, theirs) = ((args.clone(), Arc::clone(reporter)), Arc::clone(&children));
    let stop = signals.clone();
    let mut work = std::pin::pin!(blocking(move || demonstrate(&own.0, &own.1, &theirs, &stop)));
    let result = tokio::select! {
        result = &mut work => result,
        _ = signals.wait() => {
            kill(&children);
            work.await
        }
    };
    kill(&children);
    match signals.caught() {
        Some(exit) if result.is_err() => Err(Failure::new(exit, "stopped")),
        _ => result,
    }
}

fn demonstrate(
    args: &DemoArgs,
    reporter: &Arc<Reporter>,
    children: &Children,
    signals: &Signals,
) -> Result<(), Failure> {
    let parent = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new()
        .prefix("wraith-demo-")
        .tempdir_in(&parent)
        .map_err(|e| Failure::disk(format!("cannot make a folder in {}", parent.display()), &e))?;
    enough_space(folder.path(), args)?;
    let at = |name: &str| folder.path().join(name);
    let (source, received, copied) = (at("source"), at("received"), at("copied"));
    let (size, files) = (Bytes(args.size.0), Files(args.files.into()));
    reporter.status(format!("Making one file of {size} and {files} more."));
    let made = data::make(&source, args.size.0, args.files, &|| signals.caught().is_some())
        .map_err(|e| Failure::disk("cannot make the test data", &e))?;

    sync_disks();
    reporter.status(
        "Transferring between two processes over UDP on 127.0.0.1, encrypted and verified.",
    );
    let transfer = Transfer { folder: folder.path(), reporter, children };
    let seconds = transfer.run(&source, &received)?;

    reporter.status("Comparing every byte, name, mode, time and link.");
    let differences = compare::trees(&source, &received.join("source"))
        .map_err(|e| Failure::disk("cannot compare", &e))?;
    fs::remove_dir_all(&received).map_err(|e| Failure::disk("cannot clean up", &e))?;
    if let Some(first) = differences.first() {
        let count = differences.len();
        return Err(Failure::new(
            Exit::Verification,
            format!("{count} differences, first: {first}"),
        ));
    }
    sync_disks();
    let cp_seconds = copy(&source, &copied)?;
    show(reporter, &made, seconds, cp_seconds);
    Ok(())
}

/// Checks the free space for the source and one copy at a time.
fn enough_space(folder: &Path, args: &DemoArgs) -> Result<(), Failure> {
    let needed = 2 * data::bytes_needed(args.size.0, args.files);
    let Ok(stat) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free >= needed {
        return Ok(());
    }
    let (needed, free, folder) = (Bytes(needed), Bytes(free), folder.display());
    let message = format!("{folder} needs {needed} of free space, and has {free}");
    Err(Failure::new(Exit::Disk, message)
        .hint("--size makes the data smaller, --dir uses another folder"))
}

/// Flushes pending writes, so that they do not slow down the next step.
fn sync_disks() {
    rustix::fs::sync();
}

/// A transfer between two processes.
struct Transfer<'a> {
    folder: &'a Path,
    reporter: &'a Reporter,
    children: &'a Children,
}

impl Transfer<'_> {
    /// Runs the transfer. Returns the seconds from the start of the sender to the end of both.
    fn run(&self, source: &Path, target: &Path) -> Result<f64, Failure> {
        let failed = |e: io::Error| Failure::new(Exit::Other, format!("cannot run: {}", plain(&e)));
        let start = Instant::now();
        let mut sender = self.command("sender").map_err(failed)?;
        sender.args(["send", "--json", "--ticket", "--listen", "127.0.0.1:0"]).arg(source);
        let mut sent = Events::of(self.spawn(&mut sender).map_err(failed)?);
        let ready = sent.wait_for("ready")?;
        let ticket = ready["ticket"].as_str().unwrap_or_default().to_owned();

        let mut receiver = self.command("receiver").map_err(failed)?;
        receiver.args(["receive", "--json", "--yes", &ticket, "-o"]).arg(target);
        let mut received = Events::of(self.spawn(&mut receiver).map_err(failed)?);
        // Both outputs are read to the end all the time, because a process with a full output pipe
        // stops.
        let sent = thread::spawn(move || sent.drain());
        while let Some(event) = received.next()? {
            if event["event"] == "progress" {
                self.reporter.progress(&progress(&event));
            }
        }
        sent.join().expect("the thread that reads events does not panic")?;
        self.all_succeeded()?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Returns a command of this program with a home of its own.
    fn command(&self, side: &str) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.env("WRAITH_HOME", self.folder.join(side));
        // Both sides are on this machine.
        command.envs([("WRAITH_DHT", "off"), ("WRAITH_PORT_MAPPING", "off")]);
        if let Some(backends) = Backends::chosen() {
            command.env("WRAITH_BACKENDS", backends.name());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Ok(command)
    }

    fn spawn(&self, command: &mut Command) -> io::Result<std::process::ChildStdout> {
        let mut child = command.spawn()?;
        let out = child.stdout.take().expect("standard output was asked for");
        self.children.lock().unwrap_or_else(PoisonError::into_inner).push(child);
        Ok(out)
    }

    fn all_succeeded(&self) -> Result<(), Failure> {
        for mut child in self.children.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let status =
                child.wait().map_err(|e| Failure::disk("cannot wait for a process", &e))?;
            if !status.success() {
                return Err(Failure::new(Exit::Other, format!("a process exited with {status}")));
            }
        }
        Ok(())
    }
}

/// The JSON events of a process.
struct Events(io::Lines<io::BufReader<std::process::ChildStdout>>);

impl Events {
    fn of(out: std::process::ChildStdout) -> Self {
        Self(io::BufRead::lines(io::BufReader::new(out)))
    }

    /// Returns the next event; None at the end. An `error` event becomes a failure.
    fn next(&mut self) -> Result<Option<Value>, Failure> {
        let Some(Ok(line)) = self.0.next() else { return Ok(None) };
        let event: Value = serde_json::from_str(&line)
            .map_err(|e| Failure::new(Exit::Other, format!("invalid event ({e}): {line}")))?;
        if event["event"] == "error" {
            let message = event["message"].as_str().unwrap_or("no reason given");
            return Err(Failure::new(Exit::Other, format!("the transfer failed: {message}")));
        }
        Ok(Some(event))
    }

    fn drain(mut self) -> Result<(), Failure> {
        while self.next()?.is_some() {}
        Ok(())
    }

    fn wait_for(&mut self, kind: &str) -> Result<Value, Failure> {
        while let Some(event) = self.next()? {
            if event["event"] == kind {
                return Ok(event);
            }
        }
        Err(Failure::new(Exit::Other, format!("a process ended without the event {kind}")))
    }
}

fn progress(event: &Value) -> Progress {
    let number = |field: &str| event[field].as_u64().unwrap_or_default();
    let mut progress = Progress::default();
    progress.bytes = number("bytes");
    progress.bytes_total = number("total");
    progress.files = number("files");
    progress.files_total = number("total_files");
    progress.bytes_per_second = number("bytes_per_second");
    progress.current_file = event["file"].as_str().unwrap_or_default().to_owned();
    progress
}

/// Copies with `cp -a`, which preserves the same metadata. Returns the seconds.
fn copy(source: &Path, target: &PathBuf) -> Result<f64, Failure> {
    let start = Instant::now();
    let copied = Command::new("cp").arg("-a").arg(source).arg(target).status();
    match copied {
        Ok(status) if status.success() => Ok(start.elapsed().as_secs_f64()),
        Ok(status) => Err(Failure::new(Exit::Other, format!("cp exited with {status}"))),
        Err(error) => Err(Failure::disk("cannot run cp", &error)),
    }
}

fn show(reporter: &Reporter, made: &DataAmount, seconds: f64, cp_seconds: f64) {
    let rate = |seconds: f64| (made.bytes as f64 / seconds) as u64;
    reporter.event(&Event::Demo {
        bytes: made.bytes,
        files: made.files,
        seconds,
        bytes_per_second: rate(seconds),
        cp_seconds,
        cp_bytes_per_second: rate(cp_seconds),
        matched: true,
    });
    let (bytes, files) = (Bytes(made.bytes), Files(made.files));
    let line = |who: &str, seconds: f64| {
        format!("{who:<8}{seconds:>8.3} s  {:>9}/s", Bytes(rate(seconds)).to_string())
    };
    reporter.print(format!(
        "{bytes} in {files}, all identical\n{}\n{}  (no network, no encryption, no verification)\nwraith takes {:.2} times as long as cp",
        line("wraith", seconds),
        line("cp -a", cp_seconds),
        seconds / cp_seconds,
    ));
}

/// Kills the remaining processes.
fn kill(children: &Children) {
    for child in children.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
        let _ = child.kill();
        let _ = child.wait();
    }
}
