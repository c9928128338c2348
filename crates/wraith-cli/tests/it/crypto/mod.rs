//! `wraith crypto` as a process: its output, its messages about damage, and its compatibility with
//! other programs.

mod container;
mod endings;
mod keys;
mod openssl;
mod prompt;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::{World, schema};

/// Runs the program in a folder of its own.
struct Bench {
    world: World,
}

impl Bench {
    fn new() -> Self {
        Self { world: World::new() }
    }

    /// Makes a bench with these files.
    fn with(files: &[(&str, &[u8])]) -> Self {
        let bench = Self::new();
        files.iter().for_each(|(name, bytes)| bench.write(name, bytes));
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.world.source().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Returns the names of all files in the folder.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.world.source()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Returns a `wraith crypto …` command in the folder.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.world.wraith("one");
        command.current_dir(self.world.source()).arg("crypto").args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// The same with standard input.
    fn run_with(&self, words: &[&str], stdin: &[u8]) -> Output {
        let mut child = self.command(words).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let bytes = stdin.to_vec();
        // The program may end before it has read everything.
        let writer = std::thread::spawn(move || drop(pipe.write_all(&bytes)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        output
    }

    /// Runs a command that must succeed. Returns its standard output.
    #[track_caller]
    fn ok(&self, words: &[&str]) -> Vec<u8> {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        output.stdout
    }

    /// Runs a command that must fail with this code, with one or two lines of message and an empty
    /// standard output. Returns the message.
    #[track_caller]
    fn fails(&self, words: &[&str], code: i32) -> String {
        let output = self.run(words);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(output.stdout.is_empty(), "{words:?} wrote something");
        assert!(said.starts_with("wraith: ") && said.lines().count() <= 3, "{words:?}: {said}");
        said
    }

    /// Runs a command with `--json`. Returns its events, checked against the schema.
    fn events(&self, words: &[&str], code: i32) -> Vec<serde_json::Value> {
        let mut words = words.to_vec();
        words.push("--json");
        let output = self.run(&words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", said(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let events: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for event in &events {
            assert_eq!(schema::fault(event), None, "{event}");
        }
        events
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns pseudorandom bytes, the same in every run.
fn bytes(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
