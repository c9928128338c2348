//! `cargo xtask race`: wraith, cp, scp and rsync move the same data on this machine, in turn.
//!
//! The rules, so that the figures can be compared:
//! - warm: the source is read once before the first run and stays in the page cache; the destination is new in every
//!   run. Nobody waits for the disk (none of the peers calls fsync by default).
//! - interleaved: every round runs each peer once, so a slow minute of the machine hits all of them.
//! - `sync` and removing a destination happen between the runs, outside the timed part. Trees of many files are removed
//!   only in the end: ext4 does not give out a freed inode again for minutes, and every creation searches past all of them,
//!   so a run right after a removal would measure the removal.
//! - a run counts only when every byte of every file is there; a run that fails stops the race.
//! - wraith is timed from the start of `wraith send` to the end of both processes: the ticket, the handshake, the
//!   transfer, the receipt. scp and rsync likewise include their connection.

pub mod data;
mod peers;
pub mod process;
pub mod sshd;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use data::DataSet;
use peers::Peer;
use process::Run;
use sshd::Sshd;

/// Destinations with more files than this stay until the race is over.
const FILES_REMOVED_MAX: u64 = 100;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rounds; each runs every peer once
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Bytes of the big file
    #[arg(long, default_value_t = 1_000_000_000)]
    size: u64,
    /// Number of small files
    #[arg(long, default_value_t = 20_000)]
    files: u32,
    /// Only the big file, or only the small files
    #[arg(long, value_parser = ["big", "small"])]
    only: Option<String>,
    /// Only these peers
    #[arg(long, value_delimiter = ',', value_parser = ["wraith", "cp", "scp", "rsync"])]
    peers: Vec<String>,
    /// Where to put the data: three times its size is needed; the disk should be the one that matters
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Runs the race and prints a table for each data set.
pub fn run(args: &Args) -> Result<()> {
    let wraith = if wanted(args, "wraith") { Some(crate::cargo::build_release()?) } else { None };
    let base = args.dir.clone().unwrap_or_else(|| crate::cargo::root().join("target/race"));
    fs::create_dir_all(&base).with_context(|| format!("cannot make {}", base.display()))?;
    let work = tempfile::Builder::new().prefix("race-").tempdir_in(&base)?;
    let sshd = start_sshd(args, work.path())?;
    let peers = peers::available(|name| wanted(args, name), wraith.as_deref(), sshd.as_ref());
    ensure!(!peers.is_empty(), "nobody to race");
    for set in data_sets(args, work.path())? {
        let rounds = race(&set, &peers, args.runs, work.path())?;
        println!("\n{}", table::render(&set, &peers, &rounds));
        fs::remove_dir_all(&set.folder)?;
    }
    Ok(())
}

fn wanted(args: &Args, peer: &str) -> bool {
    args.peers.is_empty() || args.peers.iter().any(|name| name == peer)
}

/// The private sshd, when somebody needs it and it is installed.
fn start_sshd(args: &Args, work: &Path) -> Result<Option<Sshd>> {
    if !wanted(args, "scp") && !wanted(args, "rsync") {
        return Ok(None);
    }
    match Sshd::start(&work.join("ssh")) {
        Ok(sshd) => Ok(Some(sshd)),
        Err(error) => {
            skipped(&format!("scp and rsync: {error:#}"));
            Ok(None)
        }
    }
}

fn data_sets(args: &Args, work: &Path) -> Result<Vec<DataSet>> {
    let wanted = |name: &str| args.only.as_deref().is_none_or(|only| only == name);
    let mut sets = Vec::new();
    if wanted("big") {
        eprintln!("making one file of {} bytes", args.size);
        sets.push(DataSet::one_file(&work.join("big"), args.size)?);
    }
    if wanted("small") {
        eprintln!("making {} small files", args.files);
        sets.push(DataSet::small_files(&work.join("small"), args.files)?);
    }
    Ok(sets)
}

/// All runs of one data set: for each peer its runs, in the order of `peers`.
fn race(set: &DataSet, peers: &[Peer<'_>], runs: usize, work: &Path) -> Result<Vec<Vec<Run>>> {
    set.warm()?;
    let mut results = vec![Vec::new(); peers.len()];
    for round in 1..=runs {
        for (peer, results) in peers.iter().zip(&mut results) {
            let target = work.join(format!("target-{}-{round}", peer.name()));
            fs::create_dir(&target)?;
            settle()?;
            let run = peer.run(set, &target).with_context(|| format!("{} failed", peer.name()))?;
            set.verify(&target)
                .with_context(|| format!("{} did not copy it right", peer.name()))?;
            eprintln!("{} round {round}: {} {:.3} s", set.name, peer.name(), run.seconds);
            results.push(run);
            if set.files <= FILES_REMOVED_MAX {
                fs::remove_dir_all(&target)?;
            }
        }
    }
    Ok(results)
}

/// Lets the kernel finish what the last run left, so that the next one does not pay for it.
fn settle() -> Result<()> {
    ensure!(Command::new("sync").status()?.success(), "sync failed");
    Ok(())
}

fn skipped(what: &str) {
    eprintln!("!! SKIPPED {what}");
}
