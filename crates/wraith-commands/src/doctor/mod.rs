//! `wraith doctor`: tests this machine and its network, and reports the consequences for transfers
//! and the remedies.
//!
//! The tests use the same code as transfers, instead of a table of guesses. Invariant: packets
//! leave this machine only for configured targets: named servers, and the DHT and the router unless
//! they are switched off.

mod clock;
mod home;
mod internet;
mod lan;
mod lifetime;
mod machine;
mod mapping;
mod nat;
mod network;
mod observer;
mod relay;

use std::io::IsTerminal;
use std::sync::Arc;

use crate::args::{DoctorArgs, version};
use crate::code::proxies;
use crate::failure::{Exit, Failure};
use crate::output::{Event, Reporter, wrap};

/// Column in which the findings start.
const BELOW: usize = 24;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Ok,
    /// Nothing to test, or the test is turned off.
    None,
    /// It works, but slower or not everywhere.
    Warn,
    /// Something cannot work.
    Fail,
}

impl Status {
    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::None => "none",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// The result of one test.
#[derive(Clone, Debug)]
struct Check {
    name: &'static str,
    status: Status,
    /// The finding.
    found: String,
    /// Its consequence for transfers.
    meaning: String,
    /// What to do; None if there is nothing to do, or no remedy.
    next: Option<String>,
}

impl Check {
    fn new(
        name: &'static str,
        status: Status,
        found: impl Into<String>,
        meaning: impl Into<String>,
    ) -> Self {
        Self { name, status, found: found.into(), meaning: meaning.into(), next: None }
    }

    fn ok(name: &'static str, found: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self::new(name, Status::Ok, found, meaning)
    }

    fn none(name: &'static str, found: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self::new(name, Status::None, found, meaning)
    }

    fn warn(name: &'static str, found: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self::new(name, Status::Warn, found, meaning)
    }

    fn fail(name: &'static str, found: impl Into<String>, meaning: impl Into<String>) -> Self {
        Self::new(name, Status::Fail, found, meaning)
    }

    fn next(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }
}

/// Runs all tests and shows each result when it is known. Fails if a test has failed.
pub async fn run(args: &DoctorArgs, reporter: &Arc<Reporter>) -> Result<(), Failure> {
    let proxies = proxies(&args.meeting)?;
    let mut failed = Vec::new();
    let mut warnings = 0;
    let mut report = |check: Check| {
        match check.status {
            Status::Ok | Status::None => {}
            Status::Warn => warnings += 1,
            Status::Fail => failed.push(check.name),
        }
        show(&check, reporter);
    };
    reporter.status(format!("wraith {}", version::long()));
    reporter.status("");
    machine::check(&mut report);
    home::check(&mut report);
    network::check(&mut report);
    lan::check(&args.meeting, &proxies, &mut report).await;
    internet::check(args, &proxies, reporter, &mut report).await;
    if failed.is_empty() {
        let seen = match warnings {
            0 => "Everything works.".to_owned(),
            1 => "Everything works; one thing could be better.".to_owned(),
            several => format!("Everything works; {several} things could be better."),
        };
        reporter.status(format!("\n{seen}"));
        return Ok(());
    }
    Err(Failure::new(Exit::Other, format!("some tests failed: {}", failed.join(", "))))
}

fn show(check: &Check, reporter: &Reporter) {
    reporter.event(&Event::Check {
        name: check.name,
        status: check.status.name(),
        found: &check.found,
        meaning: &check.meaning,
        next: check.next.as_deref(),
    });
    let mut lines = vec![format!("{:<5} {:<16}  {}", check.status.name(), check.name, check.found)];
    if !matches!(check.status, Status::Ok | Status::None) {
        let below = [Some(&check.meaning), check.next.as_ref()].into_iter().flatten();
        lines.extend(below.map(|line| format!("{:BELOW$}{line}", "")));
    }
    let columns = reporter.screen().filter(|_| std::io::stdout().is_terminal());
    let columns = columns.map_or(usize::MAX, |(columns, _)| columns);
    let lines: Vec<_> =
        lines.iter().map(|line| wrap::at_words_below(line, columns, BELOW)).collect();
    reporter.print(lines.join("\n"));
}
