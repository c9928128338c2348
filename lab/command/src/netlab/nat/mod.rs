//! `cargo lab netlab nat`: hosts behind NATs of every kind, on real sockets.
//!
//! The lab is an internet of network namespaces ([`lab`]), the NATs are the kernel's ([`profile`]). Before anything is believed
//! that runs in it, the lab proves itself ([`prove`]). Then the program as users have it runs behind every two of the NATs
//! ([`matrix`]).

mod dht;
mod killed;
mod lab;
mod matrix;
mod profile;
mod prove;
mod side;
mod spent;
mod story;
mod transfer;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use self::matrix::Plan;
use self::profile::{PROFILES, Profile};
use self::side::Stage;
use super::peers::Programs;

/// What most homes have.
const HOME: &str = "port-restricted";
/// What has no way but a relay to its like.
const HARD: &str = "symmetric-random";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Instead: measure every kind of access with real sockets, and compare it with what it should be
    #[arg(long)]
    prove: bool,
    /// Instead: find each other by nothing but a DHT, by code and as contacts of whom one has moved
    #[arg(long, conflicts_with = "prove")]
    dht: bool,
    /// Instead: the whole story, told: direct with nothing but a DHT, relayed, and the relay killed
    #[arg(long, conflicts_with_all = ["prove", "dht"])]
    story: bool,
    /// Instead: kill the relay in the middle of a transfer, and start it again
    #[arg(long, conflicts_with_all = ["prove", "dht", "story"])]
    killed: bool,
    /// With --killed: in the middle of 1 GB at full speed
    #[arg(long, requires = "killed")]
    large: bool,
    /// With --dht: how many seconds a listener that has moved has been there when it is called. For its first minute it looks for
    /// calls more often
    #[arg(long, default_value_t = 15)]
    rest: u64,
    /// Only these: open, full-cone, address-restricted, port-restricted, symmetric-counting, symmetric-random, double,
    /// carrier-grade, udp-blocked, only-443, ipv6-firewall
    #[arg(long, value_delimiter = ',')]
    profiles: Vec<String>,
    /// Only these pairs, as in open:symmetric-random
    #[arg(long, value_delimiter = ',')]
    pairs: Vec<String>,
    /// Runs of each pair; each side is the sender of every other one
    #[arg(long, default_value_t = 1)]
    runs: u64,
    /// Pairs at once
    #[arg(long, default_value_t = 4)]
    at_once: usize,
    /// Both sides know two relays: a NAT that counts up is seen to do so
    #[arg(long)]
    two_relays: bool,
    /// A transfer lasts 50 seconds in place of 7: long enough for ports to be guessed
    #[arg(long)]
    long: bool,
    /// Use the programs as they were built last
    #[arg(long)]
    no_build: bool,
}

/// Runs what was asked for, or says why it cannot.
pub fn run(args: &Args) -> Result<()> {
    if let Some(why) = cannot_run() {
        eprintln!("!! SKIPPED netlab nat: {why}");
        return Ok(());
    }
    if !args.no_build {
        super::build()?;
    }
    let programs = super::programs();
    let wanted = |profile: &&Profile| super::wanted(&args.profiles, profile.name);
    let profiles: Vec<_> = PROFILES.iter().filter(wanted).collect();
    ensure!(!profiles.is_empty(), "there is no such profile");
    if args.prove {
        return prove::prove(&programs.netlab, &profiles);
    }
    super::in_folder(|base| {
        let stage = Stage {
            wraith: programs.wraith,
            netlab: programs.netlab,
            base: base.to_owned(),
            aloud: None,
        };
        if args.dht {
            let rest = Duration::from_secs(args.rest);
            return dht::run(&stage, [named(HOME)?, named("open")?], args.runs, rest);
        }
        if args.story {
            let stage = Stage { aloud: Some(Instant::now()), ..stage };
            return story::run(&stage, named(HOME)?, named(HARD)?);
        }
        if args.killed {
            let file = if args.large { killed::LARGE } else { killed::SMALL };
            println!("{}", killed::run(&stage, "killed", named(HARD)?, file)?.describe());
            return Ok(());
        }
        ensure!(args.at_once > 0, "nothing runs with --at-once 0");
        let mut plan = Plan::all(&profiles, args.runs, args.at_once);
        if !args.pairs.is_empty() {
            plan.pairs = args.pairs.iter().map(|pair| pair_named(pair)).collect::<Result<_>>()?;
        }
        plan.two_relays = args.two_relays;
        if args.long {
            plan.files = matrix::LONG_FILES;
        }
        matrix::run(&stage, &plan)
    })
}

/// A pair by its name.
fn pair_named(pair: &str) -> Result<(&'static Profile, &'static Profile)> {
    let (a, b) = pair.split_once(':').context("a pair is SENDER:RECEIVER")?;
    Ok((named(a)?, named(b)?))
}

fn named(name: &str) -> Result<&'static Profile> {
    let found = PROFILES.iter().find(|profile| profile.name == name);
    found.with_context(|| format!("there is no profile {name:?}"))
}

/// The lab proves itself, and the smallest matrix: a way through two NATs, one through a relay, and one through a relay by TLS.
pub fn smoke_test(programs: Programs, base: &Path) -> Result<()> {
    if let Some(why) = cannot_run() {
        crate::skip::skipped("the smoke test of netlab nat", why);
        return Ok(());
    }
    prove::prove(&programs.netlab, &PROFILES.iter().collect::<Vec<_>>())?;
    let pairs =
        ["port-restricted:port-restricted", "symmetric-random:port-restricted", "only-443:double"];
    let pairs = pairs.map(pair_named).into_iter().collect::<Result<_>>()?;
    let Programs { wraith, netlab, .. } = programs;
    matrix::run(&Stage { wraith, netlab, base: base.to_owned(), aloud: None }, &Plan::smoke(pairs))
}

/// Why there can be no such lab here.
fn cannot_run() -> Option<&'static str> {
    if let Some(why) = super::cannot_run() {
        return Some(why);
    }
    let nft = Command::new("nft").arg("--version").output();
    if nft.is_ok_and(|out| out.status.success()) {
        None
    } else {
        Some("nft is not installed (Debian: apt-get install nftables)")
    }
}
