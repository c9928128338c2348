//! `cargo lab netlab`: wraith and other transports over realistic links, on real sockets.
//!
//! Two network namespaces on this machine have a TUN device each. A link between them runs the
//! simulator's own boxes (delay, loss, queue) in real time (`lab/netlab`). So these results and
//! those of the simulator's grid are for the same link; differences come from sockets, timers,
//! disks or processors.
//!
//! The rules:
//! - Rounds are interleaved: every round runs each peer once on each link, in a fresh lab, with the
//!   same random seed.
//! - The goodput of a file is its size over the time from the start of the first process to the end
//!   of the last. It includes the handshake and the receipt, and every byte is compared. iperf3
//!   sends as much and counts its own bytes.
//! - A peer that needs more than [`PATIENCE`] times the time at the full rate is stopped. Its
//!   result is read from the link and marked.
//! - The link has real-time priority, and the peers have priority over everything else on the
//!   machine.
//! - The link reports its own lateness. If the link itself lost packets in a run, the run is not
//!   used as a result of the peer.

mod lab;
mod links;
mod namespace;
mod nat;
mod neighbours;
mod peers;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use self::lab::{Lab, LinkReport};
use self::links::{LINKS, Link};
use self::peers::{Peer, Programs, Sample, TransferJob};
use crate::race::data::DataSet;

/// Time limit of a run, as a multiple of its time at the full rate of the link.
const PATIENCE: u64 = 6;
/// Default duration of a run at the full rate, in seconds.
const SECONDS: u64 = 10;
/// Additional time for starting and stopping.
const OVERHEAD: Duration = Duration::from_secs(20);
/// UDP rate of the calibration, in percent of the link's rate.
const CALIBRATION_PERCENT: u64 = 115;
const CALIBRATION_SECONDS: u64 = 3;
/// Link of the smoke test: it loses and reorders packets, and any congestion control fills it.
const SMOKE_LINK: &str = "scramble";

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    other: Option<OtherLab>,
    /// Number of rounds; each runs every peer once on each link
    #[arg(long, default_value_t = 3)]
    runs: u64,
    /// Duration of a run at the full rate of the link, in seconds [default: 10]
    #[arg(long)]
    seconds: Option<u64>,
    /// Use only these links: clean, loss, far, satellite, jitter, scramble, wifi, cable
    #[arg(long, value_delimiter = ',')]
    links: Vec<String>,
    /// Run only these peers, by their names in the table
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Skip the calibration of the links
    #[arg(long)]
    no_calibration: bool,
    /// Run one flow of wraith beside one of the kernel's TCP instead, for as long (60 s) on each
    /// link
    #[arg(long)]
    neighbours: bool,
    /// Run only the smoke test: one second of one link, with the programs that the tests built
    #[arg(long)]
    smoke: bool,
    /// Use the existing builds of the programs
    #[arg(long)]
    no_build: bool,
    /// Write the results to docs/performance/netlab.json and netlab.md
    #[arg(long)]
    record: bool,
}

/// Other labs.
#[derive(Debug, clap::Subcommand)]
enum OtherLab {
    /// Run hosts behind NATs of every kind
    Nat(nat::Args),
}

/// Result of one run, and its end.
#[derive(Clone, Debug)]
pub struct Run {
    pub sample: Sample,
    pub end: RunEnd,
    pub link: LinkReport,
}

/// End of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    Finished,
    /// Cut off; the sample counts the bytes that had passed the link.
    OutOfTime,
    /// The peer failed with this message.
    Failed(String),
}

/// All runs of one peer on one link.
#[derive(Debug)]
pub struct Row {
    pub peer: String,
    pub runs: Vec<Run>,
}

/// The link's measurement of itself.
#[derive(Clone, Debug)]
pub struct Calibration {
    pub rtt_ms: f64,
    pub udp_mbit: f64,
    pub link: LinkReport,
}

/// One link with all its runs.
#[derive(Debug)]
pub struct Measured<'a> {
    pub link: &'a Link,
    pub calibration: Option<Calibration>,
    pub rows: Vec<Row>,
}

/// Runs the requested lab, or prints why it cannot run.
pub fn run(args: &Args) -> Result<()> {
    if let Some(OtherLab::Nat(args)) = &args.other {
        return nat::run(args);
    }
    if let Some(why) = cannot_run() {
        skipped(&format!("netlab: {why}"));
        return Ok(());
    }
    if args.smoke {
        return smoke_test();
    }
    if !args.no_build {
        build()?;
        crate::cargo::build(
            crate::cargo::WORKSPACE,
            "wraith-transport",
            &["--example", "throughput"],
        )?;
        crate::cargo::build(crate::cargo::LAB, "wraith-peers", &["--bin", "quinn-peer"])?;
    }
    let programs = programs();
    if args.neighbours {
        return neighbours::run(&programs, args.runs, args.seconds, args.record);
    }
    in_folder(|base| measure(args, &programs, base))
}

