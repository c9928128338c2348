//! The queue of tests: how many run at once, how long each may take, and the second run of those that failed.

use std::collections::VecDeque;
use std::fs::File;
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::Pid;

use super::binaries::Case;
use super::isolation;
use super::report::Report;

/// Longest time of one test. The longest ones wait for some two minutes and have bounds of their own below this.
pub const LIMIT: Duration = Duration::from_secs(600);
/// If more tests fail than this, the fault is not chance, and none is run a second time.
const MOST_RETRIES: usize = 20;
/// How often an ended process is looked for.
const POLL: Duration = Duration::from_millis(5);

/// One run of a test.
#[derive(Debug)]
pub struct Outcome {
    pub case: Case,
    /// `None` if the test was killed at [`LIMIT`].
    pub status: Option<ExitStatus>,
    pub took: Duration,
    /// Both outputs of the test, in the order in which they were written.
    pub output: String,
}

impl Outcome {
    pub fn passed(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// How the run ended, for people.
    pub fn end(&self) -> String {
        let seconds = self.took.as_secs_f64();
        match self.status {
            None => format!("killed after {} s", LIMIT.as_secs()),
            Some(status) if status.success() => format!("passed in {seconds:.1} s"),
            Some(status) => format!("{status} after {seconds:.1} s"),
        }
    }
}

/// Runs all cases, `threads` at once. Returns the runs that failed.
pub fn all(cases: VecDeque<Case>, threads: usize, report: &mut Report) -> Result<Vec<Outcome>> {
    let namespaces = isolation::has_namespaces();
    if !namespaces {
        println!("no root: tests share this machine's network");
    }
    let queue = Mutex::new(cases);
    let (sender, outcomes) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (queue, sender) = (&queue, sender.clone());
            scope.spawn(move || {
                let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                while let Some(case) = next() {
                    if sender.send(one(case, namespaces)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut failed = Vec::new();
        for outcome in outcomes {
            let outcome = outcome?;
            report.ran(&outcome)?;
            if !outcome.passed() {
                failed.push(outcome);
            }
        }
        Ok(failed)
    })
}

/// Runs each test that failed once more, alone.
pub fn again(failed: Vec<Outcome>, no_retry: bool, report: &mut Report) -> Result<()> {
    let namespaces = isolation::has_namespaces();
    let retry = !no_retry && failed.len() <= MOST_RETRIES;
    for first in failed {
        let second = if retry { Some(one(first.case.clone(), namespaces)?) } else { None };
        report.failed(&first, second.as_ref())?;
    }
    Ok(())
}

/// Runs one test and waits for its end, at most [`LIMIT`]. Its output goes to a file: a process that outlives the test
/// would keep a pipe open.
fn one(case: Case, namespaces: bool) -> Result<Outcome> {
    let output = tempfile::NamedTempFile::new()?;
    let mut command = isolation::command(&case, namespaces);
    command.stdout(File::options().append(true).open(output.path())?);
    command.stderr(File::options().append(true).open(output.path())?);
    let started = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot run {}", case.name()))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if started.elapsed() > LIMIT {
            isolation::kill(Pid::from_child(&child), namespaces);
            child.wait()?;
            break None;
        }
        thread::sleep(POLL);
    };
    let output = String::from_utf8_lossy(&std::fs::read(output.path())?).into_owned();
    Ok(Outcome { case, status, took: started.elapsed(), output })
}
