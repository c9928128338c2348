//! Shared parts of the process tests: the real binary with its JSON events, trees of files, and a
//! comparison independent of the program.
//!
//! Invariant: a test only waits for an event of a process or for its end. The deadline merely turns
//! a hang into a failure.

pub mod cable;
pub mod clock;
pub mod contacts;
pub mod disk_image;
pub mod hostile;
pub mod journal;
pub mod lan;
mod noise;
pub mod odd_disk;
pub mod process;
mod process_state;
pub mod proxy;
pub mod pty;
pub mod random;
pub mod relay_recorder;
pub mod schema;
pub mod tree;

/// Defines a test for each line, which calls a function.
macro_rules! cases {
    ($($name:ident: $run:ident($($argument:expr),*);)*) => {
        $(
            #[test]
            fn $name() {
                $run($($argument),*);
            }
        )*
    };
}
pub(crate) use cases;

use std::ffi::OsStr;
use std::io::{PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cable::Cable;
use lan::OwnNetwork;
use process_state::Watchdog;

pub use process::{Outcome, Process};

/// Arguments for the local network that a test sees.
pub const LOOPBACK: &[&str] = &["--lan", "lo"];

/// A user without any files.
const NOBODY: u32 = 65_534;

/// Returns the program under test: the one in `WRAITH_PROGRAM`, such as a release build, or else the
/// one that cargo built with the tests.
fn program() -> PathBuf {
    let named = std::env::var_os("WRAITH_PROGRAM");
    named.map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_wraith")), PathBuf::from)
}

/// Returns a code with the same nameplate and other words.
pub fn other_words(code: &str) -> String {
    let number = code.split('-').next().unwrap().parse().unwrap();
    let mut others = (0..2).map(|n| wraith_discovery::Code::new(number, [n; 4]).to_string());
    others.find(|other| other != code).unwrap()
}

/// A folder with everything that two sides need. Drop removes it.
#[derive(Debug)]
pub struct World {
    folder: tempfile::TempDir,
    _watchdog: Watchdog,
}

impl World {
    pub fn new() -> Self {
        process_state::reset_signals();
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = tempfile::Builder::new().prefix("wraith-").tempdir_in(base).unwrap();
        for name in ["source", "target"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, _watchdog: Watchdog::start() }
    }

    /// Makes a world whose source folder has one file of noise. Returns its path, too.
    pub fn with_file(name: &str, seed: u64, len: usize) -> (Self, PathBuf) {
        let world = Self::new();
        let path = world.file(name, seed, len);
        (world, path)
    }

    /// Makes a world whose source folder has one tree. Returns its path, too.
    pub fn with_tree(name: &str, files: &[(&str, usize)]) -> (Self, PathBuf) {
        let world = Self::new();
        let path = world.tree(name, files);
        (world, path)
    }

    /// Writes files of noise, given by path and length, into a folder of the source folder. Their
    /// seeds are 1, 2, and so on. Returns the path of the folder.
    pub fn tree(&self, name: &str, files: &[(&str, usize)]) -> PathBuf {
        let root = self.source().join(name);
        for (seed, (path, len)) in (1..).zip(files) {
            tree::file(&root.join(path), seed, *len);
        }
        root
    }

    /// Writes a file of noise into the source folder and returns its path.
    pub fn file(&self, name: &str, seed: u64, len: usize) -> PathBuf {
        let path = self.source().join(name);
        tree::file(&path, seed, len);
        path
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

    /// Returns a command of the program, with the identity and state of one side.
    pub fn wraith(&self, side: &str) -> Command {
        let mut command = Command::new(program());
        command.env("WRAITH_HOME", self.path(&format!("home-{side}")));
        command.env_remove("NO_COLOR");
        command.env_remove("WRAITH_RENDEZVOUS");
        // No test uses the real network of the machine.
        for way in ["WRAITH_LAN", "WRAITH_DHT", "WRAITH_PORT_MAPPING"] {
            command.env(way, "off");
        }
        // The relays of tests are on this machine.
        command.env("WRAITH_PEER_RELAYS", "any");
        for variable in [
            "WRAITH_RELAY",
            "WRAITH_RELAY_TOKEN",
            "WRAITH_PROXY",
            "WRAITH_BACKENDS",
            "WRAITH_KERNELS",
        ] {
            command.env_remove(variable);
        }
        for variable in ["HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
            command.env_remove(variable).env_remove(variable.to_ascii_lowercase());
        }
        command
    }

    /// Starts a rendezvous server of the program. Returns it with its address.
    pub fn rendezvous(&self) -> (Process, String) {
        let mut command = self.wraith("server");
        let mut server = Process::start(
            "rendezvous",
            command.args(["rendezvous", "--json", "--listen", "127.0.0.1:0"]),
        );
        let address = server.event("listening")["address"].as_str().unwrap().to_owned();
        (server, address)
    }

    /// The same as a user without privileges, to whom file modes apply even if the tests run as
    /// root.
    pub fn wraith_as_nobody(&self, side: &str) -> Command {
        let mut command = self.wraith(side);
        if is_root() {
            let home = self.path(&format!("home-{side}"));
            std::fs::create_dir_all(&home).unwrap();
            // Otherwise only root can enter the folder of the test.
            tree::set_mode(self.folder.path(), 0o755);
            let owner = format!("{NOBODY}:{NOBODY}");
            let given = Command::new("chown").args(["-R", &owner]).arg(&home).status().unwrap();
            assert!(given.success());
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Starts `wraith send --json --ticket` of these paths on loopback, with more arguments.
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

    /// Starts `wraith send --json` of these paths on loopback by code, with more arguments.
    pub fn send_by_code(&self, paths: &[impl AsRef<OsStr>], more: &[&str]) -> Process {
        let mut command = self.wraith("sender");
        command.args(["send", "--json", "--listen", "127.0.0.1:0"]).args(more);
        Process::start("send", command.args(paths))
    }

    /// Starts `wraith receive --json --yes` into the target folder, with more arguments.
    pub fn receive_with(&self, ticket: &str, more: &[&str]) -> Process {
        let mut command = self.wraith("receiver");
        command.args(["receive", "--json", "--yes", "-o"]).arg(self.target());
        Process::start("receive", command.args(more).arg(ticket))
    }

    /// Starts `wraith receive --json` of one side into a folder of its name. It waits at the question
    /// for a line from the pipe.
    pub fn receive_asking(&self, side: &str, ticket: &str) -> (Process, PipeWriter) {
        let (reader, answer) = std::io::pipe().unwrap();
        let mut command = self.wraith(side);
        command.args(["receive", "--json", "-o"]).arg(self.path(side)).arg(ticket);
        (Process::start_with_stdin("receive", command.stdin(reader)), answer)
    }

    pub fn receive(&self, ticket: &str) -> Process {
        self.receive_with(ticket, &[])
    }

    /// Sends these paths to the target folder. Both sides must succeed.
    pub fn transfer(&self, paths: &[impl AsRef<OsStr>]) -> (Outcome, Outcome) {
        let mut sender = self.send(paths);
        let receiver = self.receive(&sender.ticket());
        let received = receiver.succeed();
        let sent = sender.succeed();
        (sent, received)
    }
}

/// Waits until both sides have succeeded, and compares `source` with its copy in `folder`.
#[track_caller]
pub fn expect_arrival(receiver: Process, sender: Process, source: &Path, folder: &Path) {
    receiver.succeed();
    sender.succeed();
    tree::assert_same(source, &folder.join(source.file_name().unwrap()));
}

/// Sends a file `film.mov` by ticket in a world of its own, with more arguments. Returns the path
/// of the file, the sender, and the ticket, too.
pub fn offering(len: usize, more: &[&str]) -> (World, PathBuf, Process, String) {
    let (world, film) = World::with_file("film.mov", 1, len);
    let mut sender = world.send_with(&[&film], more);
    let ticket = sender.ticket();
    (world, film, sender, ticket)
}

/// Sends a file `film.mov` by code in a world and a network of its own, with more arguments.
/// Returns the path of the file, the sender, and the code, too.
pub fn sending(len: usize, more: &[&str]) -> (OwnNetwork, World, PathBuf, Process, String) {
    let network = lan::own_network();
    let (world, film) = World::with_file("film.mov", 1, len);
    let mut sender = world.send_by_code(&[&film], &[LOOPBACK, more].concat());
    let code = sender.code();
    (network, world, film, sender, code)
}

/// Calls `run` with a cable between two private IPv4 addresses.
pub fn on_ipv4(run: impl Fn(&Cable)) {
    on(Cable::new(Some(["10.73.0.1/24", "10.73.0.2/24"])), run);
}

/// Calls `run` with a cable between two link-local IPv6 addresses.
pub fn on_ipv6(run: impl Fn(&Cable)) {
    on(Cable::new(None).inspect(Cable::wait_for_ipv6), run);
}

fn on(cable: Option<Cable>, run: impl Fn(&Cable)) {
    match cable {
        Some(cable) => run(&cable),
        None => skipped("network namespaces need root and ip"),
    }
}

/// Returns whether the tests run as root, which may mount and bypasses file modes.
pub fn is_root() -> bool {
    let uid = Command::new("id").arg("-u").output().unwrap().stdout;
    uid.trim_ascii() == b"0"
}

/// Returns the number of rounds of a test that repeats itself: `WRAITH_TEST_ROUNDS`, or `few`.
pub fn rounds(few: u64) -> u64 {
    let named = std::env::var("WRAITH_TEST_ROUNDS").ok();
    named.map_or(few, |rounds| rounds.parse().unwrap())
}

/// Reports why a test proved nothing here. It bypasses the harness, which hides the output of a
/// passing test, and has the form that `cargo xtask test` counts.
pub fn skipped(why: &str) {
    say("skipped", why);
}

/// The same for a reason that no installation could change, so that CI does not fail for it.
pub fn unchecked(why: &str) {
    say("unchecked", why);
}

fn say(what: &str, why: &str) {
    let thread = std::thread::current();
    let line = format!("{what}: {}: {why}\n", thread.name().unwrap_or("a test"));
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}
