//! The second process of a race on one machine, and the costs of a process.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// A second process of this program as `… serve`; it ends with this process.
#[derive(Debug)]
pub struct ServerProcess(Child);

impl ServerProcess {
    /// Starts the process with the options of this one. Returns its first line, which contains its
    /// address.
    ///
    /// # Errors
    /// The process does not start, or ends before it listens.
    pub fn start() -> Result<(Self, String)> {
        let child = Command::new(env::current_exe()?)
            .args(env::args_os().skip(1))
            .arg("serve")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut server = Self(child);
        let stdout = server.0.stdout.take().context("the server has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        ensure!(!line.trim().is_empty(), "the server did not start");
        Ok((server, line.trim().to_owned()))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// CPU time of this process so far, user and system.
#[must_use]
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Pins this thread, and those it starts, to one CPU.
///
/// # Errors
/// The CPU does not exist, or may not be used.
pub fn pin_to(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    ensure!(cpu < CpuSet::MAX_CPU, "there is no CPU {cpu}");
    set.set(cpu);
    sched_setaffinity(None, &set).with_context(|| format!("cannot run on CPU {cpu}"))
}
