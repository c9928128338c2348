//! Transfers from memory to memory: wraith's own core and data plane, tuned quinn, the raw AES-GCM
//! line, and the kernel's TCP.
//!
//! Each transfer uses two processes over loopback. wraith, quinn and the raw line generate, seal,
//! open and compare the same bytes with AES-256-GCM; iperf3 encrypts and compares nothing. The
//! kernel counts CPU time and memory of both processes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::process::{self, Usage};
use super::results::{Measure, Row, Sample, Table};

/// UDP payload of a datagram on Ethernet, over IPv6.
const ETHERNET: u16 = 1452;
/// UDP payload of a large datagram, which loopback carries.
const LARGE: u16 = 65_000;

/// Paths of the programs, and the number of bytes to move.
#[derive(Debug)]
pub struct Programs {
    pub release: PathBuf,
    pub bytes: u64,
}

/// The transport that moves the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransportKind {
    Wraith,
    Quinn,
    /// quinn with its BBR instead of CUBIC.
    QuinnBbr,
    Raw,
    /// Sender and receiver of the raw line in one thread: on one core a separate receiver would
    /// starve.
    RawInTurn,
    Iperf,
}

/// Cores of the two processes.
#[derive(Clone, Copy, Debug)]
enum Cores {
    All,
    /// Both on the first.
    One,
    /// The sender on the first, the receiver on the second.
    OneEach,
}

#[derive(Clone, Copy, Debug)]
struct Contender {
    name: &'static str,
    /// Its word for `--only`.
    family: &'static str,
    mover: TransportKind,
    mtu: u16,
    cores: Cores,
}

const fn contender(
    name: &'static str,
    family: &'static str,
    mover: TransportKind,
    mtu: u16,
    cores: Cores,
) -> Contender {
    Contender { name, family, mover, mtu, cores }
}

/// Tables: id, title, contenders.
const TABLES: [(&str, &str, &[Contender]); 3] = [
    (
        "memory-1452",
        "Memory to memory, one stream, datagrams of 1452 bytes",
        &[
            contender("wraith", "wraith", TransportKind::Wraith, ETHERNET, Cores::All),
            contender("quinn CUBIC", "quinn", TransportKind::Quinn, ETHERNET, Cores::All),
            contender("quinn BBR", "quinn", TransportKind::QuinnBbr, ETHERNET, Cores::All),
            contender("raw line", "raw", TransportKind::Raw, ETHERNET, Cores::All),
            contender(
                "iperf3 TCP, in the clear",
                "iperf3",
                TransportKind::Iperf,
                ETHERNET,
                Cores::All,
            ),
        ],
    ),
    (
        "memory-65000",
        "Memory to memory, one stream, datagrams of 65,000 bytes",
        &[
            contender("wraith", "wraith", TransportKind::Wraith, LARGE, Cores::All),
            contender("quinn CUBIC", "quinn", TransportKind::Quinn, LARGE, Cores::All),
            contender("raw line", "raw", TransportKind::Raw, LARGE, Cores::All),
        ],
    ),
    (
        "memory-cores",
        "The same with 1452 bytes, on one core and on one core each",
        &[
            contender("wraith, 1 core", "wraith", TransportKind::Wraith, ETHERNET, Cores::One),
            contender("quinn, 1 core", "quinn", TransportKind::Quinn, ETHERNET, Cores::One),
            contender(
                "raw line, 1 core, in turn",
                "raw",
                TransportKind::RawInTurn,
                ETHERNET,
                Cores::One,
            ),
            contender(
                "wraith, 1 core each",
                "wraith",
                TransportKind::Wraith,
                ETHERNET,
                Cores::OneEach,
            ),
            contender(
                "quinn, 1 core each",
                "quinn",
                TransportKind::Quinn,
                ETHERNET,
                Cores::OneEach,
            ),
            contender("raw line, 1 core each", "raw", TransportKind::Raw, ETHERNET, Cores::OneEach),
        ],
    ),
];

/// Measures all tables, their contenders in turn. wraith must succeed; another contender that fails
/// is left out, with the reason.
pub fn race(programs: &Programs, wanted: impl Fn(&str) -> bool, runs: usize) -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    for (id, title, contenders) in TABLES {
        let taking_part: Vec<_> = contenders.iter().filter(|c| wanted(c.family)).collect();
        let mut rows: Vec<_> = taking_part.iter().map(|c| Row::new(c.name)).collect();
        for round in 1..=runs {
            for (contender, row) in taking_part.iter().zip(&mut rows) {
                if row.skipped.is_some() {
                    continue;
                }
                match contender.run(programs) {
                    Ok(sample) => {
                        let rate = sample.bytes as f64 * 8.0 / 1e9 / sample.seconds;
                        eprintln!("{id} round {round}: {} {rate:.2} Gbit/s", contender.name);
                        row.samples.push(sample);
                    }
                    Err(error) if contender.mover == TransportKind::Wraith => {
                        return Err(error.context(contender.name));
                    }
                    Err(error) => {
                        super::skipped(&format!("{}: {error:#}", contender.name));
                        row.skipped = Some(format!("{error:#}"));
                    }
                }
            }
        }
        let (id, title) = (id.to_owned(), title.to_owned());
        tables.push(Table { id, title, measure: Measure::GbitPerSecond, rows });
    }
    Ok(tables)
}

