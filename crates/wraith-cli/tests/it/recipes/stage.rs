//! Runs the commands of a recipe in a shell, each at a terminal. Each machine is a folder with its
//! own home.
//!
//! The stage replaces the parts of a command that the reader replaces too: the code, the ticket, a
//! NodeId, the name of a server. It adds the side that a recipe leaves out: a sender for a
//! receiver, or receivers for a sender.

use std::fs;
use std::num::NonZero;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::blocks::{missing_line, without_comment};
use crate::support::process::HANG;
use crate::support::proxy::{Proxy, Speaks};
use crate::support::pty::Terminal;
use crate::support::{World, is_root, tree};

const SHORT_CODE: &str = "7-crater-lemon";
const LONG_CODE: &str = "crater-lemon-forest-piano-silver-velvet";
const SERVER: &str = "server.example";
const PROXY: &str = "proxy.example:1080";

/// Options that both sides must have.
const PLACES: [&str; 3] = ["--relay", "--rendezvous", "--policy"];
/// Size of the terminals: no documented line is wrapped, and no output scrolls away.
const ROWS: NonZero<u16> = NonZero::new(80).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(120).unwrap();

/// Questions of the program, and the answers of the reader.
const ANSWERS: [(&str, &str); 5] = [
    ("Accept? [y/N/l = list]", "y\n"),
    ("or decide for [e]ach? [r] ", "\n"),
    ("as a contact? Type a name, Enter for no, or never: ", "\n"),
    ("Passphrase: ", "seven red lamps\n"),
    ("Repeat the passphrase: ", "seven red lamps\n"),
];

/// The role of a command, which decides when the next command may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Waits for this number of receivers.
    Sender(usize),
    /// Serves any number of receivers until Ctrl-C.
    Keeper,
    /// Makes a code, and waits for a sender.
    Inviter,
    /// Runs until Ctrl-C.
    Server,
    /// Ends by itself.
    Other,
}

impl Role {
    fn of(line: &str) -> Self {
        let line = without_comment(line);
        let has = |words: &str| line.contains(words);
        match () {
            () if has("wraith relay") || has("wraith rendezvous") || has("wraith listen") => {
                Self::Server
            }
            () if has("wraith receive --code") => Self::Inviter,
            () if has("wraith send") && has(" --keep") => Self::Keeper,
            () if has("wraith send") && !has(" --to ") && !has(" --code ") => {
                let receivers = line.split_once(" -n ").map_or("1", |(_, rest)| rest);
                Self::Sender(receivers.split(' ').next().unwrap().parse().unwrap())
            }
            () => Self::Other,
        }
    }
}

/// A running command.
struct Running {
    line: String,
    role: Role,
    group: u32,
    screen: Arc<Screen>,
    end: JoinHandle<(ExitStatus, String)>,
    documented: Vec<String>,
}

/// The output of a command so far.
#[derive(Default)]
struct Screen {
    shown: Mutex<Shown>,
    changed: Condvar,
}

#[derive(Default)]
struct Shown {
    text: String,
    /// Whether the command has ended.
    is_complete: bool,
}

/// The machines of one recipe.
pub struct Stage {
    world: World,
    /// The meeting places that the commands do not name.
    environment: Vec<(String, String)>,
    /// The machine whose NodeId `NODEID` stands for.
    node_id_of: &'static str,
    proxy: Option<Proxy>,
    running: Vec<Running>,
    short_code: Option<String>,
    long_code: Option<String>,
    ticket: Option<String>,
    server: Option<String>,
    /// Words of the last sender's command that the receivers need, too.
    place: String,
    /// The machine that used the last code without fetching.
    dry: Option<String>,
}

impl Stage {
    pub fn new(environment: Vec<(String, String)>, node_id_of: &'static str) -> Self {
        let world = World::new();
        let program = world.wraith("here").get_program().to_owned();
        fs::create_dir(world.path("programs")).unwrap();
        symlink(program, world.path("programs/wraith")).unwrap();
        Self {
            world,
            environment,
            node_id_of,
            proxy: None,
            running: Vec::new(),
            short_code: None,
            long_code: None,
            ticket: None,
            server: None,
            place: String::new(),
            dry: None,
        }
    }

