//! External programs that test a stream of bytes, if they are installed: `dieharder` (Brown) and
//! `ent` (Walker).

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

/// Programs, and arguments with which they read standard input. dieharder runs further tests until
/// its input ends.
const PROGRAMS: [(&str, &[&str]); 2] = [("dieharder", &["-a", "-g", "200"]), ("ent", &[])];

/// The running programs.
#[derive(Debug, Default)]
pub struct ExternalTesters {
    running: Vec<(&'static str, Child)>,
    notes: Vec<String>,
}

/// Output of the programs, and whether one of them found a fault.
#[derive(Debug)]
pub struct Verdicts {
    /// Output for people.
    pub notes: Vec<String>,
    /// Whether one of their tests failed.
    pub failed: bool,
}

impl ExternalTesters {
    /// Starts the installed programs.
    pub fn start() -> Self {
        let mut judges = Self::default();
        for (name, words) in PROGRAMS {
            let mut command = Command::new(name);
            command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            match command.spawn() {
                Ok(child) => judges.running.push((name, child)),
                Err(_) => judges.notes.push(format!("skipped: {name} is not installed")),
            }
        }
        judges
    }

    /// Passes a datagram to the programs. A program that has read enough is skipped.
    pub fn add(&mut self, bytes: &[u8]) {
        for (_, child) in &mut self.running {
            if child.stdin.as_mut().is_some_and(|stdin| stdin.write_all(bytes).is_err()) {
                child.stdin = None;
            }
        }
    }

    /// Waits for the programs to finish.
    ///
    /// # Errors
    /// The wait for a program fails.
    pub fn finish(self) -> io::Result<Verdicts> {
        let Self { running, mut notes } = self;
        let mut failed = false;
        for (name, child) in running {
            let output = child.wait_with_output()?.stdout;
            let output = String::from_utf8_lossy(&output);
            failed |= output.contains("FAILED");
            notes.push(format!("{name}:\n{}", output.trim_end()));
        }
        Ok(Verdicts { notes, failed })
    }
}
