//! `cargo lab race`: wraith and common tools move the same data on this machine, in turn.
//!
//! The rules, which make the figures comparable:
//! - Warm: the source is read once before the first run and stays in the page cache; the
//!   destination is new in every run. No peer waits for the disk, except those named "on disk",
//!   which all wait. By default no peer except wraith calls fsync, and wraith runs with an option
//!   that turns it off.
//! - Interleaved: every round runs each peer once, so a slow minute of the machine affects all of
//!   them.
//! - `sync` and the removal of a destination happen between the runs, outside the timed part. Trees
//!   of many files are removed only at the end. ext4 does not reuse a freed inode for minutes, and
//!   every creation searches past all of them, so a run right after a removal would measure the
//!   removal.
//! - A run is used only if every byte of every file arrived. A peer that is missing or fails is
//!   left out, with the reason; if wraith fails, the race fails.
//! - wraith is timed from the start of `wraith send` to the end of both processes: the ticket, the
//!   handshake, the transfer, the receipt. The times of the other programs likewise include the
//!   connection and everything before it.
//! - Nothing leaves the machine: all traffic is on loopback, and peers that would look for servers
//!   run in a namespace without any.

mod chart;
pub mod crypto;
pub mod data;
mod echo;
pub mod fanout;
mod isolated;
mod memory;
mod page;
mod peers;
pub mod process;
mod results;
mod sendme;
pub mod sshd;
mod table;
mod targets;
mod tools;
mod wormhole;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use data::DataSet;
use isolated::Isolated;
use memory::Programs;
use peers::{Peer, PeerPrograms};
use process::Run;
use results::{Measure, Results, Row, Sample, Table};
use sshd::Sshd;
use tools::Tools;

/// Destinations with more files than this stay until the race is over.
const FILES_REMOVED_MAX: u64 = 100;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Run only this race
    #[command(subcommand)]
    what: Option<MemoryRace>,
    /// Number of rounds; each runs every peer once
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Rounds of peers that took longer than 10 s in the first [default: as many as the others]
    #[arg(long)]
    slow_runs: Option<usize>,
    /// Run only these parts: one file, many small files, memory to memory
    #[arg(long, value_delimiter = ',', value_parser = ["big", "small", "memory"])]
    rows: Vec<String>,
    /// Run only these contenders
    #[arg(long, value_delimiter = ',', value_parser = [
        "wraith", "cp", "scp", "rsync", "tar", "sendme", "magic-wormhole", "quinn", "raw", "iperf3",
    ])]
    only: Vec<String>,
    /// Size of the big file in bytes
    #[arg(long, default_value_t = 1_000_000_000)]
    size: u64,
    /// Number of small files
    #[arg(long, default_value_t = 20_000)]
    files: u32,
    /// MiB moved from memory to memory
    #[arg(long, default_value_t = 2048)]
    memory_mib: u64,
    /// Folder for the data, on the disk to be measured. With all peers it needs thirty times the
    /// small files and three times the big one
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Folder of sendme and magic-wormhole, beside the search path
    #[arg(long)]
    tools: Option<PathBuf>,
    /// Install sendme and magic-wormhole from their registries if they are missing (minutes)
    #[arg(long)]
    install: bool,
    /// Write the results, tables and charts into docs
    #[arg(long)]
    record: bool,
}

/// A race in memory.
#[derive(Debug, clap::Subcommand)]
enum MemoryRace {
    /// The handshake, beside TLS 1.3 with the same key agreement
    Handshake,
    /// Sessions, beside snow and vodozemac
    Sessions,
    /// Every algorithm, beside OpenSSL and openHiTLS
    Crypto(crypto::Args),
    /// Small requests over streams, beside quinn
    Echo(echo::Args),
}

/// Duration in seconds above which a contender counts as slow.
const SLOW_SECONDS: f64 = 10.0;

/// Runs the race, prints the tables, and records them if requested.
pub fn run(args: &Args) -> Result<()> {
    if let Some(what) = &args.what {
        let (package, program) = match what {
            MemoryRace::Sessions => ("wraith-sessions-race", "wraith-sessions-race"),
            MemoryRace::Handshake => ("wraith-peers", "handshakes"),
            MemoryRace::Crypto(args) => return crypto::run(args),
            MemoryRace::Echo(args) => return echo::run(args),
        };
        crate::cargo::build(crate::cargo::LAB, package, &["--bin", program])?;
        let program = crate::cargo::target().join("release").join(program);
        return crate::cargo::run(&mut Command::new(program));
    }
    let mut results = Results::new()?;
    if args.wants_row("big") || args.wants_row("small") {
        race_files(args, &mut results)?;
    }
    if args.wants_row("memory") {
        results.tables.extend(race_memory(args)?);
    }
    println!("\n{}", table::render(&results));
    results.save(&crate::cargo::target().join("race/last.json"))?;
    if args.record {
        results.save(&Results::committed())?;
        page::write(&results)?;
    }
    Ok(())
}

/// Draws tables and charts of the committed results again.
pub fn charts() -> Result<()> {
    page::write(&Results::load(&Results::committed())?)?;
    crypto::charts()
}

impl Args {
    fn wants_row(&self, row: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|name| name == row)
    }

    /// Returns whether `--only` selects the contender; its word is the first one of the name.
    fn wants(&self, contender: &str) -> bool {
        let word = contender.split([' ', ',']).next().unwrap_or(contender);
        self.only.is_empty() || self.only.iter().any(|name| name == word)
    }

    /// Returns whether a contender runs in this round, counted from 1. Its first run took `first`
    /// seconds.
    fn runs_in(&self, round: usize, first: Option<f64>) -> bool {
        let slow = first.is_some_and(|seconds| seconds > SLOW_SECONDS);
        round <= if slow { self.slow_runs.unwrap_or(self.runs) } else { self.runs }
    }
}