    /// Runs a command, and waits until the next one may start. `documented` is the output that must
    /// appear.
    pub fn run(&mut self, machine: &str, line: &str, documented: &[String]) {
        let role = Role::of(line);
        if matches!(role, Role::Sender(_) | Role::Keeper) {
            self.settle();
            self.place = place_of(line);
        }
        let line = self.filled_in(line);
        self.make_files(machine, &line);
        let running = self.start(machine, &line, role, documented);
        match role {
            Role::Other => {
                running.expect_end(0);
                match is_receiver(&line) {
                    true if line.contains("--dry-run") => self.dry = Some(machine.to_owned()),
                    true => self.received(),
                    false if line.contains("wraith send") => self.settle(),
                    false => {}
                }
            }
            Role::Server => {
                let text = running
                    .wait_for(|text| text.contains("Ctrl-C stops.").then(|| text.to_owned()));
                let address = between(&text, "Listening on ", ' ');
                let address = address.map(|address| address.replace("[::]", "127.0.0.1"));
                self.server = address.or(self.server.take());
                self.running.push(running);
            }
            Role::Inviter => {
                self.short_code =
                    Some(running.wait_for(|text| between(text, "send --code ", '\r')));
                self.running.push(running);
            }
            Role::Sender(_) | Role::Keeper => {
                self.take_codes(&running);
                self.running.push(running);
            }
        }
    }

    /// Completes the transfers that the recipe has begun, and stops its servers.
    pub fn finish(&mut self) {
        self.settle();
        for server in std::mem::take(&mut self.running) {
            server.interrupt();
            server.expect_end(130);
        }
    }

    /// Fetches from the sender as often as it waits, and waits for the end of both sides.
    fn settle(&mut self) {
        while let Some(at) = self.running.iter().rposition(|one| one.role != Role::Server) {
            let left = match self.running[at].role {
                Role::Inviter => {
                    self.running.remove(at).expect_end(0);
                    continue;
                }
                Role::Sender(left) => left,
                _ => 1,
            };
            let machine = self.dry.take().unwrap_or_else(|| format!("reader{left}"));
            let code = self.short_code.as_deref().map_or("TICKET", |_| SHORT_CODE);
            let line = format!("wraith receive {code} --yes -o fetched{}", self.place);
            self.run(&machine, &line, &[]);
        }
    }

    /// Counts a receiver for the running sender, which ends after its last one.
    fn received(&mut self) {
        let is_sender = |one: &Running| matches!(one.role, Role::Sender(_) | Role::Keeper);
        let at = self.running.iter().rposition(is_sender).expect("a sender");
        match &mut self.running[at].role {
            Role::Sender(left) if *left > 1 => *left -= 1,
            Role::Keeper => {
                let keeper = self.running.remove(at);
                keeper.wait_for(|text| text.contains(" served.").then_some(()));
                keeper.interrupt();
                keeper.expect_end(0);
            }
            _ => self.running.remove(at).expect_end(0),
        }
    }

    /// Reads the code or ticket, and the long code if the DHT is on.
    fn take_codes(&mut self, sender: &Running) {
        let dht =
            self.environment.iter().any(|(name, value)| name == "WRAITH_DHT" && value == "on");
        let is_json = sender.line.contains("--json");
        let (before, end) = if is_json {
            ("\"command\":\"wraith receive ", '"')
        } else {
            ("wraith receive ", '\r')
        };
        let first = sender.wait_for(|text| between(text, before, end));
        (self.short_code, self.ticket, self.dry) = (None, None, None);
        match first.starts_with(|c: char| c.is_ascii_digit()) && first.len() < 60 {
            true => self.short_code = Some(first),
            false => self.ticket = Some(first),
        }
        if dht {
            let long = sender.wait_for(|text| {
                between(text.split_once("From any other network:")?.1, before, end)
            });
            self.long_code = Some(long);
        }
    }

    /// Returns the command with the values of its placeholders. A code without a sender gets one.
    fn filled_in(&mut self, line: &str) -> String {
        let wants = |word: &str| without_comment(line).split(' ').any(|one| one == word);
        let is_sender = matches!(Role::of(line), Role::Sender(_) | Role::Keeper);
        if !is_sender && wants(SHORT_CODE) && self.short_code.is_none() {
            self.run("alice", "wraith send holiday/ film.mov", &[]);
        }
        let mut line = line.to_owned();
        let values = [
            (LONG_CODE, &self.long_code),
            (SHORT_CODE, &self.short_code),
            ("TICKET", &self.ticket),
            (SERVER, &self.server),
        ];
        for (placeholder, value) in values {
            if line.contains(placeholder) {
                let value = value.as_ref().unwrap_or_else(|| panic!("no {placeholder}: {line}"));
                line = line.replace(placeholder, value);
            }
        }
        for owner in ["anna", "bob"] {
            let placeholder = format!("NODEID:{owner}");
            if line.contains(&placeholder) {
                line = line.replace(&placeholder, &self.world.node_id(owner));
            }
        }
        if wants("NODEID") {
            assert_ne!(self.node_id_of, "", "a scene must name the machine of NODEID: {line}");
            line = line.replace("NODEID", &self.world.node_id(self.node_id_of));
        }
        if line.contains(PROXY) {
            let proxy = self.proxy.get_or_insert_with(|| Proxy::start(Speaks::Socks5AndUdp));
            line = line.replace(PROXY, &proxy.address.to_string());
        }
        line
    }

