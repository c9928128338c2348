//! Programs of others that judge a stream of bytes, where they are installed: `dieharder` (Brown) and `ent` (Walker).

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

/// Programs, and what makes them read their standard input. dieharder goes on to its next test until there is nothing more to read.
const PROGRAMS: [(&str, &[&str]); 2] = [("dieharder", &["-a", "-g", "200"]), ("ent", &[])];

/// Those that are there, fed.
#[derive(Debug, Default)]
pub struct Judges {
    running: Vec<(&'static str, Child)>,
    notes: Vec<String>,
}

/// What they said, and whether one found something.
#[derive(Debug)]
pub struct Verdicts {
    /// For people to read.
    pub notes: Vec<String>,
    /// Some test of theirs failed.
    pub failed: bool,
}

impl Judges {
    /// Starts those that are installed.
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

    /// Gives them a datagram. Who has read enough reads no further.
    pub fn add(&mut self, bytes: &[u8]) {
        for (_, child) in &mut self.running {
            if child.stdin.as_mut().is_some_and(|stdin| stdin.write_all(bytes).is_err()) {
                child.stdin = None;
            }
        }
    }

    /// Lets them finish.
    ///
    /// # Errors
    /// One cannot be waited for.
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
