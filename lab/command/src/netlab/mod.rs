//! `cargo lab netlab`: wraith and others over the links that people have, on real sockets.
//!
//! Two network namespaces on this machine, each with a TUN device, and between them a link of the simulator's own boxes
//! in real time (`lab/netlab`). So a figure here and one of the simulator's grid are of the same link, and where they
//! differ, sockets, timers, disks or processors are the reason.
//!
//! The rules:
//! - interleaved: every round runs each peer once on each link, on a lab made afresh, with the same seed of chance.
//! - the goodput of a file is its size over the time from the start of the first process to the end of the last, the
//!   handshake and the receipt included, and every byte is compared; iperf3 sends as much, and counts itself.
//! - who does not finish within [`PATIENCE`] times the time at full rate has not finished; what it managed until then is
//!   read from the link and marked.
//! - the link has real-time priority, and the peers come before everything else on the machine.
//! - the link says how late it was; a run in which it lost packets of its own does not count as one of a peer.

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
use self::peers::{Job, Peer, Programs, Sample};
use crate::race::data::DataSet;

/// A run may take so many times what it would at the full rate of the link.
const PATIENCE: u64 = 6;
/// How long a run lasts at the full rate, unless told otherwise.
const SECONDS: u64 = 10;
/// On top of it, for starting and stopping.
const OVERHEAD: Duration = Duration::from_secs(20);
/// The link is calibrated with UDP at so many percent of its rate.
const CALIBRATION_PERCENT: u64 = 115;
const CALIBRATION_SECONDS: u64 = 3;
/// Of the smoke test: much happens on it, and any congestion control fills it.
const SMOKE_LINK: &str = "scramble";

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    other: Option<Other>,
    /// Rounds; each runs every peer once on each link
    #[arg(long, default_value_t = 3)]
    runs: u64,
    /// Seconds that a run lasts at the full rate of the link: 10 unless said otherwise
    #[arg(long)]
    seconds: Option<u64>,
    /// Only these links: clean, loss, far, satellite, jitter, scramble, wifi, cable
    #[arg(long, value_delimiter = ',')]
    links: Vec<String>,
    /// Only these peers, as the table names them
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Do not measure the links themselves first
    #[arg(long)]
    no_calibration: bool,
    /// Instead of peers alone: one flow of wraith beside one of the kernel's TCP, for as long (60 s) on each link
    #[arg(long)]
    neighbours: bool,
    /// Only what ends the tests: one second of one link, with the programs that the tests built
    #[arg(long)]
    smoke: bool,
    /// Use the programs as they were built last
    #[arg(long)]
    no_build: bool,
    /// Write the results to docs/performance/netlab.json and netlab.md
    #[arg(long)]
    record: bool,
}

/// Labs of another kind.
#[derive(Debug, clap::Subcommand)]
enum Other {
    /// Hosts behind NATs of every kind
    Nat(nat::Args),
}

/// One run: what it came to, and how it ended.
#[derive(Clone, Debug)]
pub struct Run {
    pub sample: Sample,
    pub end: End,
    pub link: LinkReport,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Finished,
    /// Cut off; the sample is what passed the link until then.
    OutOfTime,
    /// The peer gave up, and said this.
    Failed(String),
}

/// All runs of one peer on one link.
#[derive(Debug)]
pub struct Row {
    pub peer: String,
    pub runs: Vec<Run>,
}

/// What the link measured of itself.
#[derive(Clone, Debug)]
pub struct Calibration {
    pub rtt_ms: f64,
    pub udp_mbit: f64,
    pub link: LinkReport,
}

/// One link with all that ran on it.
#[derive(Debug)]
pub struct Measured<'a> {
    pub link: &'a Link,
    pub calibration: Option<Calibration>,
    pub rows: Vec<Row>,
}

/// Runs what was asked for, or says why it cannot.
pub fn run(args: &Args) -> Result<()> {
    if let Some(Other::Nat(args)) = &args.other {
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

/// The last of all tests: a second of a link that reorders, where bytes and exit codes count and time does not; and every kind
/// of NAT, measured.
pub fn smoke_test() -> Result<()> {
    if let Some(why) = cannot_run() {
        crate::skip::skipped("the smoke test of netlab", why);
        return Ok(());
    }
    build()?;
    in_folder(|base| smoke(&programs(), base))?;
    in_folder(|base| nat::smoke_test(programs(), base))
}

/// Does `work` with a folder for its files, which is removed however it ends.
fn in_folder(work: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let base = crate::cargo::target().join("netlab");
    // What a killed run left; two at a time would disturb each other's figures anyway.
    let _ = fs::remove_dir_all(&base);
    fs::create_dir_all(&base)?;
    remove_when_interrupted(&base)?;
    let result = work(&base);
    fs::remove_dir_all(&base)?;
    result
}

/// Why there can be no lab here.
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
    crate::programs::build("wraith-netlab").map(|_| ())
}

fn programs() -> Programs {
    let release = crate::cargo::target().join("release");
    Programs {
        wraith: release.join("wraith"),
        netlab: release.join("wraith-netlab"),
        throughput: release.join("examples/throughput"),
        quinn: release.join("quinn-peer"),
    }
}

/// Everything else ends with this process; files do not.
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
    ensure!(!links.is_empty() && !peers.is_empty(), "there is no such link or peer");
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

/// A file that takes `seconds` at the full rate of the link.
fn data(link: &Link, seconds: u64, base: &Path) -> Result<DataSet> {
    let set = DataSet::one_file(&base.join("source"), link.mbit * 1_000_000 / 8 * seconds)?;
    set.warm()?;
    Ok(set)
}

/// One run of one peer on a lab of its own, in round number `round` for `seconds`.
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
    let job = Job { set, target: &target, settings: base };
    let limit = Duration::from_secs(seconds * PATIENCE);
    let (result, timed_out) = lab.within(limit + OVERHEAD, || peer.run(&lab, programs, &job));
    let report = lab.finish()?;
    fs::remove_dir_all(&target)?;
    let (sample, end) = match result {
        _ if timed_out => (what_passed(&report, limit + OVERHEAD), End::OutOfTime),
        Ok(sample) => (sample, End::Finished),
        Err(error) if peer.is_wraith() => {
            return Err(error.context(format!("{} failed on {}", peer.name(), link.name)));
        }
        Err(error) => (Sample::default(), End::Failed(format!("{error:#}"))),
    };
    Ok(Run { sample, end, link: report })
}

/// Of a run that was cut off: payload, headers and repetitions.
fn what_passed(report: &LinkReport, time: Duration) -> Sample {
    let bytes = report.json["up"]["bytes_left"].as_f64().unwrap_or_default();
    Sample { mbit: bytes * 8.0 / 1e6 / time.as_secs_f64(), ..Sample::default() }
}

/// What the link really is: its round trip when idle, and what passes when more is sent.
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
    ensure!(run.end == End::Finished, "wraith did not finish");
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
