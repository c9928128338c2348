//! A narrated demonstration in one terminal:
//!
//! - two people behind home routers, with only the DHT;
//! - two people behind strict NATs, with a relay;
//! - the failure of that relay.

use anyhow::{Result, ensure};

use super::killed;
use super::lab::{Host, Lab};
use super::matrix::LIMIT;
use super::profile::Profile;
use super::side::{RunContext, relay_address};
use super::transfer::{Job, ProgramArgs};
use crate::race::data::DataSet;

const FILE_BYTES: u64 = 6_000_000;
const RATE: &str = "2M";

/// Runs the demonstration. Fails at the first unexpected result.
pub fn run(stage: &RunContext, home: &Profile, hard: &Profile) -> Result<()> {
    let set = DataSet::one_file(&stage.folder("source")?, FILE_BYTES)?;
    direct(stage, &set, home)?;
    relayed(stage, &set, hard)?;
    stage.log("");
    stage.log("Three: the same, and in the middle of it the relay is killed");
    let resumed = killed::run(stage, "killed", hard, killed::SMALL)?;
    stage.log(&resumed.describe());
    Ok(())
}

fn direct(stage: &RunContext, set: &DataSet, home: &Profile) -> Result<()> {
    stage.log("One: no servers, only a DHT (60 nodes), and a router at each home");
    let mut lab = Lab::new()?;
    let (_nodes, bootstrap) = lab.serve_dht(&stage.netlab)?;
    let hosts = [lab.host_behind(home)?, lab.host_behind(home)?];
    introduce(stage, home, &hosts);
    let both = ["--dht", "on", "--dht-bootstrap", &bootstrap];
    let words = ProgramArgs { both: &both, rate: RATE };
    let job = Job { set, name: "direct".into(), words, limit: LIMIT };
    let found = job.run(stage, &hosts[0], &hosts[1])?;
    ensure!(found.path == "direct", "it should have been direct: {}", found.path);
    stage.log(&format!("every byte is the same; the first came after {:.2?}", found.first_byte));
    Ok(())
}

fn relayed(stage: &RunContext, set: &DataSet, hard: &Profile) -> Result<()> {
    stage.log("");
    stage.log("Two: both behind symmetric NATs, with a relay");
    let mut lab = Lab::new()?;
    let _relay = stage.relay(&lab, "relayed/relay")?;
    let hosts = [lab.host_behind(hard)?, lab.host_behind(hard)?];
    introduce(stage, hard, &hosts);
    let address = relay_address();
    let words = ProgramArgs { both: &["--relay", &address], rate: RATE };
    let job = Job { set, name: "relayed".into(), words, limit: LIMIT };
    let found = job.run(stage, &hosts[0], &hosts[1])?;
    ensure!(found.path == "relay", "it should have been relayed: {}", found.path);
    stage.log("every byte is the same");
    Ok(())
}

fn introduce(stage: &RunContext, profile: &Profile, [a, b]: &[Host; 2]) {
    let (name, a, b) = (profile.name, a.public(), b.public());
    stage.log(&format!("sender behind {a}, receiver behind {b}, both {name}"));
}
