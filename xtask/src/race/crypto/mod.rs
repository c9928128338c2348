//! `cargo xtask race crypto`: every algorithm beside `openssl speed`, and beside the benchmark programs of openHiTLS in C and in Rust where these are named.
//!
//! What is raced stands in one table ([`contests`]); how each contender is run and read, in [`contenders`]. The rules:
//! - interleaved: a round runs the contenders of a row in turn, one slice of time each, and the next round begins with another of them; the median of the rounds counts.
//! - the same operation on texts of the same length. What else is within the measured time differs between the programs; the page says how.
//! - a contender that has no such row, is missing or fails is left out of it; if wraith fails, the race fails.

mod contenders;
mod contests;
mod page;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::results::{Machine, Spread, portable};
use contenders::Programs;
use contests::Contest;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rounds; each runs every contender once
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Seconds of each row, contender and round; the others count in whole seconds
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Only rows with one of these words in their name
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// The openhitls_benchmark of the C library
    #[arg(long, value_name = "PROGRAM")]
    openhitls: Option<PathBuf>,
    /// The benchmark program of openhitls-rs (its crypto_bench)
    #[arg(long, value_name = "PROGRAM")]
    openhitls_rs: Option<PathBuf>,
    /// Our program, instead of building it
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
    /// The version of each contender, where it tells one.
    versions: BTreeMap<String, String>,
    rows: Vec<Row>,
}

/// One operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    name: String,
    /// Of the text, where it is about one.
    bytes: Option<u64>,
    /// What computes it at wraith.
    backend: String,
    /// What is within wraith's time.
    scope: String,
    /// Operations in a second of each round, by contender.
    samples: BTreeMap<String, Vec<f64>>,
}

impl Row {
    fn median(&self, contender: &str) -> Option<f64> {
        Spread::of(self.samples.get(contender)?.iter().copied()).map(|spread| spread.median)
    }

    /// How many times as fast wraith is.
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
    let mut results = Results {
        command: format!("cargo xtask {}", portable(std::env::args().skip(1)).join(" ")),
        date: crate::machine::today(),
        machine: Machine::this(),
        versions: programs.versions(),
        rows: Vec::new(),
    };
    for (n, contest) in contests.iter().enumerate() {
        match race(contest, &programs, args)? {
            Some(row) => {
                eprintln!("{}/{} {}", n + 1, contests.len(), page::line(&row));
                results.rows.push(row);
            }
            None => eprintln!("!! SKIPPED {}: wraith does not have it", contest.row),
        }
        // What is measured is not lost when somebody stops it.
        save(&results, &crate::cargo::target().join("race/crypto.json"))?;
    }
    println!("{}", page::section(&results));
    if args.record {
        save(&results, &committed())?;
        page::write(&results)?;
    }
    Ok(())
}

/// Makes table and chart of the committed race again.
pub fn charts() -> Result<()> {
    match committed().exists() {
        true => page::write(&load()?),
        false => Ok(()),
    }
}

/// All rounds of a row; none if wraith does not have it.
fn race(contest: &Contest, programs: &Programs, args: &Args) -> Result<Option<Row>> {
    let Some(first) = programs.ours(contest, 0.001)? else { return Ok(None) };
    let mut row = Row {
        name: contest.row.clone(),
        bytes: first.bytes,
        backend: first.backend,
        scope: first.scope,
        samples: BTreeMap::new(),
    };
    let mut entered = programs.entered(contest);
    for round in 0..args.runs {
        let mut lost = Vec::new();
        for n in 0..entered.len() {
            let contender = entered[(n + round) % entered.len()];
            match programs.measure(contender, contest, args.seconds) {
                Ok(per_second) => {
                    row.samples.entry(contender.to_owned()).or_default().push(per_second);
                }
                Err(error) if contender == contenders::WRAITH => return Err(error),
                Err(error) => {
                    eprintln!("!! SKIPPED {contender} at {}: {error:#}", contest.row);
                    row.samples.remove(contender);
                    lost.push(contender);
                }
            }
        }
        entered.retain(|contender| !lost.contains(contender));
    }
    Ok(Some(row))
}

/// Where the committed race is.
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
