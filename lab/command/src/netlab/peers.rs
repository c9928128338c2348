//! The contenders, and how each sends from one side of the lab to the other.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::lab::{A, B, Lab};
use super::namespace::Namespace;
use super::skipped;
use crate::race::data::DataSet;
use crate::race::process;
use crate::race::sshd::Sshd;

/// Default port of iperf3.
const IPERF3_PORT: u16 = 5201;
const BITS_PER_MEGABYTE: f64 = 8.0;
const GIB: f64 = (1u64 << 30) as f64;

/// A contender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `wraith send` and `wraith receive` of a file, with this congestion control.
    Wraith(&'static str),
    /// The data plane of wraith, memory to memory, with this congestion control.
    Memory(&'static str),
    /// quinn, tuned, memory to memory, with this congestion control.
    Quinn(&'static str),
    /// `scp` of a file with AES-GCM; the kernel's own choice of congestion control.
    Scp,
    /// `iperf3` over TCP, memory to memory, with this congestion control.
    Tcp(&'static str),
}

/// Paths of the programs that were built for the lab.
#[derive(Debug)]
pub struct Programs {
    pub netlab: PathBuf,
    pub wraith: PathBuf,
    pub echo: PathBuf,
    pub throughput: PathBuf,
    pub quinn: PathBuf,
}

/// The sent data, and the folders of a run.
#[derive(Debug)]
pub struct TransferJob<'a> {
    pub set: &'a DataSet,
    /// An empty folder for the received files.
    pub target: &'a Path,
    /// A folder for keys and settings.
    pub settings: &'a Path,
}

/// Result of one run of one peer.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub mbit: f64,
    /// Packets that the sender declared lost or sent again.
    pub lost: Option<u64>,
    /// CPU time of both sides, if the lab started both.
    pub cpu_seconds: f64,
}

impl Peer {
    pub fn name(&self) -> String {
        match self {
            Self::Wraith(control) => format!("wraith-{control}"),
            Self::Memory(control) => format!("memory-{control}"),
            Self::Quinn(control) => format!("quinn-{control}"),
            Self::Scp => "scp".into(),
            Self::Tcp(control) => format!("tcp-{control}"),
        }
    }

    /// Returns whether a failure is a fault of wraith, and not only a result.
    pub fn is_wraith(&self) -> bool {
        matches!(self, Self::Wraith(_) | Self::Memory(_))
    }

    /// Returns the peers that can run on this machine, and reports the others as skipped.
    pub fn available(programs: &Programs) -> Result<Vec<Self>> {
        let ours = [
            Self::Wraith("cubic"),
            Self::Wraith("bbr"),
            Self::Memory("cubic"),
            Self::Memory("bbr"),
        ];
        let mut peers = ours.to_vec();
        match programs.quinn.exists() {
            true => peers.extend([Self::Quinn("cubic"), Self::Quinn("bbr")]),
            false => skipped("quinn: quinn-peer was not built"),
        }
        let controls =
            std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
        for control in ["cubic", "bbr"] {
            match installed("iperf3", "--version") {
                _ if !controls.split_whitespace().any(|word| word == control) => {
                    skipped(&format!("tcp-{control}: this kernel does not have it"));
                }
                false => skipped(&format!("tcp-{control}: iperf3 is not installed")),
                true => peers.push(Self::Tcp(control)),
            }
        }
        match installed("scp", "-V") {
            true => peers.push(Self::Scp),
            false => skipped("scp: not installed"),
        }
        Ok(peers)
    }

    /// Sends from one side of `lab` to the other. Every byte of a file is compared with the source;
    /// the data plane's own peer compares every byte itself.
    pub fn run(&self, lab: &Lab, programs: &Programs, job: &TransferJob<'_>) -> Result<Sample> {
        match self {
            Self::Wraith(control) => wraith(lab, &programs.wraith, control, job),
            Self::Memory(control) => memory(lab, &programs.throughput, control, job),
            Self::Quinn(control) => quinn(lab, &programs.quinn, control, job),
            Self::Scp => scp(lab, job),
            Self::Tcp(control) => tcp(lab, control, job),
        }
    }
}

/// Returns whether the program can be started at all; its output does not matter.
fn installed(program: &str, word: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(word).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

fn wraith(lab: &Lab, program: &Path, control: &str, job: &TransferJob<'_>) -> Result<Sample> {
    let home = tempfile::tempdir_in(job.settings)?;
    let start = Instant::now();
    let mut sender = lab
        .a
        .command(program)
        .env("WRAITH_HOME", home.path().join("sender"))
        .envs(crate::OFFLINE)
        .args(["send", "-q", "--ticket", "--congestion", control])
        .args(["--listen", &format!("{A}:0")])
        .arg(&job.set.source)
        .stdout(Stdio::piped())
        .spawn()?;
    let line = first_line(&mut sender)?;
    let ticket = line.split_whitespace().last().context("wraith send printed no ticket")?;
    let receiver = lab
        .b
        .command(program)
        .env("WRAITH_HOME", home.path().join("receiver"))
        .envs(crate::OFFLINE)
        .args(["receive", "-q", "--yes", "-o"])
        .arg(job.target)
        .arg(ticket)
        .spawn()?;
    let received = process::wait(receiver, "wraith receive");
    if received.is_err() {
        // Otherwise the sender would wait for the receiver to come back, as long as the lab lasts.
        let _ = sender.kill();
    }
    let sent = process::wait(sender, "wraith send");
    let mbit = megabits(job.set.bytes, start.elapsed());
    let cpu_seconds = received?.cpu_seconds + sent?.cpu_seconds;
    job.set.verify(job.target).context("wraith did not copy it right")?;
    Ok(Sample { mbit, lost: None, cpu_seconds })
}

fn memory(
    lab: &Lab,
    program: &Path,
    control: &'static str,
    job: &TransferJob<'_>,
) -> Result<Sample> {
    let server = Throughput::start_server(lab, program, control)?;
    let out = server.send(lab, job.set.bytes as f64 / GIB)?.wait_with_output()?;
    let text = String::from_utf8_lossy(&out.stdout);
    ensure!(out.status.success(), "throughput send failed");
    parse_throughput(&text, job.set.bytes)
        .with_context(|| format!("throughput printed {:?}", text.trim()))
}

/// The data plane, which waits for a flow on B's side.
#[derive(Debug)]
pub struct Throughput<'a> {
    program: &'a Path,
    control: &'static str,
    node: String,
    address: String,
    _server: Child,
}

impl<'a> Throughput<'a> {
    pub fn start_server(lab: &Lab, program: &'a Path, control: &'static str) -> Result<Self> {
        let address = format!("{B}:0");
        let mut server =
            lab.b.command(program).args(["serve", &address]).stdout(Stdio::piped()).spawn()?;
        let line = first_line(&mut server)?;
        let words = line.trim().split_once(' ').context("throughput serve printed nothing")?;
        let (node, address) = (words.0.to_owned(), words.1.to_owned());
        Ok(Self { program, control, node, address, _server: server })
    }

    /// Sends `gib` GiB.
    pub fn send(&self, lab: &Lab, gib: f64) -> Result<Child> {
        let command = lab
            .a
            .command(self.program)
            .args(["send", &self.address, &self.node, "--rounds", "1", "--gib", &gib.to_string()])
            .args(["--congestion", self.control])
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn();
        Ok(command?)
    }
}

/// Reads `… GB/s  SECONDS s | CPU ns/byte: sender N, receiver N | lost N of M packets, …`.
fn parse_throughput(text: &str, bytes: u64) -> Option<Sample> {
    fn after<'a>(text: &'a str, what: &str) -> Option<&'a str> {
        let rest = &text[text.find(what)? + what.len()..];
        rest.split([' ', ',']).find(|word| !word.is_empty())
    }
    let seconds: f64 = after(text, "GB/s")?.parse().ok()?;
    let sender: f64 = after(text, "sender")?.parse().ok()?;
    let receiver: f64 = after(text, "receiver")?.parse().ok()?;
    Some(Sample {
        mbit: megabits(bytes, Duration::from_secs_f64(seconds)),
        lost: after(text, "lost")?.parse().ok(),
        cpu_seconds: (sender + receiver) * bytes as f64 / 1e9,
    })
}

