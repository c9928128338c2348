//! Waits for processes and returns their costs, as counted by the kernel.

use std::io;
use std::process::Child;

use anyhow::{Result, ensure};

/// Cost of one run of one peer.
#[derive(Clone, Debug, Default)]
pub struct Run {
    pub seconds: f64,
    /// Usage of the processes that we started ourselves, by name.
    pub usage: Vec<(&'static str, Usage)>,
}

/// The kernel's count for a process that has ended, and for the children it waited for: the sum of
/// the times, and the largest of the peaks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub peak_rss_bytes: u64,
    /// User and system time.
    pub cpu_seconds: f64,
}

/// Waits for a child to end.
///
/// # Errors
/// The wait fails, or the exit code is not 0.
pub fn wait(child: Child, name: &str) -> Result<Usage> {
    let (status, usage) = wait4(&child)?;
    ensure!(status == 0, "{name} ended with status {status:#x}");
    Ok(usage)
}

/// Waits for a child whose exit status does not matter: one that was killed because it would serve
/// for ever.
///
/// # Errors
/// The wait fails.
pub fn wait_killed(child: Child) -> io::Result<Usage> {
    Ok(wait4(&child)?.1)
}

fn wait4(child: &Child) -> io::Result<(i32, Usage)> {
    let pid = child.id() as libc::pid_t;
    let mut status = 0;
    loop {
        // SAFETY: rusage consists of integers, for which all zeroes is a valid value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers point to locals that outlive the call. `child` has not been waited
        // for: the caller passes it unwaited, and this function waits for it only once.
        let waited = unsafe { libc::wait4(pid, &mut status, 0, &mut usage) };
        if waited == pid {
            return Ok((status, convert(&usage)));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn convert(usage: &libc::rusage) -> Usage {
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    Usage {
        // Linux counts in KiB, macOS in bytes.
        peak_rss_bytes: usage.ru_maxrss as u64 * if cfg!(target_os = "macos") { 1 } else { 1024 },
        cpu_seconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
    }
}
