//! magic-wormhole, with a private mailbox and transit relay, in a namespace with only loopback.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::data::DataSet;
use super::isolated::Isolated;
use super::process::{self, Run};

/// All ports are free in a new namespace.
const MAILBOX_PORT: u16 = 4000;
const TRANSIT_PORT: u16 = 4001;
const START_DEADLINE: Duration = Duration::from_secs(30);

/// The two servers; they end when this value is dropped.
#[derive(Debug)]
pub struct Wormhole<'a> {
    programs: PathBuf,
    isolated: &'a Isolated,
    servers: Vec<Child>,
}

impl<'a> Wormhole<'a> {
    pub fn start(programs: PathBuf, isolated: &'a Isolated, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let mut wormhole = Self { programs, isolated, servers: Vec::new() };
        for (service, port) in [("wormhole-mailbox", MAILBOX_PORT), ("transitrelay", TRANSIT_PORT)]
        {
            let log = folder.join(format!("{service}.log"));
            let server = isolated
                .command(wormhole.programs.join("twist"))
                .args([service, "--port", &format!("tcp:{port}:interface=127.0.0.1")])
                .current_dir(folder)
                .stdin(Stdio::null())
                .stdout(File::create(&log)?)
                .stderr(Stdio::null())
                .spawn()?;
            wormhole.servers.push(server);
            wait_for_start(&log)?;
        }
        Ok(wormhole)
    }

    /// Runs one transfer. Both sides have the code and start at once. magic-wormhole zips folders,
    /// which is its way of sending them.
    pub fn run(&self, set: &DataSet, target: &Path) -> Result<Run> {
        let start = Instant::now();
        let nameplate = target.file_name().map_or(0, |name| {
            name.as_encoded_bytes().iter().fold(7_u32, |n, b| n * 31 % 9973 + u32::from(*b))
        });
        let code = format!("{nameplate}-race-race");
        let mut sender = self
            .command(&["send", "--hide-progress", "--no-qr", "--code", &code])
            .arg(&set.source)
            .current_dir(target)
            .spawn()?;
        let receiver = self
            .command(&["receive", "--hide-progress", "--accept-file", &code])
            .current_dir(target)
            .spawn();
        let received = receiver
            .map_err(anyhow::Error::from)
            .and_then(|receiver| process::wait(receiver, "wormhole receive"));
        if received.is_err() {
            sender.kill()?;
        }
        let sent = process::wait(sender, "wormhole send");
        let seconds = start.elapsed().as_secs_f64();
        Ok(Run { seconds, usage: vec![("send", sent?), ("receive", received?)] })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.isolated.command(self.programs.join("wormhole"));
        command
            .args(["--relay-url", &format!("ws://127.0.0.1:{MAILBOX_PORT}/v1")])
            .args(["--transit-helper", &format!("tcp:127.0.0.1:{TRANSIT_PORT}")])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }
}

impl Drop for Wormhole<'_> {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

fn wait_for_start(log: &Path) -> Result<()> {
    let deadline = Instant::now() + START_DEADLINE;
    while !fs::read_to_string(log)?.contains("starting on") {
        if Instant::now() > deadline {
            bail!("a server of magic-wormhole did not start");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
