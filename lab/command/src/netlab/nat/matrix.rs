//! All pairs of access kinds with the real program: a relay on the internet, a sender and a
//! receiver behind their NATs, and a code.
//!
//! Each pair has a lab of its own, so no pair opens or uses up a port of another's NAT, and several
//! can run at once.

use std::collections::VecDeque;
use std::fmt::Write;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::lab::{Host, Lab, PUBLIC};
use super::profile::Profile;
use super::side::{RunContext, relay_address, relay_addresses};
use super::spent;
use super::transfer::{Job, Outcome, ProgramArgs, is_direct};
use crate::race::data::DataSet;

/// Number of files and rate: 2 MB in seven seconds, so that a path can be replaced during the
/// transfer. The files are small because progress is reported when a chunk is verified, and a chunk
/// of a large file takes most of a second at this rate.
const FILES: u32 = 160;
const RATE: &str = "300K";
/// Number of files for 50 seconds.
pub const LONG_FILES: u32 = 1200;
/// Number of files of the smoke test: 2.5 s, ten times as long as the replacement of a path takes.
const SMOKE_FILES: u32 = 60;
/// Time limit of a transfer, which takes a fraction of it.
pub const LIMIT: Duration = Duration::from_secs(90);

/// The runs of the matrix.
#[derive(Debug)]
pub struct Plan<'a> {
    pub pairs: Vec<(&'a Profile, &'a Profile)>,
    pub runs: u64,
    /// Number of pairs at once.
    pub at_once: usize,
    pub files: u32,
    /// Whether there are two relays, which learn more about a NAT than one.
    pub two_relays: bool,
}

impl<'a> Plan<'a> {
    /// All pairs of these profiles, each also with itself.
    pub fn all(profiles: &[&'a Profile], runs: u64, at_once: usize) -> Self {
        let pairs = profiles.iter().enumerate();
        let pairs = pairs.flat_map(|(n, a)| profiles[..=n].iter().map(move |b| (*a, *b)));
        Self { pairs: pairs.collect(), runs, at_once, files: FILES, two_relays: false }
    }

    /// Runs these pairs once, all at once, just long enough to replace a path.
    pub fn smoke(pairs: Vec<(&'a Profile, &'a Profile)>) -> Self {
        Self { at_once: pairs.len(), pairs, runs: 1, files: SMOKE_FILES, two_relays: false }
    }
}

/// One run of one pair.
#[derive(Debug)]
struct Run {
    sender: &'static str,
    receiver: &'static str,
    must_be_direct: bool,
    result: Result<(Outcome, Probes)>,
}

/// Packets that both sides have sent to destinations other than the relay.
#[derive(Clone, Copy, Debug)]
struct Probes {
    /// Packets until the sender reported a direct path.
    until_direct: Option<u64>,
    /// All packets, data included.
    at_end: u64,
}

/// Runs the plan and prints the tables. The error names the pairs with unexpected results.
pub fn run(stage: &RunContext, plan: &Plan<'_>) -> Result<()> {
    let set = DataSet::small_files(&stage.folder("source")?, plan.files)?;
    let todo: VecDeque<_> = (1..=plan.runs)
        .flat_map(|round| plan.pairs.iter().map(move |pair| (round, *pair)))
        .collect();
    let (todo, done) = (Mutex::new(todo), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..plan.at_once {
            scope.spawn(|| {
                while let Some((round, (a, b))) = pop(&todo) {
                    // The sides swap roles in every other run.
                    let (from, to) = if round % 2 == 0 { (b, a) } else { (a, b) };
                    let result = one(stage, plan, &set, (round, from, to));
                    let must_be_direct = from.direct_with(to) || (from.ipv6 && to.ipv6);
                    let run = Run { sender: from.name, receiver: to.name, must_be_direct, result };
                    eprintln!("{}", run.row());
                    done.lock().unwrap_or_else(PoisonError::into_inner).push(run);
                }
            });
        }
    });
    let runs = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{}", table(&runs));
    println!("{}", summary(&runs));
    let wrong: Vec<_> = runs.iter().filter_map(Run::fault).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("unexpected results:\n  {}", wrong.join("\n  "))
}

fn pop<T>(queue: &Mutex<VecDeque<T>>) -> Option<T> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