/// The last of all tests, with the programs as the tests are built. It runs one second of a link
/// that reorders, where bytes and exit codes count and time does not, and measures every kind of
/// NAT.
pub fn smoke_test() -> Result<()> {
    if let Some(why) = cannot_run() {
        crate::skip::skipped("the smoke test of netlab", why);
        return Ok(());
    }
    crate::cargo::build_debug()?;
    crate::cargo::build_tested(&["--example", "echo", "--package", "wraith-p2p"])?;
    crate::programs::build_debug("wraith-netlab")?;
    in_folder(|base| smoke(&programs_in("debug"), base))?;
    in_folder(|base| nat::smoke_test(programs_in("debug"), base))
}

/// Runs `work` with a folder for its files, and removes the folder in every case.
fn in_folder(work: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let base = crate::cargo::target().join("netlab");
    // Removes the files of a killed run. Two labs at a time would disturb each other's figures
    // anyway.
    let _ = fs::remove_dir_all(&base);
    fs::create_dir_all(&base)?;
    remove_when_interrupted(&base)?;
    let result = work(&base);
    fs::remove_dir_all(&base)?;
    result
}

/// Returns the reason why this machine cannot run a lab, if there is one.
fn cannot_run() -> Option<&'static str> {
    let says = |program: &str, word: &str| {
        Command::new(program).arg(word).output().is_ok_and(|out| out.status.success())
    };
    let root = Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout == b"0\n");
    if !cfg!(target_os = "linux") {
        Some("it needs Linux")
    } else if !root {
        Some("it needs root")
    } else if !Path::new("/dev/net/tun").exists() {
        Some("there is no /dev/net/tun")
    } else if !says("ip", "-V") {
        Some("ip is not installed (Debian: apt-get install iproute2)")
    } else if !["nsenter", "unshare", "chrt"].iter().all(|program| says(program, "-V")) {
        Some("nsenter, unshare or chrt is not installed (Debian: apt-get install util-linux)")
    } else if Command::new("unshare").args(["--net", "true"]).status().is_ok_and(|s| s.success()) {
        None
    } else {
        Some("no network namespace can be made")
    }
}

fn build() -> Result<()> {
    crate::cargo::build_release()?;
    crate::cargo::build(crate::cargo::WORKSPACE, "wraith-p2p", &["--example", "echo"])?;
    crate::programs::build("wraith-netlab").map(|_| ())
}

fn programs() -> Programs {
    programs_in("release")
}

/// Returns the programs in this folder of the target folder.
fn programs_in(profile: &str) -> Programs {
    let folder = crate::cargo::target().join(profile);
    Programs {
        wraith: folder.join("wraith"),
        netlab: folder.join("wraith-netlab"),
        echo: folder.join("examples/echo"),
        throughput: folder.join("examples/throughput"),
        quinn: folder.join("quinn-peer"),
    }
}

/// Removes the files on a signal; everything else ends with this process.
fn remove_when_interrupted(base: &Path) -> Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let base = base.to_owned();
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _ = fs::remove_dir_all(&base);
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

fn measure(args: &Args, programs: &Programs, base: &Path) -> Result<()> {
    let links: Vec<_> = LINKS.iter().filter(|link| wanted(&args.links, link.key)).collect();
    let mut peers = Peer::available(programs)?;
    peers.retain(|peer| wanted(&args.peers, &peer.name()));
    ensure!(!links.is_empty() && !peers.is_empty(), "no link or peer has this name");
    let mut all = Vec::new();
    for link in &links {
        let calibration =
            if args.no_calibration { None } else { calibrate(programs, link).map(Some)? };
        let rows = peers.iter().map(|p| Row { peer: p.name(), runs: Vec::new() }).collect();
        all.push(Measured { link, calibration, rows });
    }
    for round in 1..=args.runs {
        for measured in &mut all {
            let seconds = args.seconds.unwrap_or(SECONDS) * measured.link.stretch;
            let set = data(measured.link, seconds, base)?;
            for (peer, row) in peers.iter().zip(&mut measured.rows) {
                let run = one(programs, measured.link, peer, (round, seconds), &set, base)?;
                eprintln!("round {round}: {}: {}", measured.link.name, table::line(peer, &run));
                row.runs.push(run);
            }
            fs::remove_dir_all(&set.folder)?;
        }
    }
    let (text, json) = (table::render(&all), table::json(&all));
    println!("\n{text}");
    if args.record { record("netlab", &text, &json) } else { Ok(()) }
}

