//! A network namespace that leaves nothing behind.
//!
//! Invariant: one process holds each network namespace and its PID namespace. It ends when its
//! standard input is closed, and the kernel then kills everything inside. So a failed run, Ctrl-C
//! and kill -9 of this program all end the same way. The namespaces have no names, so a run never
//! meets a stale one.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

/// Priority of everything in the lab, so that other work on the machine is not measured. Waiting
/// for a processor slows a transport in user space but not one in the kernel, so a busy machine
/// would be unfair to the former.
const NICE: &str = "-18";

/// A separate network and PID namespace; it ends when this value is dropped.
#[derive(Debug)]
pub struct Namespace {
    pid: u32,
    holder: Mutex<Child>,
}

impl Namespace {
    /// Creates a namespace with only loopback, and applies these settings: paths below /proc/sys,
    /// and their values.
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

    /// Returns a command that will run in the namespace. Killing its child process does not kill
    /// the program itself; only the end of the namespace does.
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

    /// The process id by which the kernel's tools address this namespace.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Kills everything inside before this value is dropped.
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

/// Returns a command in the network namespace of the process `pid`, but not in its PID namespace.
pub fn inside(pid: u32, program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/proc/{pid}/ns/net")).arg("--").arg(program.as_ref());
    command
}

/// Waits for the line with which a program reports that it has started.
pub fn expect_ready(out: &mut impl BufRead, who: &str) -> Result<()> {
    let mut line = String::new();
    out.read_line(&mut line)?;
    ensure!(line.trim() == "ready", "{who} did not start");
    Ok(())
}

/// Runs a command that prints nothing on success.
pub fn run(command: &mut Command) -> Result<()> {
    let out = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let error = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{command:?}: {}", error.trim());
    Ok(())
}
