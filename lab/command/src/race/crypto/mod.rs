//! `cargo lab race crypto`: every algorithm beside `openssl speed`, and beside the benchmark
//! programs of openHiTLS in C and in Rust if their paths are given.
//!
//! The rows are in one table ([`contests`]); [`contenders`] runs each program and reads its output.
//! The rules:
//! - Rounds are interleaved. Rows of one family are a batch. A round runs each contender over the
//!   batch, with one time slice for each row. The next round, and the next batch, start with
//!   another contender. The median of the rounds counts. A slow-starting program is started once
//!   for a batch.
//! - All contenders do the same operation on texts of the same length. The other work within the
//!   measured time differs between the programs; the page describes it.
//! - A contender that lacks the row, is missing or fails is left out of the row. If wraith fails,
//!   the race fails.
//! - No row is omitted silently: a table lists the rows that the suite lacks, with reasons.

mod contenders;
mod contests;
mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::results::{Machine, Spread, portable};
use contenders::Programs;
use contests::Contest;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of rounds; each runs every contender once
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Seconds for each row, contender and round; OpenSSL counts in whole seconds
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Run only rows with one of these words in their name
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// Path of openhitls_benchmark, the program of the C library
    #[arg(long, value_name = "PROGRAM")]
    openhitls: Option<PathBuf>,
    /// Path of the benchmark program of openhitls-rs (its crypto_bench)
    #[arg(long, value_name = "PROGRAM")]
    openhitls_rs: Option<PathBuf>,
    /// Version of openHiTLS, which its program does not print
    #[arg(long, value_name = "TEXT", requires = "openhitls")]
    openhitls_version: Option<String>,
    /// Version of openhitls-rs
    #[arg(long, value_name = "TEXT", requires = "openhitls_rs")]
    openhitls_rs_version: Option<String>,
    /// Path of the wraith program, instead of a new build
    #[arg(long, value_name = "PROGRAM")]
    wraith: Option<PathBuf>,
    /// Write the results, the table and the chart into docs
    #[arg(long)]
    record: bool,
}

/// One race.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Results {
    command: String,
    date: String,
    machine: Machine,
    /// Processor features that wraith's algorithms use.
    #[serde(default)]
    processor: String,
    /// Version of each contender, if it is known.
    versions: BTreeMap<String, String>,
    rows: Vec<Row>,
}

/// One operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    name: String,
    /// Length of the text, if the row has one.
    bytes: Option<u64>,
    /// Backend that computes it in wraith.
    backend: String,
    /// Work within wraith's measured time.
    scope: String,
    /// Operations a second in each round, by contender.
    samples: BTreeMap<String, Vec<f64>>,
}

impl Row {
    fn median(&self, contender: &str) -> Option<f64> {
        Spread::of(self.samples.get(contender)?.iter().copied()).map(|spread| spread.median)
    }

    /// Speed-up of wraith over the contender.
    fn ratio(&self, contender: &str) -> Option<f64> {
        Some(self.median(contenders::WRAITH)? / self.median(contender)?)
    }
}

pub fn run(args: &Args) -> Result<()> {
    ensure!(args.runs > 0 && args.seconds > 0.0, "a race has rounds, and they take time");
    let wraith = args.wraith.clone().map_or_else(crate::cargo::build_release, Ok)?;
    let programs = Programs::new(&wraith, args.openhitls.as_deref(), args.openhitls_rs.as_deref())?;
    let is_wanted = |contest: &Contest| {
        let name = contest.row.to_lowercase();
        args.rows.is_empty() || args.rows.iter().any(|word| name.contains(&word.to_lowercase()))
    };
    let contests: Vec<_> = contests::all().into_iter().filter(is_wanted).collect();
    ensure!(!contests.is_empty(), "no row has such a name");
    let mut versions = programs.versions();
    for (name, told) in [
        (contenders::OPENHITLS, &args.openhitls_version),
        (contenders::OPENHITLS_RS, &args.openhitls_rs_version),
    ] {
        versions.extend(told.iter().map(|told| (name.to_owned(), format!("{name} {told}"))));
    }
    let mut results = Results {
        command: format!("cargo lab {}", portable(std::env::args().skip(1)).join(" ")),
        date: crate::machine::today(),
        machine: Machine::this(),
        processor: programs.processor()?,
        versions,
        rows: Vec::new(),
    };
    for (n, batch) in contests.chunk_by(|a, b| a.family == b.family).enumerate() {
        let begin = Instant::now();
        let rows = race(batch, n, &programs, args)?;
        results.rows.extend(rows.iter().cloned());
        let (done, all, took) = (results.rows.len(), contests.len(), begin.elapsed().as_secs());
        eprintln!("{}: {done} of {all} rows are done, this took {took} s", batch[0].family);
        rows.iter().for_each(|row| eprintln!("  {}", page::line(row)));
        // Saves each batch, so that an interrupted race keeps its results.
        save(&results, &crate::cargo::target().join("race/crypto.json"))?;
    }
    println!("{}", page::section(&results));
    if args.record {
        save(&results, &committed())?;
        page::write(&results)?;
    }
    Ok(())
}

/// Draws table and chart of the committed race again.
pub fn charts() -> Result<()> {
    match committed().exists() {
        true => page::write(&load()?),
        false => Ok(()),
    }
}

/// Runs all rounds of batch number `number`.
fn race(batch: &[Contest], number: usize, programs: &Programs, args: &Args) -> Result<Vec<Row>> {
    let describe = |(contest, ours): (&Contest, contenders::Ours)| Row {
        name: contest.row.clone(),
        bytes: contest.bytes.map(u64::from),
        backend: ours.backend,
        scope: ours.scope,
        samples: BTreeMap::new(),
    };
    let described = programs.described(batch)?;
    let mut rows: Vec<_> = batch.iter().zip(described).map(describe).collect();
    // Contenders that failed in a row, by the row's index.
    let mut lost = BTreeSet::new();
    for round in 0..args.runs {
        for n in 0..contenders::ALL.len() {
            let contender = contenders::ALL[(n + round + number) % contenders::ALL.len()];
            let takes_part = |place: &usize| {
                programs.enters(contender, &batch[*place]) && !lost.contains(&(contender, *place))
            };
            let places: Vec<usize> = (0..batch.len()).filter(takes_part).collect();
            if places.is_empty() {
                continue;
            }
            let contests: Vec<_> = places.iter().map(|place| &batch[*place]).collect();
            let figures = programs.measure(contender, &contests, args.seconds);
            for (place, figure) in places.into_iter().zip(figures) {
                let samples = &mut rows[place].samples;
                match figure {
                    Ok(figure) => samples.entry(contender.to_owned()).or_default().push(figure),
                    Err(error) if contender == contenders::WRAITH => return Err(error),
                    Err(error) => {
                        eprintln!("!! SKIPPED {contender} at {}: {error:#}", batch[place].row);
                        samples.remove(contender);
                        lost.insert((contender, place));
                    }
                }
            }
        }
    }
    Ok(rows)
}

/// Path of the committed race.
fn committed() -> PathBuf {
    crate::cargo::root().join("docs/performance/crypto.json")
}

fn load() -> Result<Results> {
    Ok(serde_json::from_slice(&std::fs::read(committed())?)?)
}

fn save(results: &Results, path: &Path) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, serde_json::to_string_pretty(results)? + "\n")?;
    Ok(())
}
