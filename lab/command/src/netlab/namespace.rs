//! A network namespace that leaves nothing behind.
//!
//! Invariant: each namespace, and a namespace of processes with it, is held by one process that ends when its standard input is
//! closed, and the kernel kills everything inside with it. So a failed run, Ctrl-C and kill -9 of this program all end the same
//! way, and since nothing has a name that another program could see, there is nothing stale to meet either.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

/// Of everything in the lab: what else the machine does should not be measured. A transport in user space that waits for
/// a processor is slower, one in the kernel is not, so a busy machine would be unfair to the former.
const NICE: &str = "-18";

/// A namespace of its own for network and processes; ends with this value.
#[derive(Debug)]
pub struct Namespace {
    pid: u32,
    holder: Mutex<Child>,
}

impl Namespace {
    /// A namespace with nothing but loopback, and these settings: paths below /proc/sys, and their values.
    pub fn new(settings: &[(&str, &str)]) -> Result<Self> {
        let mut holder = Command::new("unshare")
            .args(["--net", "--pid", "--fork", "--kill-child", "sh", "-c", "echo ready; exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("unshare (util-linux) cannot be started")?;
        let (pid, out) = (holder.id(), holder.stdout.take());
        let namespace = Self { pid, holder: Mutex::new(holder) };
        let mut out = BufReader::new(out.context("it was piped")?);
        expect_ready(&mut out, "the namespace")?;
        for (setting, value) in settings {
            let line = format!("echo '{value}' > /proc/sys/{setting}");
            run(namespace.command("sh").args(["-c", &line]))?;
        }
        run(namespace.command("ip").args(["link", "set", "lo", "up"]))?;
        Ok(namespace)
    }

    /// A command that will run in the namespace. Killing the child that it becomes does not kill the program itself: only
    /// the end of the namespace does.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let pid = self.pid;
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/proc/{pid}/ns/net"))
            .arg(format!("--pid=/proc/{pid}/ns/pid_for_children"))
            .args(["--", "nice", "-n", NICE])
            .arg(program.as_ref())
            .stdin(Stdio::null());
        command
    }

    /// The process by which the kernel's tools name this namespace.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Kills everything inside, before this value ends.
    pub fn end(&self) {
        let mut holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = holder.kill();
        let _ = holder.wait();
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.end();
    }
}

/// A command in the network namespace of the process `pid`, but not in its namespace of processes.
pub fn inside(pid: u32, program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/proc/{pid}/ns/net")).arg("--").arg(program.as_ref());
    command
}

/// Waits for the line with which a program says that it has started.
pub fn expect_ready(out: &mut impl BufRead, who: &str) -> Result<()> {
    let mut line = String::new();
    out.read_line(&mut line)?;
    ensure!(line.trim() == "ready", "{who} did not start");
    Ok(())
}

/// Runs a command that says nothing when it succeeds.
pub fn run(command: &mut Command) -> Result<()> {
    let out = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let error = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{command:?}: {}", error.trim());
    Ok(())
}
