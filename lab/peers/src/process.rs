//! The second process of a race on one machine, and what a process costs.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// This program again, as `… serve`; it ends with this process.
#[derive(Debug)]
pub struct ServerProcess(Child);

impl ServerProcess {
    /// Starts it with the options of this process; returns the first line it prints, which says where it listens.
    ///
    /// # Errors
    /// It does not start, or ends before it listens.
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

/// Keeps this thread, and those it starts, on one CPU.
///
/// # Errors
/// There is no such CPU, or it may not be used.
pub fn pin_to(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    ensure!(cpu < CpuSet::MAX_CPU, "there is no CPU {cpu}");
    set.set(cpu);
    sched_setaffinity(None, &set).with_context(|| format!("cannot run on CPU {cpu}"))
}