fn race_files(args: &Args, results: &mut Results) -> Result<()> {
    let wraith = args.wants("wraith").then(crate::cargo::build_release).transpose()?;
    let base = args.dir.clone().unwrap_or_else(|| crate::cargo::target().join("race"));
    fs::create_dir_all(&base).with_context(|| format!("cannot make {}", base.display()))?;
    let tools = args.tools.clone().unwrap_or_else(|| base.join("tools"));
    let work = tempfile::Builder::new().prefix("race-").tempdir_in(&base)?;
    let means = PeerPrograms {
        wraith,
        sshd: Sshd::start(&work.path().join("ssh")),
        isolated: Isolated::start(),
        tools: Tools::new(&tools, args.install),
        work: work.path(),
    };
    let wanted = peers::NAMES.into_iter().filter(|name| args.wants(name));
    let peers: Vec<_> = wanted.map(|name| (name, means.peer(name))).collect();
    for (name, peer) in &peers {
        if let Err(error) = peer {
            skipped(&format!("{name}: {error:#}"));
        }
    }
    for (id, set) in data_sets(args, work.path())? {
        let rows = race(args, &set, &peers, work.path())?;
        let title = title(&set);
        results.tables.push(Table { id: id.into(), title, measure: Measure::Seconds, rows });
        fs::remove_dir_all(&set.folder)?;
    }
    Ok(())
}

fn race_memory(args: &Args) -> Result<Vec<Table>> {
    crate::cargo::build(crate::cargo::WORKSPACE, "wraith-transport", &["--example", "throughput"])?;
    crate::cargo::build(crate::cargo::LAB, "wraith-peers", &[])?;
    let programs =
        Programs { release: crate::cargo::target().join("release"), bytes: args.memory_mib << 20 };
    memory::race(&programs, |family| args.wants(family), args.runs)
}

fn data_sets(args: &Args, work: &Path) -> Result<Vec<(&'static str, DataSet)>> {
    let mut sets = Vec::new();
    if args.wants_row("big") {
        eprintln!("making one file of {} bytes", args.size);
        sets.push(("big", DataSet::one_file(&work.join("big"), args.size)?));
    }
    if args.wants_row("small") {
        eprintln!("making {} small files", args.files);
        sets.push(("small", DataSet::small_files(&work.join("small"), args.files)?));
    }
    Ok(sets)
}

/// Runs all rounds over one data set. Returns a row for each peer, in order.
fn race(
    args: &Args,
    set: &DataSet,
    peers: &[(&str, Result<Peer<'_>>)],
    work: &Path,
) -> Result<Vec<Row>> {
    set.warm()?;
    let mut rows: Vec<_> = peers
        .iter()
        .map(|(name, peer)| Row {
            skipped: peer.as_ref().err().map(|error| format!("{error:#}")),
            ..Row::new(*name)
        })
        .collect();
    for round in 1..=args.runs {
        for ((name, peer), row) in peers.iter().zip(&mut rows) {
            let first = row.samples.first().map(|sample| sample.seconds);
            let Ok(peer) = peer else { continue };
            if row.skipped.is_some() || !args.runs_in(round, first) {
                continue;
            }
            match race_once(set, peer, round, work) {
                Ok(run) => {
                    eprintln!("{} round {round}: {name} {:.3} s", set.name, run.seconds);
                    row.samples.push(sample(set, run));
                }
                Err(error) if *name == "wraith" => return Err(error),
                Err(error) => {
                    skipped(&format!("{error:#}"));
                    row.skipped = Some(format!("{error:#}"));
                    row.samples.clear();
                }
            }
        }
    }
    Ok(rows)
}

fn race_once(set: &DataSet, peer: &Peer<'_>, round: usize, work: &Path) -> Result<Run> {
    let name = peer.name();
    let target = work.join(format!("target-{}-{}-{round}", set.files, name.replace(' ', "-")));
    fs::create_dir(&target)?;
    wait_until_idle()?;
    let run = peer.run(set, &target).with_context(|| format!("{name} failed"))?;
    set.verify(&target).with_context(|| format!("{name} did not copy it right"))?;
    if set.files <= FILES_REMOVED_MAX {
        fs::remove_dir_all(&target)?;
    }
    Ok(run)
}

fn sample(set: &DataSet, run: Run) -> Sample {
    let cpu_seconds = run.usage.iter().map(|(_, usage)| usage.cpu_seconds).sum();
    let peaks = run.usage.iter().filter(|(_, usage)| usage.peak_rss_bytes > 0);
    let peak_rss_bytes: BTreeMap<_, _> =
        peaks.map(|(side, usage)| ((*side).to_owned(), usage.peak_rss_bytes)).collect();
    Sample { bytes: set.bytes, seconds: run.seconds, cpu_seconds, peak_rss_bytes }
}

/// Flushes the writes of the last run, so that the next one does not pay for them.
fn wait_until_idle() -> Result<()> {
    ensure!(Command::new("sync").status()?.success(), "sync failed");
    Ok(())
}

fn skipped(what: &str) {
    eprintln!("!! SKIPPED {what}");
}

fn title(set: &DataSet) -> String {
    let megabytes = set.bytes / 1_000_000;
    match set.files {
        1 => format!("One file of {megabytes} MB"),
        files => format!("{files} small files, {megabytes} MB"),
    }
}
