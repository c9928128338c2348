//! A wraith program in the lab, and the JSON events that it prints, each with the time at which it
//! was read.
//!
//! Invariant: no started process outlives its namespace, and every wait has a limit.

use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::lab::{Host, Lab, PUBLIC};

/// Port of the relay: the one that every network lets through if it lets anything through.
const RELAY_PORT: u16 = 443;
/// Time limit of a start, which takes a fraction of it unless the machine is busy.
pub const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Settings that keep programs off the network around the lab, unless a run enables them.
const CLOSED: [(&str, &str); 4] = [
    ("WRAITH_LAN", "off"),
    ("WRAITH_PORT_MAPPING", "off"),
    ("WRAITH_DHT", "off"),
    // The lab's internet has addresses for documentation.
    ("WRAITH_PEER_RELAYS", "any"),
];

/// One event, and the time at which it was read.
#[derive(Clone, Debug)]
pub struct TimedEvent {
    pub at: Instant,
    pub event: Value,
}

impl TimedEvent {
    /// Returns whether the event is of this kind.
    pub fn is(&self, kind: &str) -> bool {
        self.event["event"] == kind
    }

    /// Returns a text field of the event; empty if it is missing.
    pub fn text(&self, field: &str) -> &str {
        self.event[field].as_str().unwrap_or_default()
    }
}

/// A running program.
#[derive(Debug)]
pub struct RunningProgram {
    name: &'static str,
    child: Child,
    /// Process id of the program inside its PID namespace.
    pid: String,
    incoming: Receiver<TimedEvent>,
    said: Option<JoinHandle<String>>,
    /// Time at which it was started.
    pub started: Instant,
    /// Events so far, as far as the caller has waited for them.
    pub seen: Vec<TimedEvent>,
}

impl RunningProgram {
    /// Starts `program --json` with these arguments and a home folder of its own, by a shell in its
    /// namespace. Events are also printed, with the time since `aloud`.
    pub fn start(
        name: &'static str,
        mut shell: Command,
        program: &Path,
        home: &Path,
        words: &[&str],
        aloud: Option<Instant>,
    ) -> Result<Self> {
        let started = Instant::now();
        // The process that enters the namespace is not the one inside. The shell prints the inner
        // process id and becomes the program.
        let mut child = shell
            .args(["-c", "echo $$; exec \"$@\"", "sh"])
            .arg(program)
            .args(words)
            .arg("--json")
            .envs(CLOSED)
            .env("WRAITH_HOME", home)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut out = BufReader::new(child.stdout.take().context("it was piped")?);
        let mut err = child.stderr.take().context("it was piped")?;
        let mut pid = String::new();
        out.read_line(&mut pid)?;
        let (events, incoming) = mpsc::channel();
        thread::spawn(move || read_events(out, &events, aloud.map(|since| (name, since))));
        let said = thread::spawn(move || {
            let mut text = String::new();
            let _ = err.read_to_string(&mut text);
            text
        });
        let pid = pid.trim().to_owned();
        Ok(Self { name, child, pid, incoming, said: Some(said), started, seen: Vec::new() })
    }

    /// Returns the next event that satisfies `wanted`; earlier ones are in [`Self::seen`].
    pub fn expect(
        &mut self,
        what: &str,
        limit: Duration,
        wanted: impl Fn(&TimedEvent) -> bool,
    ) -> Result<TimedEvent> {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.incoming.recv_timeout(left) {
                Ok(seen) => {
                    self.seen.push(seen.clone());
                    if wanted(&seen) {
                        return Ok(seen);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    bail!("{}: no {what} in {limit:?}; {}", self.name, self.story())
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let said = self.said.take().and_then(|said| said.join().ok());
                    let said = said.unwrap_or_default();
                    bail!("{}: ended without {what}; {}; {}", self.name, self.story(), said.trim())
                }
            }
        }
    }

    /// Reads events until the program ends, which must be successful and within the limit.
    pub fn finish(mut self, limit: Duration) -> Result<Vec<TimedEvent>> {
        let is_end = |seen: &TimedEvent| seen.is("done") || seen.is("error");
        let done = match self.seen.iter().find(|seen| is_end(seen)) {
            Some(done) => done.clone(),
            None => self.expect("done", limit, is_end)?,
        };
        ensure!(done.is("done"), "{}: {}; {}", self.name, done.text("message"), self.story());
        // Events after that, until the program closes its standard output.
        while let Ok(seen) = self.incoming.recv_timeout(limit) {
            self.seen.push(seen);
        }
        let status = wait(&mut self.child, limit)?;
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        ensure!(status.success(), "{}: {status}: {}", self.name, said.trim());
        Ok(std::mem::take(&mut self.seen))
    }

    /// Kills the program as a power cut would; `kill` is that command in the same namespace.
    pub fn kill(mut self, mut kill: Command) -> Result<()> {
        let status = kill.args(["-9", &self.pid]).status()?;
        ensure!(status.success(), "{} could not be killed", self.name);
        wait(&mut self.child, START_TIMEOUT)?;
        Ok(())
    }

    /// Describes the events so far, for the message of the other side's failure.
    pub fn last_words(&mut self) -> String {
        self.seen.extend(self.incoming.try_iter());
        format!("{}: {}", self.name, self.story())
    }

