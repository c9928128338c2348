//! Two hosts behind NATs of homes that find each other by nothing but the DHT: by a code, and as contacts of whom one has moved
//! to another address since the last time.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::lab::Lab;
use super::matrix::percentiles;
use super::profile::Profile;
use super::side::{START_TIMEOUT, Stage};
use super::transfer::{Job, Words, first_byte, has_moved, is_direct, path_text};
use crate::race::data::DataSet;

const FILES: u32 = 25;
const RATE: &str = "1M";
/// A transfer takes a fraction of it.
const LIMIT: Duration = Duration::from_secs(60);
/// A listener that has started is left alone for so long before it is called, as in life: its records are out then.
const PUBLISHED_AFTER: Duration = Duration::from_secs(8);

/// Times from the start of the program that asks to the first byte of a file.
#[derive(Debug, Default)]
struct Times {
    code: Vec<Duration>,
    moved: Vec<Duration>,
}

/// So many runs of both, and how long they took.
pub fn run(stage: &Stage, home: &Profile, runs: u64) -> Result<()> {
    let set = DataSet::small_files(&stage.folder("source")?, FILES)?;
    let mut lab = Lab::new()?;
    let (_nodes, bootstrap) = lab.serve_dht(&stage.netlab)?;
    let both = ["--dht", "on", "--dht-bootstrap", &bootstrap];
    let mut times = Times::default();
    for round in 1..=runs {
        let words = Words { both: &both, rate: RATE };
        let name = format!("dht-{round}");
        let job = Job { set: &set, name, words, limit: LIMIT };
        one(stage, &mut lab, home, &job, &mut times).with_context(|| job.name.clone())?;
        fs::remove_dir_all(stage.base.join(&job.name))?;
    }
    println!("code, both behind {}: {}", home.name, percentiles(times.code)?);
    println!("contact that has moved, both behind {}: {}", home.name, percentiles(times.moved)?);
    Ok(())
}

fn one(
    stage: &Stage,
    lab: &mut Lab,
    home: &Profile,
    job: &Job<'_>,
    times: &mut Times,
) -> Result<()> {
    let (a, b) = (lab.host_behind(home)?, lab.host_behind(home)?);
    // Each keeps the other as a contact.
    let offered = job.offer_with(stage, &a, &["--save-as", "receiver"])?;
    let receiver = job.receive_with(stage, &b, &offered.code, &["--save-as", "sender"])?;
    let found = job.settle(stage, offered, receiver)?;
    eprintln!("{}: code: {} ({}) in {:.2?}", job.name, found.path, found.how, found.first_byte);
    times.code.push(found.first_byte);

    // The same person, somewhere else.
    drop(b);
    let elsewhere = lab.host_behind(home)?;
    let folder = stage.folder(&format!("{}/listener", job.name))?;
    let words = [&["listen"], job.words.both, &["--accept", "contacts", "-o", path_text(&folder)?]]
        .concat();
    let mut listener =
        stage.wraith("listener", &elsewhere, &format!("{}/receiver", job.name), &words)?;
    listener.expect("listening", START_TIMEOUT, |seen| seen.is("listening"))?;
    thread::sleep(PUBLISHED_AFTER);
    let words = [
        &["send"],
        job.words.both,
        &["--rate", RATE, "--to", "receiver", path_text(&job.set.source)?],
    ]
    .concat();
    let sender = stage.wraith("caller", &a, &format!("{}/sender", job.name), &words)?;
    let started = sender.started;
    listener.expect("a byte", LIMIT, |seen| has_moved(seen, 1))?;
    sender.finish(LIMIT)?;
    listener.expect("done", LIMIT, |seen| seen.is("done"))?;
    job.set.verify(&folder)?;
    let first = first_byte(&listener.seen).context("a byte was seen")?;
    let how = listener.seen.iter().rfind(|seen| is_direct(seen));
    let how = how.map_or("not direct", |seen| seen.text("how"));
    let time = first.at.duration_since(started);
    eprintln!("{}: contact that has moved: {how} in {time:.2?}", job.name);
    times.moved.push(time);
    Ok(())
}
