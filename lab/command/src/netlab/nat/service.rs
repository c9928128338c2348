//! A raw service between hosts behind NATs, by code and by contact, beside a transfer between the
//! same hosts.
//!
//! The program is the example `echo` of the library. Its caller compares every byte that comes back.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::lab::{Host, Lab};
use super::matrix::{LIMIT, percentiles};
use super::profile::Profile;
use super::side::{RunContext, START_TIMEOUT, relay_address};
use super::transfer::{Job, Outcome, ProgramArgs, outcome};
use crate::race::data::DataSet;

const FILES: u32 = 60;
const RATE: &str = "300K";

/// How the caller finds the service, or that it is a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Transfer,
    Code,
    Contact,
}

const WAYS: [(Way, &str); 3] = [
    (Way::Transfer, "transfer by code"),
    (Way::Code, "service by code"),
    (Way::Contact, "service by contact"),
];

/// Runs all ways between the hosts of each pair, `runs` times in turn, and prints the times from
/// the start of the caller to the first byte.
///
/// Fails if a run fails, or if it does not end on the expected path.
pub fn run(stage: &RunContext, pairs: &[(&Profile, &Profile)], runs: u64) -> Result<()> {
    let set = DataSet::small_files(&stage.folder("source")?, FILES)?;
    println!("| service | caller | what | path | first byte |\n|---|---|---|---|---|");
    for (from, to) in pairs {
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        let mut paths = [String::new(), String::new(), String::new()];
        for round in 1..=runs {
            for (n, (way, name)) in WAYS.into_iter().enumerate() {
                let found = one(stage, &set, (round, from, to), way)
                    .with_context(|| format!("{} and {}, {name}", from.name, to.name))?;
                let expected = if from.direct_with(to) { "direct" } else { "relay" };
                ensure!(found.path == expected, "{name}: {} and not {expected}", found.path);
                times[n].push(found.first_byte);
                paths[n] = format!("{} ({})", found.path, found.how);
            }
        }
        for (n, (_, name)) in WAYS.into_iter().enumerate() {
            let times = percentiles(std::mem::take(&mut times[n]))?;
            println!("| {} | {} | {name} | {} | {times} |", from.name, to.name, paths[n]);
        }
    }
    Ok(())
}

fn one(
    stage: &RunContext,
    set: &DataSet,
    (round, from, to): (u64, &Profile, &Profile),
    way: Way,
) -> Result<Outcome> {
    let name = format!("service-{}-{}-{round}-{way:?}", from.name, to.name);
    let mut lab = Lab::new()?;
    let _relay = stage.relay(&lab, &format!("{name}/relay"))?;
    let (from, to) = (lab.host_behind(from)?, lab.host_behind(to)?);
    let relay = relay_address();
    let found = match way {
        Way::Transfer => {
            let words = ProgramArgs { both: &["--relay", &relay], rate: RATE };
            Job { set, name: name.clone(), words, limit: LIMIT }.run(stage, &from, &to)
        }
        Way::Code | Way::Contact => echo(stage, &name, [&from, &to], way == Way::Contact),
    };
    fs::remove_dir_all(stage.base.join(&name))?;
    found
}

/// Runs the service and its caller.
fn echo(
    stage: &RunContext,
    name: &str,
    [from, to]: [&Host; 2],
    by_contact: bool,
) -> Result<Outcome> {
    let relay = relay_address();
    let start = |side, host, words: &[&str]| {
        let words = [words, &["--relay", &relay]].concat();
        stage.program(&stage.echo, side, host, &format!("{name}/{side}"), &words)
    };
    let id = |side: &'static str, host| -> Result<String> {
        let mut program =
            stage.program(&stage.echo, side, host, &format!("{name}/{side}"), &["id"])?;
        let id = program.expect("its NodeId", START_TIMEOUT, |seen| seen.is("id"))?;
        Ok(id.text("node_id").to_owned())
    };
    let (server_id, caller_id) = match by_contact {
        true => (id("service", from)?, id("caller", to)?),
        false => Default::default(),
    };
    let mut server = match by_contact {
        true => start("service", from, &["serve", "--contact", &caller_id])?,
        false => start("service", from, &["serve"])?,
    };
    let ready = server.expect("a service", START_TIMEOUT, |seen| seen.is("ready"))?;
    let caller = match by_contact {
        true => start("caller", to, &["call", "--contact", &server_id])?,
        false => start("caller", to, &["call", ready.text("code")])?,
    };
    let started = caller.started;
    let called = caller.finish(LIMIT).with_context(|| server.last_words())?;
    server.finish(LIMIT)?;
    outcome(started, &called)
}