/// Runs quinn with windows of twice the largest product of rate and delay; with larger ones quinn
/// gives up connections with losses.
fn quinn(lab: &Lab, program: &Path, control: &str, job: &TransferJob<'_>) -> Result<Sample> {
    let command = |namespace: &Namespace| {
        let mut command = namespace.command(program);
        command.args(["--mtu", "1472", "--window-mib", "16"]);
        if control == "bbr" {
            command.arg("--bbr");
        }
        command
    };
    let address = format!("{B}:0");
    let mut server = command(&lab.b).args(["serve", &address]).stdout(Stdio::piped()).spawn()?;
    let address = first_line(&mut server)?;
    let out = command(&lab.a)
        .args(["--rounds", "1", "--bytes", &job.set.bytes.to_string(), "send", address.trim()])
        .output()?;
    let error = String::from_utf8_lossy(&out.stderr);
    // The error message without the backtrace goes into the results.
    let what = error.split("Stack backtrace").next().unwrap_or_default().trim();
    ensure!(out.status.success(), "quinn-peer: {what}");
    let json: Value = serde_json::from_slice(&out.stdout).context("quinn-peer: no JSON")?;
    let number = |key: &str| json[key].as_f64().with_context(|| format!("quinn-peer: no {key}"));
    Ok(Sample {
        mbit: number("gbit_per_second")? * 1e3,
        lost: json["datagrams_lost"].as_u64(),
        cpu_seconds: number("sender_cpu_seconds")? + number("receiver_cpu_seconds")?,
    })
}

