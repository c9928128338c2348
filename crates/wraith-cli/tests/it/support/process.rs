//! A running `wraith --json`, its events as they arrive, and its result.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::schema;

/// Time after which a process counts as hung. No test takes this long, even on a busy machine with
/// two cores.
pub const HANG: Duration = Duration::from_secs(180);

/// A process of the test. Drop kills it.
#[derive(Debug)]
pub struct Process {
    name: &'static str,
    child: Child,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
    seen: Vec<Value>,
}

/// The result and the output of a process.
#[derive(Debug)]
pub struct Outcome {
    pub name: &'static str,
    pub status: ExitStatus,
    pub events: Vec<Value>,
    pub stderr: String,
}

impl Process {
    pub fn start(name: &'static str, command: &mut Command) -> Self {
        command.stdin(Stdio::null());
        Self::start_with_stdin(name, command)
    }

    /// The same, with the standard input that the command has.
    pub fn start_with_stdin(name: &'static str, command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|l| sender.send(l))
        });
        let mut stderr = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Self { name, child, lines, stderr: Some(stderr), seen: Vec::new() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next event of this kind. Events before it are kept for [`Self::finish`].
    pub fn event(&mut self, kind: &str) -> Value {
        self.event_where(kind, |_| true)
    }

    /// Waits for the next event of one of two kinds.
    pub fn event_where_either(&mut self, one: &str, other: &str) -> Value {
        self.next_event(&format!("{one} or {other}"), |e| e["event"] == one || e["event"] == other)
    }

    /// Waits for the next event of this kind that meets the condition.
    pub fn event_where(&mut self, kind: &str, condition: impl Fn(&Value) -> bool) -> Value {
        self.next_event(kind, |event| event["event"] == kind && condition(event))
    }

    fn next_event(&mut self, kind: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + HANG;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                let _ = self.child.kill();
                let stderr = self.stderr.take().map(|t| t.join().unwrap());
                panic!("{} said no {kind}; it said {:?}\n{stderr:?}", self.name, self.seen);
            };
            let event = parse(&line);
            self.seen.push(event.clone());
            if condition(&event) {
                return event;
            }
        }
    }

    /// Returns the ticket of a sender.
    pub fn ticket(&mut self) -> String {
        self.event("ready")["ticket"].as_str().unwrap().to_owned()
    }

    /// Returns the code of a sender.
    pub fn code(&mut self) -> String {
        self.event("ready")["code"].as_str().expect("a code").to_owned()
    }

    /// Sends a signal by its number.
    pub fn signal(&self, signal: i32) {
        // SAFETY: kill has no memory effects. The child has not been waited for, so the pid is
        // still its own.
        let sent = unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
        assert_eq!(sent, 0);
    }

    /// Sends SIGKILL, and waits for the end.
    pub fn kill(mut self) -> Outcome {
        self.child.kill().unwrap();
        self.finish()
    }

    /// Waits for the end, which has to be a success.
    #[track_caller]
    pub fn succeed(self) -> Outcome {
        let outcome = self.finish();
        outcome.expect_exit(0);
        outcome
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end.
    pub fn finish(mut self) -> Outcome {
        let deadline = Instant::now() + HANG;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.seen.push(parse(&line)),
                // Standard output was closed: the process has ended, or is about to.
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let _ = self.child.kill();
                    let stderr = self.stderr.take().map(|t| t.join().unwrap());
                    panic!("{} does not end; it said {:?}\n{stderr:?}", self.name, self.seen);
                }
            }
        }
        let status = self.child.wait().unwrap();
        let stderr = self.stderr.take().map(|t| t.join().unwrap()).unwrap_or_default();
        Outcome { name: self.name, status, events: std::mem::take(&mut self.seen), stderr }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Outcome {
    /// Asserts the exit code, and shows all output if it differs.
    #[track_caller]
    pub fn expect_exit(&self, code: i32) -> &Self {
        let shown: Vec<_> = self.events.iter().filter(|e| e["event"] != "progress").collect();
        let shown = &shown[shown.len().saturating_sub(20)..];
        let stderr = &self.stderr;
        assert_eq!(self.status.code(), Some(code), "{}: {shown:#?}\n{stderr}", self.name);
        self
    }

    /// Returns the events of one kind.
    pub fn all<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.events.iter().filter(move |event| event["event"] == kind)
    }

    /// Returns the last event of a kind.
    #[track_caller]
    pub fn last(&self, kind: &str) -> &Value {
        match self.events.iter().rfind(|event| event["event"] == kind) {
            Some(event) => event,
            None => panic!("{} said no {kind}: {:?}", self.name, self.events),
        }
    }

    /// Asserts that the process failed with this code, a message, and a hint.
    #[track_caller]
    pub fn expect_error(&self, code: i32) -> &Value {
        self.expect_exit(code);
        let error = self.last("error");
        assert_eq!(error["exit"], code);
        assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()));
        error
    }

    /// Asserts that the process failed with this code, and a hint that contains `part`.
    #[track_caller]
    pub fn expect_hint(&self, code: i32, part: &str) {
        let error = self.expect_error(code);
        assert!(error["hint"].as_str().unwrap().contains(part), "{error}");
    }

    /// Asserts that the process failed with this code, and a message that contains `part`.
    #[track_caller]
    pub fn expect_message(&self, code: i32, part: &str) {
        let error = self.expect_error(code);
        assert!(error["message"].as_str().unwrap().contains(part), "{error}");
    }
}

fn parse(line: &str) -> Value {
    let event = serde_json::from_str(line);
    let event = event.unwrap_or_else(|e| panic!("not a JSON event ({e}): {line}"));
    if let Some(fault) = schema::fault(&event) {
        panic!("not as docs/events.schema.json has it: {fault}\n{line}");
    }
    event
}

/// Runs a sender without `--json` whose outputs are piped. Calls `with` with the ticket. Returns
/// standard output, the exit status, and standard error.
pub fn said_by(mut child: Child, with: impl FnOnce(&str)) -> (String, (ExitStatus, String)) {
    let mut stderr = child.stderr.take().unwrap();
    let said = thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stderr.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut printed = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut printed).unwrap();
    with(printed.split_whitespace().last().expect("a ticket"));
    let status = child.wait().unwrap();
    (printed, (status, said.join().unwrap()))
}
