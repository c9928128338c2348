//! A network namespace with only loopback. Programs that look for servers on the Internet find
//! none, and connect to each other directly. Making the namespace needs no privileges if the kernel
//! allows that.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

/// A namespace that ends when this value is dropped, or with this process: its first process waits
/// for the end of its input.
#[derive(Debug)]
pub struct Isolated(Child);

impl Isolated {
    /// # Errors
    /// The kernel does not allow it, or `unshare` and `ip` are missing.
    pub fn start() -> Result<Self> {
        let script = "ip link set lo up && echo up && exec cat";
        let mut holder = Command::new("unshare")
            .args(["--map-root-user", "--net", "sh", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("unshare is not installed")?;
        let mut line = String::new();
        let stdout = holder.stdout.take().context("it has no output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let isolated = Self(holder);
        ensure!(line.trim() == "up", "this machine cannot create a network namespace");
        Ok(isolated)
    }

    /// Returns a command that runs `program` in the namespace, as a child of this process.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--user", "--net", "--preserve-credentials", "--target"]);
        command.arg(self.0.id().to_string()).arg("--").arg(program);
        command
    }
}

impl Drop for Isolated {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
