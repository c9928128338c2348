//! `cargo lab netlab nat`: hosts behind NATs of every kind, on real sockets.
//!
//! The lab is an internet of network namespaces ([`lab`]); the NATs are the kernel's ([`profile`]).
//! The lab first proves that its NATs behave as described ([`prove`]). Then the real program runs
//! behind every pair of NATs ([`matrix`]).

mod dht;
mod killed;
mod lab;
mod matrix;
mod profile;
mod prove;
mod service;
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
use self::side::RunContext;
use super::peers::Programs;

/// The access of most homes.
const HOME: &str = "port-restricted";
/// An access that reaches its own kind only through a relay.
const HARD: &str = "symmetric-random";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Measure every kind of access with real sockets instead, and compare it with its description
    #[arg(long)]
    prove: bool,
    /// Test discovery by the DHT alone instead: by code, and as contacts of which one has moved
    #[arg(long, conflicts_with = "prove")]
    dht: bool,
    /// Run the narrated story instead: direct with only a DHT, relayed, and with a killed relay
    #[arg(long, conflicts_with_all = ["prove", "dht"])]
    story: bool,
    /// Kill the relay in the middle of a transfer instead, and start it again
    #[arg(long, conflicts_with_all = ["prove", "dht", "story"])]
    killed: bool,
    /// Run raw services instead, by code and by contact, beside transfers between the same hosts
    #[arg(long, conflicts_with_all = ["prove", "dht", "story", "killed"])]
    service: bool,
    /// With --killed: transfer 1 GB at full speed
    #[arg(long, requires = "killed")]
    large: bool,
    /// With --dht: seconds between the move of a listener and the call. During its first minute a
    /// listener polls for calls more often
    #[arg(long, default_value_t = 15)]
    rest: u64,
    /// Use only these profiles: open, full-cone, address-restricted, port-restricted,
    /// symmetric-counting, symmetric-random, double, carrier-grade, udp-blocked, only-443,
    /// ipv6-firewall
    #[arg(long, value_delimiter = ',')]
    profiles: Vec<String>,
    /// Run only these pairs, as in open:symmetric-random
    #[arg(long, value_delimiter = ',')]
    pairs: Vec<String>,
    /// Runs of each pair; the sides swap roles in every other one
    #[arg(long, default_value_t = 1)]
    runs: u64,
    /// Number of pairs at once
    #[arg(long, default_value_t = 4)]
    at_once: usize,
    /// Give both sides two relays, which detect a NAT that counts ports up
    #[arg(long)]
    two_relays: bool,
    /// Transfer for 50 seconds instead of 7, long enough for port prediction
    #[arg(long)]
    long: bool,
    /// Use the existing builds of the programs
    #[arg(long)]
    no_build: bool,
}

/// Runs the requested lab, or prints why it cannot run.
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
    ensure!(!profiles.is_empty(), "no profile has this name");
    if args.prove {
        return prove::prove(&programs.netlab, &profiles);
    }
    super::in_folder(|base| {
        let stage = RunContext {
            wraith: programs.wraith,
            netlab: programs.netlab,
            echo: programs.echo,
            base: base.to_owned(),
            aloud: None,
        };
        if args.dht {
            let rest = Duration::from_secs(args.rest);
            return dht::run(&stage, [named(HOME)?, named("open")?], args.runs, rest);
        }
        if args.story {
            let stage = RunContext { aloud: Some(Instant::now()), ..stage };
            return story::run(&stage, named(HOME)?, named(HARD)?);
        }
        if args.killed {
            let file = if args.large { killed::LARGE } else { killed::SMALL };
            println!("{}", killed::run(&stage, "killed", named(HARD)?, file)?.describe());
            return Ok(());
        }
        if args.service {
            return service::run(&stage, &service_pairs()?, args.runs);
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

/// Two homes, which connect directly, and a pair that needs the relay.
fn service_pairs() -> Result<[(&'static Profile, &'static Profile); 2]> {
    Ok([(named(HOME)?, named(HOME)?), (named(HARD)?, named(HARD)?)])
}

/// Finds a pair by its name.
fn pair_named(pair: &str) -> Result<(&'static Profile, &'static Profile)> {
    let (a, b) = pair.split_once(':').context("a pair is SENDER:RECEIVER")?;
    Ok((named(a)?, named(b)?))
}

fn named(name: &str) -> Result<&'static Profile> {
    let found = PROFILES.iter().find(|profile| profile.name == name);
    found.with_context(|| format!("there is no profile {name:?}"))
}

/// Proves the lab and runs the smallest matrix: a path through two NATs, one through a relay, and
/// one through a relay by TLS.
pub fn smoke_test(programs: Programs, base: &Path) -> Result<()> {
    if let Some(why) = cannot_run() {
        crate::skip::skipped("the smoke test of netlab nat", why);
        return Ok(());
    }
    prove::prove(&programs.netlab, &PROFILES.iter().collect::<Vec<_>>())?;
    let pairs =
        ["port-restricted:port-restricted", "symmetric-random:port-restricted", "only-443:double"];
    let pairs = pairs.map(pair_named).into_iter().collect::<Result<_>>()?;
    let Programs { wraith, netlab, echo, .. } = programs;
    let stage = RunContext { wraith, netlab, echo, base: base.to_owned(), aloud: None };
    matrix::run(&stage, &Plan::smoke(pairs))?;
    service::run(&stage, &service_pairs()?, 1)
}

/// Returns the reason why this machine cannot run the lab, if there is one.
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
