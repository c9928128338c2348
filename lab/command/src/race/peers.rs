//! The contenders that copy files, and how each copies a source into a folder.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::data::DataSet;
use super::isolated::Isolated;
use super::process::{self, Run, Usage};
use super::sendme::Sendme;
use super::sshd::Sshd;
use super::tools::Tools;
use super::wormhole::Wormhole;

/// Time limit of a run. `timeout` stops a peer that hangs, which counts as a failure.
const RUN_LIMIT_SECONDS: &str = "300";

/// Names of all peers, in the order of their runs.
pub const NAMES: [&str; 10] = [
    "wraith",
    "cp",
    "scp",
    "rsync",
    "tar over ssh",
    "sendme",
    "magic-wormhole",
    "wraith, on disk",
    "cp, on disk",
    "rsync, on disk",
];

/// A contender.
#[derive(Debug)]
pub enum Peer<'a> {
    /// `wraith send` and `wraith receive --no-sync`: like the others, it leaves the writing to the
    /// system.
    Wraith(&'a Path),
    /// `cp -r`, the lower bound: one process, no network, no verification.
    Cp,
    /// `scp -r` with AES-GCM.
    Scp(&'a Sshd),
    /// `rsync -r` over the same ssh.
    Rsync(&'a Sshd),
    /// `tar` on both sides of the same ssh.
    TarOverSsh(&'a Sshd),
    Sendme(Sendme<'a>),
    Wormhole(Wormhole<'a>),
    /// `wraith send` and `wraith receive`, which end when all data is on disk.
    WraithOnDisk(&'a Path),
    /// `cp -r` and `sync -f`.
    CpOnDisk,
    /// `rsync -r --fsync`.
    RsyncOnDisk(&'a Sshd),
}

/// Programs and servers that the peers need.
#[derive(Debug)]
pub struct PeerPrograms<'a> {
    pub wraith: Option<PathBuf>,
    pub sshd: Result<Sshd>,
    pub isolated: Result<Isolated>,
    pub tools: Tools,
    pub work: &'a Path,
}

impl PeerPrograms<'_> {
    /// Returns the peer called `name`, if it can run on this machine.
    pub fn peer(&self, name: &str) -> Result<Peer<'_>> {
        Ok(match name {
            "wraith" => Peer::Wraith(self.wraith.as_deref().context("it was not built")?),
            "cp" => Peer::Cp,
            "scp" => Peer::Scp(self.ssh("scp")?),
            "rsync" => Peer::Rsync(self.ssh("rsync")?),
            "tar over ssh" => Peer::TarOverSsh(self.ssh("tar")?),
            "sendme" => {
                let program = self.tools.sendme()?;
                Peer::Sendme(Sendme { program, isolated: self.isolated()? })
            }
            "magic-wormhole" => {
                let programs = self.tools.wormhole()?;
                let folder = self.work.join("wormhole");
                Peer::Wormhole(Wormhole::start(programs, self.isolated()?, &folder)?)
            }
            "wraith, on disk" => {
                Peer::WraithOnDisk(self.wraith.as_deref().context("it was not built")?)
            }
            "cp, on disk" => Peer::CpOnDisk,
            "rsync, on disk" => Peer::RsyncOnDisk(self.ssh("rsync")?),
            _ => bail!("no contender is called {name}"),
        })
    }

    fn ssh(&self, program: &str) -> Result<&Sshd> {
        let started = Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        ensure!(started.is_ok(), "not installed");
        self.sshd.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"))
    }

    fn isolated(&self) -> Result<&Isolated> {
        self.isolated.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"))
    }
}

impl Peer<'_> {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Wraith(_) => "wraith",
            Self::Cp => "cp",
            Self::Scp(_) => "scp",
            Self::Rsync(_) => "rsync",
            Self::TarOverSsh(_) => "tar over ssh",
            Self::Sendme(_) => "sendme",
            Self::Wormhole(_) => "magic-wormhole",
            Self::WraithOnDisk(_) => "wraith, on disk",
            Self::CpOnDisk => "cp, on disk",
            Self::RsyncOnDisk(_) => "rsync, on disk",
        }
    }

    /// Copies the source of `set` into `target`, an empty folder.
    pub fn run(&self, set: &DataSet, target: &Path) -> Result<Run> {
        let remote = format!("race:{}/", target.display());
        let mut command = Command::new("timeout");
        command.arg(RUN_LIMIT_SECONDS);
        let sshd = match self {
            Self::Wraith(program) => return run_wraith(program, &["--no-sync"], set, target),
            Self::WraithOnDisk(program) => return run_wraith(program, &[], set, target),
            Self::Sendme(sendme) => return sendme.run(set, target),
            Self::Wormhole(wormhole) => return wormhole.run(set, target),
            Self::Cp => {
                // Where the file system can share blocks, cp would clone instead of copying.
                command.args(["cp", "-r", "--reflink=never"]).arg(&set.source).arg(target);
                None
            }
            Self::CpOnDisk => {
                let script = "cp -r --reflink=never \"$1\" \"$2\" && sync -f \"$2\"";
                command.args(["sh", "-c", script, "sh"]).arg(&set.source).arg(target);
                None
            }
            Self::Scp(sshd) => {
                command.args(["scp", "-q", "-r"]).args(sshd.client_options());
                command.arg(&set.source).arg(remote);
                Some(sshd)
            }
            Self::Rsync(sshd) | Self::RsyncOnDisk(sshd) => {
                // -W: whole files, as between hosts without an older copy.
                command.args(["rsync", "-r", "-W"]);
                if matches!(self, Self::RsyncOnDisk(_)) {
                    command.arg("--fsync");
                }
                command.arg("-e");
                command.arg(format!("ssh {}", sshd.client_options().join(" ")));
                command.arg(&set.source).arg(remote);
                Some(sshd)
            }
            Self::TarOverSsh(sshd) => {
                let name = set.source.file_name().context("the source has a name")?;
                // The arguments after the script are $0, the folder, the name, the target, and
                // ssh's options.
                let script = "folder=$1 name=$2 target=$3; shift 3; \
                              tar -C \"$folder\" -cf - \"$name\" | ssh \"$@\" race tar -C \"$target\" -xf -";
                command.args(["sh", "-c", script, "sh"]).arg(&set.folder).arg(name).arg(target);
                command.args(sshd.client_options());
                Some(sshd)
            }
        };
        let before = sshd.map(|sshd| sshd.sessions_cpu_seconds()).transpose()?;
        let start = Instant::now();
        let child = command.stdin(Stdio::null()).spawn()?;
        let usage = process::wait(child, self.name())?;
        let seconds = start.elapsed().as_secs_f64();
        let mut usage = vec![("client", usage)];
        if let (Some(sshd), Some(before)) = (sshd, before) {
            let cpu_seconds = sshd.sessions_cpu_seconds()? - before;
            usage.push(("sshd", Usage { peak_rss_bytes: 0, cpu_seconds }));
        }
        Ok(Run { seconds, usage })
    }
}

fn run_wraith(program: &Path, more: &[&str], set: &DataSet, target: &Path) -> Result<Run> {
    let home = tempfile::tempdir()?;
    let command = |side: &str| {
        let mut command = Command::new(program);
        command
            .env("WRAITH_HOME", home.path().join(side))
            .envs(crate::OFFLINE)
            .stdin(Stdio::null());
        command
    };
    let start = Instant::now();
    let mut sender = command("sender")
        .args(["send", "-q", "--ticket", "--listen", "127.0.0.1:0"])
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
        .args(["receive", "-q", "--yes"])
        .args(more)
        .arg("-o")
        .arg(target)
        .arg(ticket)
        .spawn()?;
    let received = process::wait(receiver, "wraith receive");
    if received.is_err() {
        // Otherwise the sender would wait for the receiver to come back.
        sender.kill()?;
    }
    let sent = process::wait(sender, "wraith send");
    let seconds = start.elapsed().as_secs_f64();
    Ok(Run { seconds, usage: vec![("send", sent?), ("receive", received?)] })
}

/// Reads the ticket, which is the last word of the only line on the sender's standard output.
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