fn scp(lab: &Lab, job: &TransferJob<'_>) -> Result<Sample> {
    let folder = tempfile::tempdir_in(job.settings)?;
    let sshd = Sshd::start_at(folder.path(), B, |program| lab.b.command(program))?;
    let start = Instant::now();
    let child = lab
        .a
        .command("scp")
        .arg("-q")
        .args(sshd.client_options())
        .arg(&job.set.source)
        .arg(format!("race:{}/", job.target.display()))
        .spawn()?;
    let usage = process::wait(child, "scp")?;
    let mbit = megabits(job.set.bytes, start.elapsed());
    job.set.verify(job.target).context("scp did not copy it right")?;
    Ok(Sample { mbit, lost: None, cpu_seconds: usage.cpu_seconds })
}

fn tcp(lab: &Lab, control: &str, job: &TransferJob<'_>) -> Result<Sample> {
    let (json, cpu_seconds) = iperf3(lab, &["-C", control, "-n", &job.set.bytes.to_string()])?;
    let sum = &json["end"];
    let bits = sum["sum_received"]["bits_per_second"].as_f64().context("iperf3 gave no rate")?;
    let lost = sum["sum_sent"]["retransmits"].as_u64();
    Ok(Sample { mbit: bits / 1e6, lost, cpu_seconds })
}

/// Sends a UDP flow of `mbit` Mbit/s in packets of 1500 bytes. Returns the received rate in Mbit/s
/// of whole IP packets.
pub fn udp(lab: &Lab, mbit: u64, seconds: u64) -> Result<f64> {
    let rate = format!("{mbit}M");
    let words = ["-u", "-b", &rate, "-l", "1472", "-w", "4M", "-t", &seconds.to_string()];
    let (json, _) = iperf3(lab, &words)?;
    let sum = &json["end"]["sum"];
    let number = |key: &str| sum[key].as_f64().with_context(|| format!("iperf3 gave no {key}"));
    let arrived = number("packets")? - number("lost_packets")?;
    Ok(arrived * 1500.0 * BITS_PER_MEGABYTE / 1e6 / number("seconds")?)
}

