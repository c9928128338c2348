//! `cargo lab flood`: the cost of a flood from strangers for a transfer and for a newcomer.
//!
//! The transfer, or the newcomer (a new receiver) with its peer, is pinned to one core and the
//! flood to another. So the measurements show the cost of processing the flood, not the cost of
//! sending it. Rounds with and without the flood alternate, and every transferred byte is compared.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::median::median;
use crate::race::data::DataSet;
use crate::race::process;
use crate::{cargo, machine, programs};

const OUR_CORE: &str = "0";
const THEIR_CORE: &str = "1";
/// Duration of a flood of handshakes, unless it is stopped. It is longer than a newcomer may take,
/// and each handshake takes 100 µs to make. A round that outlasts its flood does not count.
const HANDSHAKE_SECONDS: u32 = 4;
const JUNK_SECONDS: u32 = 60;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of rounds, each with and without the flood
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Size of the transferred file in megabytes
    #[arg(long, default_value_t = 1000)]
    megabytes: u64,
    /// Random datagrams per second
    #[arg(long, default_value_t = 200_000)]
    datagrams: u32,
    /// Datagrams of valid H1s per second, two for each handshake, from holders of the ticket
    #[arg(long, default_value_t = 50_000)]
    handshakes: u32,
    /// Source addresses of the handshakes in the second table
    #[arg(long, default_value_t = 1000)]
    sources: u32,
}

/// Measures and prints the results.
pub fn run(args: &Args) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    ensure!(cores >= 2, "the flood needs a core of its own");
    let wraith = cargo::build_release()?;
    let lab = programs::build("wraith-netlab")?;
    let folder = tempfile::Builder::new().prefix("wraith-flood-").tempdir()?;
    println!("{}, load {}, {}\n", machine::hardware(), machine::load(), machine::today());
    let bench = Bench { wraith: &wraith, lab: &lab, folder: folder.path() };
    running_transfer(&bench, args)?;
    newcomer(&bench, args, 1)?;
    newcomer(&bench, args, args.sources)
}

struct Bench<'a> {
    wraith: &'a Path,
    lab: &'a Path,
    folder: &'a Path,
}

/// A child process that is killed when this value is dropped.
struct KillOnDrop(Option<Child>);