impl Contender {
    fn run(&self, programs: &Programs) -> Result<Sample> {
        match self.mover {
            TransportKind::Iperf => iperf(programs.bytes),
            TransportKind::RawInTurn => self.in_one_process(programs),
            _ => self.in_two_processes(programs),
        }
    }

    /// Returns the program with the options of both sides.
    fn command(&self, programs: &Programs, cpu: Option<usize>) -> Command {
        let release = &programs.release;
        let mut command = match self.mover {
            TransportKind::Wraith => on_cpu(&release.join("examples/throughput"), cpu),
            TransportKind::Quinn | TransportKind::QuinnBbr => {
                on_cpu(&release.join("quinn-peer"), cpu)
            }
            _ => on_cpu(&release.join("raw-line"), cpu),
        };
        let gib = programs.bytes as f64 / (1_u64 << 30) as f64;
        command.args(["--rounds", "1", "--gib", &gib.to_string(), "--mtu", &self.mtu.to_string()]);
        match self.mover {
            TransportKind::Wraith => command.arg("--json"),
            TransportKind::QuinnBbr => command.arg("--bbr"),
            TransportKind::RawInTurn => command.arg("--in-turn"),
            _ => &mut command,
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    fn in_two_processes(&self, programs: &Programs) -> Result<Sample> {
        let (first, second) = match self.cores {
            Cores::All => (None, None),
            Cores::One => (Some(0), Some(0)),
            Cores::OneEach => (Some(0), Some(1)),
        };
        let mut server = self.command(programs, second).arg("serve").spawn()?;
        let sent = first_line(&mut server).and_then(|line| {
            // wraith prints its NodeId before its address, but expects the opposite order.
            let words = line.split_whitespace().rev();
            let mut client = self.command(programs, first).arg("send").args(words).spawn()?;
            finish(&mut client).and_then(|text| Ok((text, process::wait(client, "the sender")?)))
        });
        server.kill()?;
        let received = process::wait_killed(server)?;
        let (text, sent) = sent?;
        sample(&text, &[("send", sent), ("receive", received)])
    }

    fn in_one_process(&self, programs: &Programs) -> Result<Sample> {
        let mut process = self.command(programs, Some(0)).spawn()?;
        let text = finish(&mut process)?;
        sample(&text, &[("both", process::wait(process, "the raw line")?)])
    }
}

fn on_cpu(program: &Path, cpu: Option<usize>) -> Command {
    let Some(cpu) = cpu else { return Command::new(program) };
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &cpu.to_string()]).arg(program);
    command
}

fn first_line(process: &mut Child) -> Result<String> {
    let out = process.stdout.take().context("it has no output")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    ensure!(!line.trim().is_empty(), "the server did not start");
    Ok(line)
}

/// Reads all output of a process until it ends.
fn finish(process: &mut Child) -> Result<String> {
    let mut text = String::new();
    process.stdout.take().context("it has no output")?.read_to_string(&mut text)?;
    Ok(text)
}

/// Parses the line of JSON that our programs print.
fn sample(text: &str, usage: &[(&str, Usage)]) -> Result<Sample> {
    let report: serde_json::Value = serde_json::from_str(text.trim())?;
    let (Some(bytes), Some(seconds)) = (report["bytes"].as_u64(), report["seconds"].as_f64())
    else {
        bail!("no bytes and seconds in {text}")
    };
    Ok(with_usage(bytes, seconds, usage))
}

fn with_usage(bytes: u64, seconds: f64, usage: &[(&str, Usage)]) -> Sample {
    let cpu_seconds = usage.iter().map(|(_, u)| u.cpu_seconds).sum();
    let peaks = usage.iter().map(|(side, u)| ((*side).to_owned(), u.peak_rss_bytes));
    Sample { bytes, seconds, cpu_seconds, peak_rss_bytes: peaks.collect::<BTreeMap<_, _>>() }
}

/// One TCP stream with the kernel's own settings.
fn iperf(bytes: u64) -> Result<Sample> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let mut server = Command::new("iperf3")
        .args(["--server", "--one-off", "--forceflush", "--bind", "127.0.0.1", "--port", &port])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("iperf3 is not installed")?;
    let out = server.stdout.take().context("it has no output")?;
    let mut lines = BufReader::new(out).lines();
    let listens = lines.by_ref().map_while(Result::ok).any(|line| line.contains("listening"));
    let sent = if listens { iperf_client(bytes, &port) } else { bail!("iperf3 does not listen") };
    if sent.is_err() {
        server.kill()?;
    }
    // The server may write more until it ends.
    lines.for_each(drop);
    let received = process::wait_killed(server)?;
    let (report, sent) = sent?;
    let end = &report["end"]["sum_received"];
    let (Some(bytes), Some(seconds)) = (end["bytes"].as_u64(), end["seconds"].as_f64()) else {
        bail!("iperf3 reports nothing")
    };
    Ok(with_usage(bytes, seconds, &[("send", sent), ("receive", received)]))
}

fn iperf_client(bytes: u64, port: &str) -> Result<(serde_json::Value, Usage)> {
    let mut client = Command::new("iperf3")
        .args(["--client", "127.0.0.1", "--port", port, "--json", "--bytes", &bytes.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let text = finish(&mut client)?;
    let usage = process::wait(client, "iperf3")?;
    Ok((serde_json::from_str(&text)?, usage))
}
