//! What the process tests share: the real binary with its JSON events, trees of files, and a comparison that trusts
//! nothing of the program.
//!
//! Waiting is always for an event of a process or for its end. The deadline only turns a hang into a failure.

pub mod cable;
pub mod contacts;
pub mod disk_image;
pub mod hostile;
pub mod journal;
pub mod lan;
pub mod process;
pub mod proxy;
pub mod pty;
pub mod random;
pub mod schema;
pub mod tree;

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use process::{Outcome, Process};

/// A user who owns nothing.
const NOBODY: u32 = 65_534;

/// The program under test: the one cargo built along with the tests, or the one named by `WRAITH_PROGRAM`. The latter is how
/// `cargo xtask test` has the release build tested without compiling every test with its optimizations.
fn program() -> PathBuf {
    let named = std::env::var_os("WRAITH_PROGRAM");
    named.map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_wraith")), PathBuf::from)
}

/// A code with the same number and other words.
pub fn other_words(code: &str) -> String {
    let number = code.split('-').next().unwrap().parse().unwrap();
    let mut others = (0..2).map(|n| wraith_discovery::Code::new(number, [n; 4]).to_string());
    others.find(|other| other != code).unwrap()
}

/// A folder with a place for everything two sides need; removed in the end.
#[derive(Debug)]
pub struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub fn new() -> Self {
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = tempfile::Builder::new().prefix("wraith-").tempdir_in(base).unwrap();
        for name in ["source", "target"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn source(&self) -> PathBuf {
        self.path("source")
    }

    pub fn target(&self) -> PathBuf {
        self.path("target")
    }

    /// The program, with the identity and state of one side.
    pub fn wraith(&self, side: &str) -> Command {
        let mut command = Command::new(program());
        command.env("WRAITH_HOME", self.path(&format!("home-{side}")));
        command.env_remove("NO_COLOR");
        command.env_remove("WRAITH_RENDEZVOUS");
        // No test speaks to the network it happens to run on.
        for way in ["WRAITH_LAN", "WRAITH_DHT", "WRAITH_PORT_MAPPING"] {
            command.env(way, "off");
        }
        for variable in ["WRAITH_RELAY", "WRAITH_RELAY_TOKEN", "WRAITH_PROXY"] {
            command.env_remove(variable);
        }
        for variable in ["HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
            command.env_remove(variable).env_remove(variable.to_ascii_lowercase());
        }
        command
    }

    /// A rendezvous server of the program, and its address.
    pub fn rendezvous(&self) -> (Process, String) {
        let mut command = self.wraith("server");
        let mut server = Process::start(
            "rendezvous",
            command.args(["rendezvous", "--json", "--listen", "127.0.0.1:0"]),
        );
        let address = server.event("listening")["address"].as_str().unwrap().to_owned();
        (server, address)
    }

    /// The same for a user whom modes stop, even where the tests run as root.
    pub fn wraith_as_nobody(&self, side: &str) -> Command {
        let mut command = self.wraith(side);
        if is_root() {
            let home = self.path(&format!("home-{side}"));
            std::fs::create_dir_all(&home).unwrap();
            // The folder of the test is for root alone otherwise.
            tree::set_mode(self.folder.path(), 0o755);
            let owner = format!("{NOBODY}:{NOBODY}");
            let given = Command::new("chown").args(["-R", &owner]).arg(&home).status().unwrap();
            assert!(given.success());
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// `wraith send --json --ticket` of these paths on loopback, with more arguments.
    pub fn send_with(&self, paths: &[impl AsRef<OsStr>], more: &[&str]) -> Process {
        let mut command = self.wraith("sender");
        command.args(["send", "--json", "--ticket"]).args(more);
        if !more.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        Process::start("send", command.args(paths))
    }

    pub fn send(&self, paths: &[impl AsRef<OsStr>]) -> Process {
        self.send_with(paths, &[])
    }

    /// `wraith send --json` of these paths on loopback by code, with more arguments.
    pub fn send_by_code(&self, paths: &[impl AsRef<OsStr>], more: &[&str]) -> Process {
        let mut command = self.wraith("sender");
        command.args(["send", "--json", "--listen", "127.0.0.1:0"]).args(more);
        Process::start("send", command.args(paths))
    }

    /// `wraith receive --json --yes` into the target folder, with more arguments.
    pub fn receive_with(&self, ticket: &str, more: &[&str]) -> Process {
        let mut command = self.wraith("receiver");
        command.args(["receive", "--json", "--yes", "-o"]).arg(self.target());
        Process::start("receive", command.args(more).arg(ticket))
    }

    pub fn receive(&self, ticket: &str) -> Process {
        self.receive_with(ticket, &[])
    }

    /// Sends everything in the source folder to the target folder; both sides must succeed.
    pub fn transfer(&self, paths: &[impl AsRef<OsStr>]) -> (Outcome, Outcome) {
        let mut sender = self.send(paths);
        let receiver = self.receive(&sender.ticket());
        let received = receiver.finish();
        received.expect_exit(0);
        let sent = sender.finish();
        sent.expect_exit(0);
        (sent, received)
    }
}

/// Whether the tests run as root, who may mount and is stopped by no mode.
pub fn is_root() -> bool {
    let uid = Command::new("id").arg("-u").output().unwrap().stdout;
    uid.trim_ascii() == b"0"
}

/// Says why a test proved nothing here: past the harness, which keeps what a passing test prints to itself, and in the form
/// that `cargo xtask test` counts.
pub fn skipped(why: &str) {
    say("skipped", why);
}

/// The same of what nothing that is installed could change, so that CI does not fail for it.
pub fn unchecked(why: &str) {
    say("unchecked", why);
}

fn say(what: &str, why: &str) {
    let thread = std::thread::current();
    let line = format!("{what}: {}: {why}\n", thread.name().unwrap_or("a test"));
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}