    /// The kinds of the events so far, for a message.
    fn story(&self) -> String {
        let events = self.seen.iter().filter(|seen| !seen.is("progress"));
        let words: Vec<_> = events
            .map(|seen| {
                let kind = seen.text("event");
                let more = [seen.text("path"), seen.text("how"), seen.text("message")].join(" ");
                format!("{kind} {}", more.trim()).trim().to_owned()
            })
            .collect();
        format!("its events: {}", words.join(", "))
    }
}

fn read_events(
    out: BufReader<ChildStdout>,
    events: &mpsc::Sender<TimedEvent>,
    aloud: Option<(&str, Instant)>,
) {
    for line in out.lines().map_while(std::result::Result::ok) {
        let Ok(event) = serde_json::from_str(&line) else { continue };
        let seen = TimedEvent { at: Instant::now(), event };
        if let (Some((name, since)), Some(text)) = (aloud, narrated(&seen)) {
            print_at(since, name, &text);
        }
        if events.send(seen).is_err() {
            return;
        }
    }
}

/// Describes an event for people; `None` if it is of no interest.
fn narrated(seen: &TimedEvent) -> Option<String> {
    let way = || format!("{} ({}), {}", seen.text("path"), seen.text("how"), seen.text("address"));
    Some(match seen.text("event") {
        "listening" => format!("listens at {}", seen.text("address")),
        "ready" if !seen.text("code").is_empty() => format!("$ {}", seen.text("command")),
        "long_code" => format!("$ {}", seen.text("command")),
        "met" => format!("met the other side at {}", seen.text("place")),
        "connected" => format!("connected: {}", way()),
        "path" if seen.text("message").is_empty() => format!("now goes {}", way()),
        "path" => format!("stays at {}: {}", way(), seen.text("message")),
        "reconnecting" => format!("connection lost ({}), tries again", seen.text("message")),
        "error" => format!("error: {}", seen.text("message")),
        "done" => {
            let (bytes, moved) = (&seen.event["bytes"], &seen.event["bytes_moved"]);
            format!("done: {bytes} bytes, {moved} of them on the last connection")
        }
        _ => return None,
    })
}

fn print_at(since: Instant, name: &str, text: &str) {
    println!("{:7.2} s  {name:<8}  {text}", since.elapsed().as_secs_f64());
}

fn wait(child: &mut Child, limit: Duration) -> Result<ExitStatus> {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(Duration::from_millis(5));
    }
    bail!("it did not end in {limit:?}")
}

/// The programs of a run, and the folder of its files.
#[derive(Clone, Debug)]
pub struct RunContext {
    pub wraith: PathBuf,
    pub netlab: PathBuf,
    /// The example `echo` of the library.
    pub echo: PathBuf,
    pub base: PathBuf,
    /// If set, actions are printed with the time since then.
    pub aloud: Option<Instant>,
}

impl RunContext {
    /// Creates a folder in [`Self::base`].
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.base.join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Prints an action of the lab itself, if this run is narrated.
    pub fn log(&self, text: &str) {
        match self.aloud {
            Some(_) if text.is_empty() => println!(),
            Some(since) => print_at(since, "*", text),
            None => {}
        }
    }

    /// Starts `wraith` on this host; its home is the folder `home` of this stage.
    pub fn wraith(
        &self,
        name: &'static str,
        host: &Host,
        home: &str,
        words: &[&str],
    ) -> Result<RunningProgram> {
        self.program(&self.wraith, name, host, home, words)
    }

    /// Like [`Self::wraith`], for another program.
    pub fn program(
        &self,
        program: &Path,
        name: &'static str,
        host: &Host,
        home: &str,
        words: &[&str],
    ) -> Result<RunningProgram> {
        let home = self.folder(home)?;
        RunningProgram::start(name, host.command("sh"), program, &home, words, self.aloud)
    }

    /// Starts a relay on the internet, at all its addresses. The relay accepts connections when
    /// this function returns.
    pub fn relay(&self, lab: &Lab, home: &str) -> Result<RunningProgram> {
        self.relay_at(lab, home, Ipv6Addr::UNSPECIFIED.into())
    }

    /// Starts a relay at this address alone.
    pub fn relay_at(&self, lab: &Lab, home: &str, ip: IpAddr) -> Result<RunningProgram> {
        let home = self.folder(home)?;
        let state = home.join("relay").display().to_string();
        let listen = SocketAddr::new(ip, RELAY_PORT).to_string();
        let words = ["relay", "--listen", &listen, "--state", &state];
        let shell = lab.command("sh");
        let mut relay =
            RunningProgram::start("relay", shell, &self.wraith, &home, &words, self.aloud)?;
        relay.expect("listening", START_TIMEOUT, |seen| seen.is("listening"))?;
        Ok(relay)
    }
}

/// Value of `--relay` on both sides.
pub fn relay_address() -> String {
    format!("{}:{RELAY_PORT}", PUBLIC[0])
}

/// Value of `--relay` with two relays.
pub fn relay_addresses() -> String {
    PUBLIC.map(|ip| format!("{ip}:{RELAY_PORT}")).join(",")
}
