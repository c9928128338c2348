//! The programs of one condition, for people or for scripts, and their results.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::World;

/// Time after which a program counts as hung.
const HANG: Duration = Duration::from_secs(60);
const LOOK_PACE: Duration = Duration::from_millis(10);

/// The environment of one condition.
pub struct Scene {
    pub world: World,
    pub json: bool,
}

/// A running program.
pub struct Side {
    name: String,
    child: Child,
    json: bool,
    /// Files with its standard output and standard error.
    printed: std::path::PathBuf,
    said: std::path::PathBuf,
}

/// The result of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub exit: i32,
    /// First sentence of the failure; empty for a success.
    pub sentence: String,
}

impl Scene {
    pub fn new(json: bool) -> Self {
        let world = World::new();
        world.file("film.mov", 1, 3_000_000);
        Self { world, json }
    }

    /// Starts the program with these words, in the source folder, as the side `name`.
    pub fn start(&self, name: &str, words: &[&str]) -> Side {
        self.start_with(name, words, "", |_| {})
    }

    /// The same with `input` on standard input, and with `change` applied to the command.
    pub fn start_with(
        &self,
        name: &str,
        words: &[&str],
        input: &str,
        change: impl FnOnce(&mut Command),
    ) -> Side {
        let at = |what: &str| self.world.path(&format!("{name}-{what}"));
        let mut command = self.world.wraith(name);
        command.args(words).args(self.json.then_some("--json")).current_dir(self.world.source());
        fs::write(at("input"), input).unwrap();
        command.stdin(Stdio::from(File::open(at("input")).unwrap()));
        command.stdout(File::create(at("printed")).unwrap());
        command.stderr(File::create(at("said")).unwrap());
        change(&mut command);
        let child = command.spawn().unwrap();
        let (printed, said) = (at("printed"), at("said"));
        Side { name: name.to_owned(), child, json: self.json, printed, said }
    }

    /// Starts a sender of the film with more words. Returns it with its ticket or code.
    pub fn send(&self, more: &[&str]) -> (Side, String) {
        let words = [&["send", "--listen", "127.0.0.1:0", "film.mov"], more].concat();
        let sender = self.start("sender", &words);
        let shown = sender.wait_for("wraith receive ");
        (sender, shown)
    }

    /// Starts a receiver into the target folder.
    pub fn receive(&self, name: &str, wanted: &str, more: &[&str]) -> Side {
        let target = self.world.target();
        let words = ["receive", "--yes", "-o", target.to_str().unwrap(), wanted];
        self.start(name, &[&words, more].concat())
    }

    /// Starts a transfer of three seconds by ticket, and waits until some data has arrived.
    pub fn under_way(&self, more: &[&str]) -> (Side, Side) {
        let (sender, ticket) = self.send(&[&["--ticket", "--rate", "1M"], more].concat());
        let receiver = self.receive("receiver", &ticket, more);
        let arrives = || fs::read_dir(self.world.target()).unwrap().next().is_some();
        until("something arrives", arrives);
        (sender, receiver)
    }

    /// Replaces the parts of a sentence that differ in each run.
    pub fn without_chance(&self, sentence: &str) -> String {
        let folder = self.world.path("").display().to_string();
        let words = sentence.replace(&folder, "…/");
        let mut words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        for at in 0..words.len() {
            let is_number = at > 0 && ["number", "process"].contains(&&*words[at - 1]);
            let word = &mut words[at];
            if let Some(port) = word.find("127.0.0.1:") {
                let rest = &word[port + 10..];
                let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                *word = format!("{}127.0.0.1:PORT{}", &word[..port], &rest[end..]);
            } else if word.len() == 12 && word.chars().all(|c| c.is_ascii_hexdigit()) {
                *word = "ID".into();
            } else if is_number {
                *word = word.replace(|c: char| c.is_ascii_digit(), "");
                word.insert(0, 'N');
            } else if word.starts_with("20") && word.contains('T') && word.contains("Z") {
                *word = "TIME;".into();
            }
        }
        words.join(" ")
    }
}

impl Side {
    fn text(path: &Path) -> String {
        String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
    }

    /// Waits until the program has written `words`. Returns the word behind them.
    pub fn wait_for(&self, words: &str) -> String {
        let mut found = None;
        until(&format!("{} says {words:?}", self.name), || {
            let all = Self::text(&self.printed) + &Self::text(&self.said);
            let rest = all.split_once(words).map(|(_, rest)| rest.to_owned());
            let end = rest.as_ref().and_then(|r| r.find([' ', '"', '\n', ',']));
            found = rest.zip(end).map(|(rest, end)| rest[..end].to_owned());
            found.is_some()
        });
        found.expect("it was found")
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: kill has no memory effects. The child has not been waited for, so the pid is
        // still its own.
        assert_eq!(unsafe { libc::kill(self.child.id() as libc::pid_t, signal) }, 0);
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end.
    pub fn end(mut self) -> End {
        let mut status = None;
        until(&format!("{} ends", self.name), || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let exit = status.and_then(|status| status.code()).expect("it ends by itself");
        let (printed, said) = (Self::text(&self.printed), Self::text(&self.said));
        let sentence = match (exit, self.json) {
            (0, _) => String::new(),
            (_, true) => {
                // If standard output carries data, events go to standard error.
                let events = if printed.is_empty() { &said } else { &printed };
                let last = events.lines().last().unwrap_or_default();
                let event: serde_json::Value = serde_json::from_str(last)
                    .unwrap_or_else(|_| panic!("{}: the last line is no event: {last}", self.name));
                assert_eq!(event["event"], "error", "{last}");
                assert_eq!(event["exit"], exit, "{last}");
                event["message"].as_str().unwrap().to_owned()
            }
            (_, false) => {
                let mut lines = said.lines().filter_map(|line| line.strip_prefix("wraith: "));
                lines.next_back().unwrap_or_else(|| panic!("{}: {said}", self.name)).to_owned()
            }
        };
        End { exit, sentence }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a condition that another process fulfils.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + HANG;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::sleep(LOOK_PACE);
    }
}