fn one(
    stage: &RunContext,
    plan: &Plan<'_>,
    set: &DataSet,
    (round, from, to): (u64, &Profile, &Profile),
) -> Result<(Outcome, Probes)> {
    let name = format!("{}-{}-{round}", from.name, to.name);
    let mut lab = Lab::new()?;
    let relays = if plan.two_relays {
        let at = |n: usize| stage.relay_at(&lab, &format!("{name}/relay{n}"), PUBLIC[n].into());
        vec![at(0)?, at(1)?]
    } else {
        vec![stage.relay(&lab, &format!("{name}/relay"))?]
    };
    let addresses = if plan.two_relays { relay_addresses() } else { relay_address() };
    let (from, to) = (lab.host_behind(from)?, lab.host_behind(to)?);
    spent::count(&from)?;
    spent::count(&to)?;
    let words = ProgramArgs { both: &["--relay", &addresses], rate: RATE };
    let job = Job { set, name, words, limit: LIMIT };
    let result = transfer(stage, &job, &from, &to);
    drop(relays);
    fs::remove_dir_all(stage.base.join(&job.name))?;
    result
}

fn transfer(
    stage: &RunContext,
    job: &Job<'_>,
    from: &Host,
    to: &Host,
) -> Result<(Outcome, Probes)> {
    let sent = || Ok::<_, anyhow::Error>(spent::so_far(from)? + spent::so_far(to)?);
    let offered = job.offer(stage, from)?;
    let mut receiver = job.receive(stage, to, &offered.code)?;
    let direct = receiver.expect("a path, or the end", job.limit, |seen| {
        is_direct(seen) || seen.is("done") || seen.is("error")
    })?;
    let until_direct = if is_direct(&direct) { Some(sent()?) } else { None };
    let outcome = job.complete(stage, offered, receiver)?;
    Ok((outcome, Probes { until_direct, at_end: sent()? }))
}

impl Run {
    /// Describes an unexpected result, if it is one.
    fn fault(&self) -> Option<String> {
        let pair = format!("{} → {}", self.sender, self.receiver);
        match &self.result {
            Err(error) => Some(format!("{pair}: failed: {error:#}")),
            Ok((found, _)) if self.must_be_direct && found.path != "direct" => {
                let why = found.why_relayed.as_deref().unwrap_or("it did not say why");
                Some(format!("{pair}: {}, not direct: {why}", found.path))
            }
            Ok((found, _)) if !["direct", "relay"].contains(&found.path.as_str()) => {
                Some(format!("{pair}: a path is {}", found.path))
            }
            Ok(_) => None,
        }
    }

    fn row(&self) -> String {
        let pair = format!("| {} | {} |", self.sender, self.receiver);
        let (found, probes) = match &self.result {
            Ok(result) => result,
            Err(error) => return format!("{pair} **failed**: {error:#} | | | | |"),
        };
        let wanted =
            if self.must_be_direct && found.path != "direct" { " (**wrong**)" } else { "" };
        let to_direct = found.to_direct.map_or_else(|| "–".to_owned(), seconds);
        let probes = match probes.until_direct {
            Some(packets) => format!("{packets}"),
            None => format!("{} in all", probes.at_end),
        };
        let first = seconds(found.first_byte);
        format!(
            "{pair} {}{wanted} | {} | {first} | {to_direct} | {probes} |",
            found.path, found.how
        )
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

fn table(runs: &[Run]) -> String {
    let mut text = "| sender | receiver | path | how | first byte | relay to direct | packets |\n\
                    |---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut rows: Vec<_> = runs.iter().map(Run::row).collect();
    rows.sort();
    for row in rows {
        let _ = writeln!(text, "{row}");
    }
    text
}

fn summary(runs: &[Run]) -> String {
    let found = || runs.iter().filter_map(|run| run.result.as_ref().ok());
    let direct = found().filter(|(found, _)| found.path == "direct").count();
    let failed = runs.len() - found().count();
    let mut text = format!(
        "{} runs: {direct} direct, {} relayed, {failed} failed",
        runs.len(),
        found().count() - direct
    );
    let first = found().map(|(found, _)| found.first_byte).collect();
    let to_direct = found().filter_map(|(found, _)| found.to_direct).collect();
    for (what, times) in [("first byte", first), ("relay to direct", to_direct)] {
        if let Ok(percentiles) = percentiles(times) {
            let _ = write!(text, "; {what} {percentiles}");
        }
    }
    text
}

/// Formats median, 95th percentile and maximum.
pub fn percentiles(mut times: Vec<Duration>) -> Result<String> {
    ensure!(!times.is_empty(), "there are no times");
    times.sort_unstable();
    let at = |share: f64| times[((times.len() as f64 * share).ceil() as usize).max(1) - 1];
    let last = times.last().context("there is at least one")?;
    Ok(format!("p50 {}, p95 {}, max {}", seconds(at(0.5)), seconds(at(0.95)), seconds(*last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_samples() {
        let times = (1..=20).map(|n| Duration::from_millis(n * 100)).collect();
        assert_eq!(percentiles(times).unwrap(), "p50 1.00 s, p95 1.90 s, max 2.00 s");
        assert!(percentiles(Vec::new()).is_err());
    }
}