/// Runs iperf3 from one side to the other. Returns its report, and the CPU time of both sides.
fn iperf3(lab: &Lab, more: &[&str]) -> Result<(Value, f64)> {
    Iperf3::start_server(lab, IPERF3_PORT)?.start(lab, more)?.report()
}

/// An iperf3 server that waits for one flow on B's side.
#[derive(Debug)]
pub struct Iperf3 {
    port: u16,
    server: Child,
    // Keeps the pipe open: the server's further output is short and unread.
    out: BufReader<ChildStdout>,
}

/// An iperf3 flow in progress.
#[derive(Debug)]
pub struct Iperf3Run {
    server: Child,
    _out: BufReader<ChildStdout>,
    client: Child,
    report: tempfile::NamedTempFile,
}

impl Iperf3 {
    pub fn start_server(lab: &Lab, port: u16) -> Result<Self> {
        let mut server = lab
            .b
            .command("iperf3")
            .args(["-s", "-1", "--forceflush", "-p", &port.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .context("iperf3 is not installed")?;
        let mut out = BufReader::new(server.stdout.take().context("it was piped")?);
        let mut line = String::new();
        while !line.contains("listening") {
            line.clear();
            ensure!(out.read_line(&mut line)? > 0, "iperf3 -s did not start");
        }
        Ok(Self { port, server, out })
    }

    /// Starts a TCP flow with this congestion control, for `seconds`.
    pub fn send(self, lab: &Lab, control: &str, seconds: u64) -> Result<Iperf3Run> {
        self.start(lab, &["-C", control, "-t", &seconds.to_string()])
    }

    fn start(self, lab: &Lab, more: &[&str]) -> Result<Iperf3Run> {
        let report = tempfile::NamedTempFile::new()?;
        let client = lab
            .a
            .command("iperf3")
            .args(["-c", &B.to_string(), "-p", &self.port.to_string(), "-J"])
            .args(more)
            .stdout(report.reopen()?)
            .spawn()?;
        Ok(Iperf3Run { server: self.server, _out: self.out, client, report })
    }
}

impl Iperf3Run {
    /// Waits for the end of the flow. Returns iperf3's report, and the CPU time of both sides.
    fn report(self) -> Result<(Value, f64)> {
        let client = process::wait(self.client, "iperf3 -c");
        let text = std::fs::read_to_string(self.report.path())?;
        let json: Value = serde_json::from_str(&text).context("iperf3 printed no JSON")?;
        if let Some(error) = json["error"].as_str() {
            bail!("iperf3: {error}");
        }
        let server = process::wait(self.server, "iperf3 -s")?;
        Ok((json, client?.cpu_seconds + server.cpu_seconds))
    }

    /// Waits for the end of the flow. Returns the received bytes.
    pub fn received(self) -> Result<f64> {
        let (json, _) = self.report()?;
        json["end"]["sum_received"]["bytes"].as_f64().context("iperf3 gave no bytes")
    }
}

fn first_line(child: &mut Child) -> Result<String> {
    let out = child.stdout.take().context("it was piped")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    ensure!(!line.trim().is_empty(), "a peer did not start");
    Ok(line)
}

fn megabits(bytes: u64, time: Duration) -> f64 {
    bytes as f64 * BITS_PER_MEGABYTE / 1e6 / time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_throughput_is_understood() {
        let line = "  0.45 Gbit/s   0.06 GB/s  10.000 s | CPU ns/byte: sender 1.500, receiver 0.500 | lost 17 of 440 \
                    packets, 3 spurious, rtt 50ms, window 3000 KiB, mtu 1452";
        let sample = parse_throughput(line, 500_000_000).unwrap();
        assert_eq!((sample.mbit, sample.lost, sample.cpu_seconds), (400.0, Some(17), 1.0));
        assert!(parse_throughput("nonsense", 1).is_none());
    }
}
