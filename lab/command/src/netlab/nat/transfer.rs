//! One transfer between two hosts by a code, with its result and timing.
//!
//! Invariant: an outcome exists only for a transfer whose every byte was compared.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::lab::Host;
use super::side::{RunContext, RunningProgram, START_TIMEOUT, TimedEvent};
use crate::race::data::DataSet;

/// Result of one transfer, as reported by the receiver.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Path at the end: `direct`, `relay` and so on.
    pub path: String,
    /// Method that produced the path.
    pub how: String,
    /// Reason for staying at a relay, in the program's words.
    pub why_relayed: Option<String>,
    /// Time from the start of `wraith receive` to the first byte of a file.
    pub first_byte: Duration,
    /// Time from the relayed connection to the first direct one; `None` if either is missing.
    pub to_direct: Option<Duration>,
    /// The event `done`.
    pub done: Value,
}

/// A sender that waits for a receiver with its code.
#[derive(Debug)]
pub struct WaitingSender {
    pub sender: RunningProgram,
    pub code: String,
}

/// Arguments of both sides, and of each.
#[derive(Clone, Copy, Debug)]
pub struct ProgramArgs<'a> {
    pub both: &'a [&'a str],
    pub rate: &'a str,
}

/// The files of a transfer, its arguments, and its time limit.
#[derive(Debug)]
pub struct Job<'a> {
    pub set: &'a DataSet,
    /// Name of the run and of its folders.
    pub name: String,
    pub words: ProgramArgs<'a>,
    pub limit: Duration,
}

impl Job<'_> {
    /// Starts the sender, and waits for its code.
    pub fn offer(&self, stage: &RunContext, host: &Host) -> Result<WaitingSender> {
        self.offer_with(stage, host, &["--no-contacts"])
    }

    /// Starts the sender with more arguments, and waits for its code.
    pub fn offer_with(
        &self,
        stage: &RunContext,
        host: &Host,
        more: &[&str],
    ) -> Result<WaitingSender> {
        let source = path_text(&self.set.source)?;
        let words =
            [&["send"], self.words.both, more, &["--rate", self.words.rate, source]].concat();
        let mut sender = stage.wraith("sender", host, &format!("{}/sender", self.name), &words)?;
        let ready = sender.expect("code", START_TIMEOUT, |seen| {
            seen.is("ready") && !seen.text("code").is_empty()
        })?;
        let code = ready.text("code").to_owned();
        Ok(WaitingSender { sender, code })
    }

    /// Starts the receiver.
    pub fn receive(&self, stage: &RunContext, host: &Host, code: &str) -> Result<RunningProgram> {
        self.receive_with(stage, host, code, &["--no-contacts"])
    }

    /// Starts the receiver with more arguments.
    pub fn receive_with(
        &self,
        stage: &RunContext,
        host: &Host,
        code: &str,
        more: &[&str],
    ) -> Result<RunningProgram> {
        let target = stage.folder(&self.target())?;
        let target = path_text(&target)?;
        let words = [&["receive"], self.words.both, more, &["--yes", "-o", target, code]].concat();
        stage.wraith("receiver", host, &format!("{}/receiver", self.name), &words)
    }

    /// Waits for both sides, and compares the received files.
    pub fn complete(
        &self,
        stage: &RunContext,
        mut offered: WaitingSender,
        receiver: RunningProgram,
    ) -> Result<Outcome> {
        let started = receiver.started;
        let received = receiver.finish(self.limit);
        let received = received.with_context(|| offered.sender.last_words())?;
        offered.sender.finish(self.limit)?;
        self.set.verify(&stage.folder(&self.target())?)?;
        outcome(started, &received)
    }

    /// Runs a whole transfer from one host to the other.
    pub fn run(&self, stage: &RunContext, from: &Host, to: &Host) -> Result<Outcome> {
        let offered = self.offer(stage, from)?;
        let receiver = self.receive(stage, to, &offered.code)?;
        self.complete(stage, offered, receiver)
    }

    fn target(&self) -> String {
        format!("{}/target", self.name)
    }
}

pub fn path_text(path: &Path) -> Result<&str> {
    path.to_str().context("a path of the lab is text")
}

/// Evaluates the events of a receiver.
pub fn outcome(started: Instant, events: &[TimedEvent]) -> Result<Outcome> {
    let paths = || events.iter().filter(|seen| seen.is("connected") || seen.is("path"));
    let last = paths().next_back().context("it never connected")?;
    let relayed = paths().find(|seen| seen.text("path") == "relay");
    let direct = paths().find(|seen| is_direct(seen));
    let to_direct = match (relayed, direct) {
        (Some(relayed), Some(direct)) => direct.at.checked_duration_since(relayed.at),
        _ => None,
    };
    let why = paths().filter_map(|seen| seen.event["message"].as_str()).next_back();
    let done = events.iter().find(|seen| seen.is("done")).context("it was never done")?;
    ensure!(done.event["failed"] == 0, "files failed: {}", done.event);
    let first_byte = first_byte(events).context("no progress was reported")?;
    Ok(Outcome {
        path: last.text("path").to_owned(),
        how: last.text("how").to_owned(),
        why_relayed: why.map(str::to_owned),
        first_byte: first_byte.at.duration_since(started),
        to_direct,
        done: done.event.clone(),
    })
}

/// Returns the first progress event with at least one byte.
pub fn first_byte(events: &[TimedEvent]) -> Option<&TimedEvent> {
    events.iter().find(|seen| has_moved(seen, 1))
}

/// Returns whether the event reports at least `bytes` bytes.
pub fn has_moved(seen: &TimedEvent, bytes: u64) -> bool {
    seen.is("progress") && seen.event["bytes"].as_u64().is_some_and(|moved| moved >= bytes)
}

/// Returns whether the event reports a path without a relay.
pub fn is_direct(seen: &TimedEvent) -> bool {
    (seen.is("connected") || seen.is("path")) && ["direct", "lan"].contains(&seen.text("path"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn events(begin: Instant, list: &[(u64, Value)]) -> Vec<TimedEvent> {
        let seen = |(ms, event): &(u64, Value)| TimedEvent {
            at: begin + Duration::from_millis(*ms),
            event: event.clone(),
        };
        list.iter().map(seen).collect()
    }

    #[test]
    fn the_time_to_direct_counts_from_the_relay() {
        let begin = Instant::now();
        let all = events(
            begin,
            &[
                (100, json!({ "event": "connected", "path": "relay", "how": "relay" })),
                (250, json!({ "event": "progress", "bytes": 0 })),
                (300, json!({ "event": "progress", "bytes": 9 })),
                (700, json!({ "event": "path", "path": "direct", "how": "punched" })),
                (900, json!({ "event": "done", "failed": 0 })),
            ],
        );
        let found = outcome(begin, &all).unwrap();
        assert_eq!((found.path.as_str(), found.how.as_str()), ("direct", "punched"));
        assert_eq!(found.first_byte, Duration::from_millis(300));
        assert_eq!(found.to_direct, Some(Duration::from_millis(600)));
    }

    #[test]
    fn runs_without_a_connection_or_with_lost_files_are_no_outcome() {
        let begin = Instant::now();
        assert!(outcome(begin, &[]).is_err());
        let all = events(
            begin,
            &[
                (1, json!({ "event": "connected", "path": "direct" })),
                (2, json!({ "event": "progress", "bytes": 9 })),
                (3, json!({ "event": "done", "failed": 1 })),
            ],
        );
        assert!(outcome(begin, &all).is_err());
    }
}