impl KillOnDrop {
    fn end(mut self, name: &str) -> Result<()> {
        process::wait(self.0.take().context("it runs until it is ended")?, name)?;
        Ok(())
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A sender with an offer, and its address.
struct Sender {
    child: KillOnDrop,
    ticket: String,
    address: String,
}

fn running_transfer(bench: &Bench<'_>, args: &Args) -> Result<()> {
    let set = DataSet::one_file(&bench.folder.join("source"), args.megabytes * 1_000_000)?;
    set.warm()?;
    let (mut quiet, mut flooded, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        quiet.push(transfer(bench, &set, None)?.0);
        let (seconds, rate) = transfer(bench, &set, Some(args.datagrams))?;
        flooded.push(seconds);
        rates.extend(rate);
    }
    let (quiet, flooded) = (median(quiet), median(flooded));
    println!(
        "A transfer of {} MB on one core, {:.0} random datagrams a second at the sender's port from another: {:.2} s \
         instead of {:.2} s, {:.0} % of the goodput (medians of {}).",
        args.megabytes,
        median(rates),
        flooded,
        quiet,
        100.0 * quiet / flooded,
        args.rounds,
    );
    Ok(())
}

/// Returns the seconds from the receiver's start to its end, and the rate of the flood in datagrams
/// a second.
fn transfer(bench: &Bench<'_>, set: &DataSet, flood: Option<u32>) -> Result<(f64, Option<f64>)> {
    let sender = Sender::start(bench, &set.source, &["--no-sync"])?;
    let words = |per_second: u32| {
        [
            sender.address.clone(),
            format!("--per-second={per_second}"),
            format!("--seconds={JUNK_SECONDS}"),
        ]
    };
    let flood = flood.map(|per_second| Flood::ready(bench, &words(per_second), JUNK_SECONDS));
    let flood = flood.transpose()?;
    let flood = flood.map(Flood::start).transpose()?;
    let target = bench.folder.join("target");
    std::fs::create_dir(&target)?;
    let seconds = receive(bench, &sender.ticket, &target)?;
    let sent = flood.map(Flood::stop).transpose()?;
    sender.end()?;
    set.verify(&target)?;
    std::fs::remove_dir_all(&target)?;
    Ok((seconds, sent))
}

/// Measures how long a newcomer takes to receive a small file during the flood.
fn newcomer(bench: &Bench<'_>, args: &Args, sources: u32) -> Result<()> {
    let folder = bench.folder.join(format!("small-{sources}"));
    let set = DataSet::one_file(&folder, 1000)?;
    let (mut quiet, mut flooded, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        for with_flood in [false, true] {
            let sender = Sender::start(bench, &set.source, &[])?;
            let words = [
                sender.address.clone(),
                format!("--handshakes-for={}", sender.ticket),
                format!("--per-second={}", args.handshakes),
                format!("--seconds={HANDSHAKE_SECONDS}"),
                format!("--sources={sources}"),
            ];
            let flood = with_flood.then(|| Flood::ready(bench, &words, HANDSHAKE_SECONDS));
            let flood = flood.transpose()?.map(Flood::start).transpose()?;
            if flood.is_some() {
                // The flood starts first.
                std::thread::sleep(Duration::from_millis(500));
            }
            let target = bench.folder.join("target");
            std::fs::create_dir(&target)?;
            let seconds = receive(bench, &sender.ticket, &target)?;
            if let Some(flood) = flood {
                rates.push(flood.stop()?);
                flooded.push(seconds);
            } else {
                quiet.push(seconds);
            }
            sender.end()?;
            set.verify(&target)?;
            std::fs::remove_dir_all(&target)?;
        }
    }
    let slowest = flooded.iter().copied().fold(0.0, f64::max);
    println!(
        "A newcomer's file of 1 kB while {sources} of other addresses send {:.0} valid datagrams of H1s a second: {:.2} s, at \
         most {slowest:.2} s; without them {:.2} s (medians of {}).",
        median(rates),
        median(flooded),
        median(quiet),
        args.rounds,
    );
    Ok(())
}

fn receive(bench: &Bench<'_>, ticket: &str, target: &Path) -> Result<f64> {
    let start = Instant::now();
    let receiver = pinned(OUR_CORE, bench.wraith)
        .env("WRAITH_HOME", bench.folder.join("receiver"))
        .envs(crate::OFFLINE)
        .args(["receive", "-q", "--yes", "--no-sync", "-o"])
        .arg(target)
        .arg(ticket)
        .spawn()?;
    process::wait(receiver, "wraith receive")?;
    Ok(start.elapsed().as_secs_f64())
}

impl Sender {
    fn start(bench: &Bench<'_>, source: &Path, more: &[&str]) -> Result<Self> {
        let home = bench.folder.join("sender");
        // The port was free a moment ago, and no other process binds ports at that address.
        let free = std::net::UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
        let address = free.to_string();
        let mut child = pinned(OUR_CORE, bench.wraith)
            .env("WRAITH_HOME", &home)
            .envs(crate::OFFLINE)
            .args(["send", "-q", "--ticket", "--listen", &address])
            .args(more)
            .arg(source)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("it was piped")?).read_line(&mut line)?;
        let ticket = line.split_whitespace().last().context("wraith send printed no ticket")?;
        Ok(Self { ticket: ticket.to_owned(), child: KillOnDrop(Some(child)), address })
    }

    fn end(self) -> Result<()> {
        self.child.end("wraith send")
    }
}

/// A flood, prepared or in progress.
struct Flood {
    child: KillOnDrop,
    input: Option<ChildStdin>,
    out: BufReader<ChildStdout>,
    /// Duration after which the flood stops by itself.
    seconds: u32,
}

impl Flood {
    fn ready(bench: &Bench<'_>, words: &[String], seconds: u32) -> Result<Self> {
        let mut child = pinned(THEIR_CORE, bench.lab)
            .arg("flood")
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut out = BufReader::new(child.stdout.take().context("it was piped")?);
        let mut line = String::new();
        out.read_line(&mut line)?;
        ensure!(line.trim() == "ready", "the flood did not start");
        let input = child.stdin.take();
        Ok(Self { child: KillOnDrop(Some(child)), input, out, seconds })
    }

    fn start(mut self) -> Result<Self> {
        self.input.as_mut().context("it was piped")?.write_all(b"\n")?;
        Ok(self)
    }

    /// Stops the flood. Returns its rate in datagrams a second, by its own count.
    fn stop(mut self) -> Result<f64> {
        drop(self.input.take());
        let mut line = String::new();
        self.out.read_line(&mut line)?;
        let report: Value = serde_json::from_str(&line).context("the flood counted nothing")?;
        let number = |key: &str| report[key].as_f64().context("the flood counted nothing");
        let lasted = number("seconds")?;
        ensure!(lasted < f64::from(self.seconds), "the round took longer than its flood");
        let rate = number("sent")? / lasted;
        self.child.end("the flood")?;
        Ok(rate)
    }
}

fn pinned(core: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(program);
    command
}
