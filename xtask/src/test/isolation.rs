//! What a test must not inherit from the shell, the machine, or another test.
//!
//! | inherited | a test gets |
//! |---|---|
//! | network (ports, multicast groups, addresses) | a network namespace with a loopback interface, if the run has root |
//! | controlling terminal, process group | a session of its own |
//! | standard input | `/dev/null` |
//! | ignored signals | every signal at its default |
//! | file mode mask, limit of open files | 022, 1024 (or the hard limit, if that is lower) |
//! | `WRAITH_*`, proxies, `NO_COLOR`, `RUST_LOG` | none, except the two that keep a test off the DHT and the router |

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;
use rustix::fs::Mode;
use rustix::process::{Pid, Resource, Rlimit, Signal};

use super::binaries::Case;
use crate::OFFLINE;

/// Variables that change what wraith or a tool of a test does.
const VARIABLES: [&str; 11] = [
    "NO_COLOR",
    "CLICOLOR_FORCE",
    "RUST_LOG",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "GREP_OPTIONS",
    "POSIXLY_CORRECT",
];

/// Names the program under test, if it is not the one that cargo built with the tests.
const PROGRAM: &str = "WRAITH_PROGRAM";

/// Signals that a shell or a script may have set to be ignored: those that a terminal or `kill` sends.
const SIGNALS: [i32; 9] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGUSR1,
    libc::SIGXFSZ,
];

/// Soft limit of open files: the usual default.
const OPEN_FILES: u64 = 1024;

/// Brings up the loopback interface of a new network namespace, keeps the port of the local network out of the range from which
/// the kernel picks ports, and becomes the test.
const ENTER: &str = "ip link set lo up || exit 99
echo 49737 > /proc/sys/net/ipv4/ip_local_reserved_ports 2>/dev/null
exec \"$0\" \"$@\"";

/// Sets signals, mask and limits of this process to their defaults; tests inherit them.
pub fn reset_this_process() -> Result<()> {
    for signal in SIGNALS {
        // SAFETY: the default action is set before this program has set any handler, and no memory is involved.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let Rlimit { maximum, .. } = rustix::process::getrlimit(Resource::Nofile);
    let current = Some(maximum.map_or(OPEN_FILES, |maximum| maximum.min(OPEN_FILES)));
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current, maximum })?;
    Ok(())
}

/// Removes the variables of the caller that change a test.
pub fn set_environment(command: &mut Command) {
    let own = std::env::vars_os().map(|(name, _)| name);
    let own = own.filter(|name| name.to_string_lossy().starts_with("WRAITH_"));
    for name in own.filter(|name| name != PROGRAM) {
        command.env_remove(name);
    }
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.envs(OFFLINE);
}

/// Whether tests get a network namespace each.
pub fn has_namespaces() -> bool {
    cfg!(target_os = "linux")
        && rustix::process::geteuid().is_root()
        && Command::new("unshare").args(["--net", "true"]).status().is_ok_and(|s| s.success())
}

/// The command that runs one test.
pub fn command(case: &Case, namespaces: bool) -> Command {
    let mut command = if cfg!(target_os = "linux") {
        let mut command = Command::new("setsid");
        if namespaces {
            command.args(["unshare", "--net", "sh", "-c", ENTER]);
        }
        command.arg(&case.binary.path);
        command
    } else {
        Command::new(&case.binary.path)
    };
    if let Some(test) = &case.test {
        command.args(["--exact", test]);
    }
    command.arg("--include-ignored");
    set_environment(&mut command);
    command.envs(case.variables.iter().copied());
    // With a single thread the harness would run the test on its main thread, which has not the test's name.
    command.env("RUST_TEST_THREADS", "2").env("CARGO_MANIFEST_DIR", &case.binary.folder);
    command.current_dir(&case.binary.folder).stdin(Stdio::null());
    command
}

/// Kills the process and every other process in its network namespace; without a namespace its process group.
pub fn kill(process: Pid, namespaces: bool) {
    let own = namespace_of(&Pid::as_raw(Some(process)).to_string());
    // A namespace that is also this program's is none of the test's.
    if namespaces && own.is_some() && own != namespace_of("self") {
        let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
        let others = folders.filter_map(|entry| entry.file_name().into_string().ok());
        for other in others.filter(|other| namespace_of(other) == own) {
            if let Some(pid) = other.parse().ok().and_then(Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }
    let _ = rustix::process::kill_process_group(process, Signal::KILL);
    let _ = rustix::process::kill_process(process, Signal::KILL);
}

/// Name of the network namespace of a process.
fn namespace_of(process: &str) -> Option<std::path::PathBuf> {
    fs::read_link(Path::new("/proc").join(process).join("ns/net")).ok()
}
