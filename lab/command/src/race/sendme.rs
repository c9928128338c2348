//! sendme (iroh), without relays and discovery, in a namespace with only loopback.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use super::data::DataSet;
use super::isolated::Isolated;
use super::process::{self, Run};

const OPTIONS: [&str; 3] = ["--relay", "disabled", "--no-progress"];

#[derive(Debug)]
pub struct Sendme<'a> {
    pub program: PathBuf,
    pub isolated: &'a Isolated,
}

impl Sendme<'_> {
    /// Runs one transfer. The time runs from the start of the sender, which first reads and hashes
    /// everything, to the end of the receiver. The sender would keep serving, so it is killed then.
    pub fn run(&self, set: &DataSet, target: &Path) -> Result<Run> {
        // The sender keeps its store in the current folder.
        let store = target.with_extension("sendme");
        fs::create_dir(&store)?;
        let start = Instant::now();
        let mut sender = self
            .isolated
            .command(&self.program)
            .arg("send")
            .args(OPTIONS)
            .args(["--ticket-type", "addresses"])
            .arg(&set.source)
            .current_dir(&store)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let received = read_ticket(&mut sender).and_then(|ticket| {
            let receiver = self
                .isolated
                .command(&self.program)
                .arg("receive")
                .args(OPTIONS)
                .arg(ticket)
                .current_dir(target)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            process::wait(receiver, "sendme receive")
        });
        let seconds = start.elapsed().as_secs_f64();
        sender.kill()?;
        let sent = process::wait_killed(sender)?;
        Ok(Run { seconds, usage: vec![("send", sent), ("receive", received?)] })
    }
}

/// Reads the ticket from the command that sendme prints for the other side.
fn read_ticket(sender: &mut Child) -> Result<String> {
    let out = sender.stdout.take().context("the sender has no output")?;
    for line in BufReader::new(out).lines() {
        if let Some(ticket) = line?.strip_prefix("sendme receive ") {
            return Ok(ticket.trim().to_owned());
        }
    }
    anyhow::bail!("sendme printed no ticket")
}