    /// Makes the files that the command names.
    fn make_files(&self, machine: &str, line: &str) {
        let folder = self.folder(machine);
        for word in without_comment(line).split(' ') {
            let path = folder.join(word);
            if path.exists() || path.symlink_metadata().is_ok() {
                continue;
            }
            match word {
                "film.mov" | "notes.txt" | "letter" | "release.tar" => {
                    tree::file(&path, 1, 300_000)
                }
                "holiday/" | "photos" => {
                    for (seed, name) in
                        ["a.txt", "b.txt", "sea/c.jpg", ".nomedia"].iter().enumerate()
                    {
                        tree::file(&path.join(name), seed as u64, 1000);
                    }
                }
                _ => {}
            }
        }
    }

    fn folder(&self, machine: &str) -> PathBuf {
        let folder = self.world.path(machine);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn start(&self, machine: &str, line: &str, role: Role, documented: &[String]) -> Running {
        let folder = self.folder(machine);
        // The program takes the place of the shell, which would also end by Ctrl-C.
        let before = if role == Role::Other { "" } else { "exec " };
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{before}{line}")).current_dir(&folder).env("HOME", &folder);
        for (name, value) in self.world.wraith(machine).get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let path = std::env::var("PATH").unwrap();
        let programs = self.world.path("programs");
        command.env("PATH", format!("{}:{path}", programs.display())).env("NO_COLOR", "1");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if !is_root() {
            // The usual ports need a right, and are shared with the machine.
            command.env("WRAITH_RELAY_LISTEN", "127.0.0.1:0");
            command.env("WRAITH_RENDEZVOUS_LISTEN", "127.0.0.1:0");
        }
        let terminal = Terminal::start(&mut command, ROWS.get(), COLUMNS.get());
        let group = terminal.pid();
        let screen = Arc::new(Screen::default());
        let shown = Arc::clone(&screen);
        let end = thread::spawn(move || {
            let (status, text) = terminal.attend(&ANSWERS, |text| shown.show(text, false));
            shown.show(&text, true);
            (status, text)
        });
        let (line, documented) = (format!("{machine}$ {line}"), documented.to_owned());
        Running { line, role, group, screen, end, documented }
    }
}

impl Running {
    /// Waits until `found` finds something in the output.
    fn wait_for<T>(&self, found: impl Fn(&str) -> Option<T>) -> T {
        let deadline = Instant::now() + HANG;
        let mut shown = self.screen.shown.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = found(&shown.text) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let may_come = !left.is_zero() && !shown.is_complete;
            assert!(may_come, "this does not show it: {}\n{}", self.line, shown.text);
            let changed = self.screen.changed.wait_timeout(shown, left);
            shown = changed.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Presses Ctrl-C.
    fn interrupt(&self) {
        // SAFETY: kill has no memory effects. The leader of the group runs, or has not been waited
        // for, until the thread that attends it ends.
        unsafe { libc::kill(-(self.group as libc::pid_t), libc::SIGINT) };
    }

    /// Waits for the end, and checks the exit code and the documented output.
    fn expect_end(self, code: i32) {
        let (status, text) = self.end.join().unwrap_or_else(|_| panic!("{} hangs", self.line));
        // A shell that waits for a pipeline ends by the signal itself.
        let ended = status.code().or(status.signal().map(|signal| 128 + signal));
        assert_eq!(ended, Some(code), "{}\n{text}", self.line);
        let mut terminal = vt100::Parser::new(ROWS, COLUMNS, 0);
        terminal.process(text.as_bytes());
        let screen = terminal.screen().contents();
        if let Some(missing) = missing_line(&self.documented, &screen) {
            panic!("{}\nshows no line like {missing:?}\n{screen}", self.line);
        }
    }
}

impl Screen {
    fn show(&self, text: &str, is_complete: bool) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        *shown = Shown { text: text.to_owned(), is_complete };
        self.changed.notify_all();
    }
}

/// Returns whether the command fetches by a code or ticket.
fn is_receiver(line: &str) -> bool {
    let after = |word: &str| line.split_once(word).map(|(_, rest)| rest.split(' ').next());
    let is_code = |word: &str| word.matches('-').count() >= 2 && !word.starts_with('-');
    line.contains("wraith receive ") || after("wraith ").flatten().is_some_and(is_code)
}

/// Returns the options of a sender that its receivers need, too.
fn place_of(line: &str) -> String {
    let words: Vec<&str> = without_comment(line).split(' ').collect();
    let pairs = words.windows(2).filter(|pair| PLACES.contains(&pair[0]));
    pairs.map(|pair| format!(" {} {}", pair[0], pair[1])).collect()
}

/// Returns the text between `before` and `end`, once `end` is there.
fn between(text: &str, before: &str, end: char) -> Option<String> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(end).map(|(found, _)| found.trim().to_owned())
}
