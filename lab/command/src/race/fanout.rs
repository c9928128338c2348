//! `cargo lab fanout`: several receivers of one file at once, beside one alone. Their total
//! throughput must not be lower.
//!
//! Real processes transfer over loopback, and every copy is compared with the source. Runs
//! alternate, so that a machine that becomes slower affects both kinds.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use super::data::DataSet;
use super::process;
use crate::cargo;
use crate::median::median;

/// Time limit of a run. `timeout` stops a process that hangs, which counts as a failure.
const RUN_LIMIT_SECONDS: &str = "300";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of receivers at once
    #[arg(default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=64))]
    receivers: u32,

    /// Size of the file in megabytes; every receiver gets it
    #[arg(long, default_value_t = 200)]
    megabytes: u64,

    /// Number of runs of each kind
    #[arg(long, default_value_t = 5)]
    runs: usize,

    /// Folder for the data
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Prints the medians and their ratio.
pub fn run(args: &Args) -> Result<()> {
    let program = cargo::build_release()?;
    let base = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new().prefix("wraith-fanout-").tempdir_in(base)?;
    let set = DataSet::one_file(&folder.path().join("source"), args.megabytes * 1_000_000)?;
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    for round in 1..=args.runs {
        alone.push(once(&program, folder.path(), &set, 1)?);
        together.push(once(&program, folder.path(), &set, args.receivers)?);
        let rate = |rates: &[f64]| rates.last().copied().unwrap_or_default() / 1e6;
        println!("{round}: {:.0} MB/s alone, {:.0} MB/s together", rate(&alone), rate(&together));
    }
    let (one, many) = (median(alone), median(together));
    println!("\n| receivers at once | MB/s together | of one |\n|---|---|---|");
    println!("| 1 | {:.0} | 1.00 |", one / 1e6);
    println!("| {} | {:.0} | {:.2} |", args.receivers, many / 1e6, many / one);
    Ok(())
}

/// Sends the file to `receivers` receivers at once. Returns their total throughput in bytes a
/// second.
fn once(program: &Path, folder: &Path, set: &DataSet, receivers: u32) -> Result<f64> {
    set.warm()?;
    let mut sender = wraith(program, &folder.join("sender"));
    sender.args(["send", "--ticket", "--listen", "127.0.0.1:0", "-n", &receivers.to_string()]);
    let mut sender = sender.arg(&set.source).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(sender.stdout.take().context("it was asked for")?).read_line(&mut line)?;
    let ticket = line.split_whitespace().last().context("the sender printed no ticket")?.to_owned();
    let targets: Vec<_> = (0..receivers).map(|n| folder.join(format!("target {n}"))).collect();
    let start = Instant::now();
    let mut running = Vec::new();
    for (n, target) in targets.iter().enumerate() {
        let mut receiver = wraith(program, &folder.join(format!("receiver {n}")));
        running.push(receiver.args(["receive", "--yes", "-o"]).arg(target).arg(&ticket).spawn()?);
    }
    for receiver in running {
        process::wait(receiver, "wraith receive")?;
    }
    let seconds = start.elapsed().as_secs_f64();
    process::wait(sender, "wraith send")?;
    for target in &targets {
        set.verify(target)?;
        fs::remove_dir_all(target)?;
    }
    Ok((set.bytes * u64::from(receivers)) as f64 / seconds)
}

fn wraith(program: &Path, home: &Path) -> Command {
    let mut command = Command::new("timeout");
    command
        .arg(RUN_LIMIT_SECONDS)
        .arg(program)
        .arg("-q")
        .env("WRAITH_HOME", home)
        .envs(crate::OFFLINE);
    command.stdin(Stdio::null());
    command
}
