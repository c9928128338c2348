//! Who takes part, and how each copies a source into a folder.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::data::DataSet;
use super::process::{self, Run};
use super::skipped;
use super::sshd::Sshd;

/// One way to copy.
#[derive(Debug)]
pub enum Peer<'a> {
    /// `wraith send` and `wraith receive`.
    Wraith(&'a Path),
    /// `cp -r`, the floor: one process, no network, no check.
    Cp,
    /// `scp -r` with AES-GCM.
    Scp(&'a Sshd),
    /// `rsync -r` over the same ssh.
    Rsync(&'a Sshd),
}

/// The peers that are wanted and can run; the others are skipped aloud.
pub fn available<'a>(
    wanted: impl Fn(&str) -> bool,
    wraith: Option<&'a Path>,
    sshd: Option<&'a Sshd>,
) -> Vec<Peer<'a>> {
    let mut peers: Vec<_> = wraith.map(Peer::Wraith).into_iter().collect();
    peers.push(Peer::Cp);
    for (program, word, peer) in
        [("scp", "-V", sshd.map(Peer::Scp)), ("rsync", "--version", sshd.map(Peer::Rsync))]
    {
        match peer {
            Some(peer) if installed(program, word) => peers.push(peer),
            Some(_) if wanted(program) => skipped(&format!("{program}: not installed")),
            _ => {}
        }
    }
    peers.retain(|peer| wanted(peer.name()));
    peers
}

/// Whether the program can be started at all; what it then says does not matter.
fn installed(program: &str, word: &str) -> bool {
    let started =
        Command::new(program).arg(word).stdout(Stdio::null()).stderr(Stdio::null()).status();
    started.is_ok()
}

impl Peer<'_> {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Wraith(_) => "wraith",
            Self::Cp => "cp",
            Self::Scp(_) => "scp",
            Self::Rsync(_) => "rsync",
        }
    }

    /// Copies the source of `set` into `target`, an empty folder.
    pub fn run(&self, set: &DataSet, target: &Path) -> Result<Run> {
        let remote = format!("race:{}/", target.display());
        let mut command = match self {
            Self::Wraith(program) => return run_wraith(program, set, target),
            Self::Cp => {
                // A clone is no copy: where the file system can share blocks, cp must not.
                let mut cp = Command::new("cp");
                cp.args(["-r", "--reflink=never"]).arg(&set.source).arg(target);
                cp
            }
            Self::Scp(sshd) => {
                let mut scp = Command::new("scp");
                scp.args(["-q", "-r"]).args(sshd.client_options()).arg(&set.source).arg(remote);
                scp
            }
            Self::Rsync(sshd) => {
                let mut rsync = Command::new("rsync");
                // -W: whole files, as between hosts that have no older copy.
                rsync.args(["-r", "-W", "-e"]);
                rsync.arg(format!("ssh {}", sshd.client_options().join(" ")));
                rsync.arg(&set.source).arg(remote);
                rsync
            }
        };
        let start = Instant::now();
        let child = command.stdin(Stdio::null()).spawn()?;
        let usage = process::wait(child, self.name())?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(Run { seconds, usage: vec![(self.name(), usage)] })
    }
}

fn run_wraith(program: &Path, set: &DataSet, target: &Path) -> Result<Run> {
    let home = tempfile::tempdir()?;
    let command = |side: &str| {
        let mut command = Command::new(program);
        command.env("WRAITH_HOME", home.path().join(side)).stdin(Stdio::null());
        command
    };
    let start = Instant::now();
    let mut sender = command("sender")
        .args(["send", "-q", "--listen", "127.0.0.1:0"])
        .arg(&set.source)
        .stdout(Stdio::piped())
        .spawn()?;
    let ticket = match read_ticket(&mut sender) {
        Ok(ticket) => ticket,
        Err(error) => {
            sender.kill()?;
            sender.wait()?;
            return Err(error);
        }
    };
    let receiver = command("receiver")
        .args(["receive", "-q", "--yes", "-o"])
        .arg(target)
        .arg(ticket)
        .spawn()?;
    let received = process::wait(receiver, "wraith receive");
    if received.is_err() {
        // Otherwise it would wait for the receiver to come back.
        sender.kill()?;
    }
    let sent = process::wait(sender, "wraith send");
    let seconds = start.elapsed().as_secs_f64();
    Ok(Run { seconds, usage: vec![("send", sent?), ("receive", received?)] })
}

/// The ticket is the last word of the only line on the sender's standard output.
fn read_ticket(sender: &mut Child) -> Result<String> {
    let out = sender.stdout.take().context("the sender has no output")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    let Some(ticket) = line.split_whitespace().last() else {
        bail!("wraith send printed no ticket")
    };
    ensure!(ticket.starts_with("wraith:"), "not a ticket: {ticket}");
    Ok(ticket.to_owned())
}
