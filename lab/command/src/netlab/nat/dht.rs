//! Two hosts behind home NATs that find each other only by the DHT: by a code, and as contacts.
//!
//! For the contacts, the listener has moved since the last transfer, to a reachable place or behind
//! another NAT.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::lab::{Host, Lab};
use super::matrix::percentiles;
use super::profile::Profile;
use super::side::{RunContext, START_TIMEOUT};
use super::transfer::{Job, ProgramArgs, first_byte, path_text};
use crate::race::data::DataSet;

const FILES: u32 = 25;
const RATE: &str = "1M";
/// Time limit of a transfer, which takes a fraction of it.
const LIMIT: Duration = Duration::from_secs(60);

/// Times from the start of the calling program to the first byte of a file, and the failures.
#[derive(Debug, Default)]
struct Times {
    code: Vec<Duration>,
    /// Times and failures for each new place of the listener.
    moved: Vec<(&'static str, Vec<Duration>, Vec<String>)>,
}

/// Runs both cases `runs` times and prints the times. A moved listener is called after `rest`.
///
/// Fails if a code did not work, or if a reachable contact was not reached.
pub fn run(
    stage: &RunContext,
    [home, reachable]: [&Profile; 2],
    runs: u64,
    rest: Duration,
) -> Result<()> {
    let set = DataSet::small_files(&stage.folder("source")?, FILES)?;
    let mut lab = Lab::new()?;
    let (_nodes, bootstrap) = lab.serve_dht(&stage.netlab)?;
    let both = ["--dht", "on", "--dht-bootstrap", &bootstrap];
    let moved = [reachable, home].map(|to| (to.name, Vec::new(), Vec::new())).into();
    let mut times = Times { moved, ..Times::default() };
    for round in 1..=runs {
        let words = ProgramArgs { both: &both, rate: RATE };
        let name = format!("dht-{round}");
        let job = Job { set: &set, name, words, limit: LIMIT };
        one(stage, &mut lab, &job, [home, reachable], rest, &mut times)
            .with_context(|| job.name.clone())?;
        fs::remove_dir_all(stage.base.join(&job.name))?;
    }
    println!("code, both behind {}: {}", home.name, percentiles(times.code)?);
    for (name, found, failed) in times.moved {
        let times = percentiles(found).unwrap_or_default();
        println!("contact that is {name} now: {times}; {} of {runs} not reached", failed.len());
        failed.iter().for_each(|why| println!("  {why}"));
        ensure!(name == home.name || failed.is_empty(), "a contact was not reached");
    }
    Ok(())
}

fn one(
    stage: &RunContext,
    lab: &mut Lab,
    job: &Job<'_>,
    [home, reachable]: [&Profile; 2],
    rest: Duration,
    times: &mut Times,
) -> Result<()> {
    let (a, b) = (lab.host_behind(home)?, lab.host_behind(home)?);
    // Each side saves the other as a contact.
    let offered = job.offer_with(stage, &a, &["--save-as", "receiver"])?;
    let receiver = job.receive_with(stage, &b, &offered.code, &["--save-as", "sender"])?;
    let found = job.complete(stage, offered, receiver)?;
    eprintln!("{}: code: {} ({}) in {:.2?}", job.name, found.path, found.how, found.first_byte);
    times.code.push(found.first_byte);
    drop(b);
    for (to, (name, found, failed)) in [reachable, home].into_iter().zip(&mut times.moved) {
        let elsewhere = lab.host_behind(to)?;
        match call(stage, job, [&a, &elsewhere], name, rest) {
            Ok(time) => {
                eprintln!("{}: contact that is {name} now: {time:.2?}", job.name);
                found.push(time);
            }
            Err(error) => failed.push(format!("{}: {error:#}", job.name)),
        }
    }
    Ok(())
}

/// The same identity listens elsewhere and is called after `rest`. Returns the time to the first
/// byte.
fn call(
    stage: &RunContext,
    job: &Job<'_>,
    [a, elsewhere]: [&Host; 2],
    to: &str,
    rest: Duration,
) -> Result<Duration> {
    let folder = stage.folder(&format!("{}/listener-{to}", job.name))?;
    let out = path_text(&folder)?;
    let words = [&["listen"], job.words.both, &["--accept", "contacts", "-o", out]].concat();
    let home = format!("{}/receiver", job.name);
    let mut listener = stage.wraith("listener", elsewhere, &home, &words)?;
    listener.expect("listening", START_TIMEOUT, |seen| seen.is("listening"))?;
    thread::sleep(rest);
    let source = path_text(&job.set.source)?;
    let words = [&["send"], job.words.both, &["--rate", RATE, "--to", "receiver", source]].concat();
    let caller = stage.wraith("caller", a, &format!("{}/sender", job.name), &words)?;
    let started = caller.started;
    caller.finish(LIMIT)?;
    listener.expect("done", LIMIT, |seen| seen.is("done"))?;
    job.set.verify(&folder)?;
    let first = first_byte(&listener.seen).context("no progress was reported")?;
    Ok(first.at.duration_since(started))
}