fn wanted(list: &[String], name: &str) -> bool {
    list.is_empty() || list.iter().any(|word| word == name)
}

/// Makes a file that takes `seconds` at the full rate of the link.
fn data(link: &Link, seconds: u64, base: &Path) -> Result<DataSet> {
    let set = DataSet::one_file(&base.join("source"), link.mbit * 1_000_000 / 8 * seconds)?;
    set.warm()?;
    Ok(set)
}

/// Runs one peer once in a fresh lab, in round number `round` for `seconds`.
fn one(
    programs: &Programs,
    link: &Link,
    peer: &Peer,
    (round, seconds): (u64, u64),
    set: &DataSet,
    base: &Path,
) -> Result<Run> {
    let target = base.join("target");
    fs::create_dir(&target)?;
    let lab = Lab::start(&programs.netlab, link.boxes(), round)?;
    let job = TransferJob { set, target: &target, settings: base };
    let limit = Duration::from_secs(seconds * PATIENCE);
    let (result, timed_out) = lab.within(limit + OVERHEAD, || peer.run(&lab, programs, &job));
    let report = lab.finish()?;
    fs::remove_dir_all(&target)?;
    let (sample, end) = match result {
        _ if timed_out => (what_passed(&report, limit + OVERHEAD), RunEnd::OutOfTime),
        Ok(sample) => (sample, RunEnd::Finished),
        Err(error) if peer.is_wraith() => {
            return Err(error.context(format!("{} failed on {}", peer.name(), link.name)));
        }
        Err(error) => (Sample::default(), RunEnd::Failed(format!("{error:#}"))),
    };
    Ok(Run { sample, end, link: report })
}

/// The sample of a run that was cut off. It counts payload, headers and retransmissions.
fn what_passed(report: &LinkReport, time: Duration) -> Sample {
    let bytes = report.json["up"]["bytes_left"].as_f64().unwrap_or_default();
    Sample { mbit: bytes * 8.0 / 1e6 / time.as_secs_f64(), ..Sample::default() }
}

/// Measures the link itself: its round trip when idle, and its throughput under overload.
fn calibrate(programs: &Programs, link: &Link) -> Result<Calibration> {
    let lab = Lab::start(&programs.netlab, link.boxes(), 0)?;
    let limit = OVERHEAD + Duration::from_secs(CALIBRATION_SECONDS);
    let (result, _) = lab.within(limit, || -> Result<_> {
        let out =
            lab.a.command(&programs.netlab).args(["rtt", &format!("{}:9", lab::B)]).output()?;
        let rtt: Value = serde_json::from_slice(&out.stdout).context("no round trip")?;
        let mbit = link.mbit * CALIBRATION_PERCENT / 100;
        let udp_mbit = peers::udp(&lab, mbit, CALIBRATION_SECONDS)?;
        Ok((rtt["median_ms"].as_f64().context("no round trip")?, udp_mbit))
    });
    let report = lab.finish()?;
    let (rtt_ms, udp_mbit) = result.with_context(|| format!("cannot calibrate {}", link.name))?;
    let calibration = Calibration { rtt_ms, udp_mbit, link: report };
    eprintln!("{}: {}", link.name, table::calibration(&calibration));
    Ok(calibration)
}

fn smoke(programs: &Programs, base: &Path) -> Result<()> {
    let link = LINKS.iter().find(|link| link.key == SMOKE_LINK).context("no such link")?;
    let set = data(link, 1, base)?;
    let run = one(programs, link, &Peer::Wraith("bbr"), (1, 1), &set, base)?;
    println!("{}: {}", link.name, table::line(&Peer::Wraith("bbr"), &run));
    ensure!(run.end == RunEnd::Finished, "wraith did not finish");
    Ok(())
}

/// Writes results to docs/performance, as `name`.md and .json.
fn record(name: &str, text: &str, json: &Value) -> Result<()> {
    let folder: PathBuf = crate::cargo::root().join("docs/performance");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(format!("{name}.md")), text)?;
    fs::write(folder.join(format!("{name}.json")), serde_json::to_string_pretty(json)? + "\n")?;
    eprintln!("written to {}/{name}.md and .json", folder.display());
    Ok(())
}

fn skipped(what: &str) {
    eprintln!("!! SKIPPED {what}");
}
