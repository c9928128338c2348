//! A link of the simulator between two real TUN devices, for `cargo lab netlab`.
//!
//! ```text
//! wraith-netlab link --a NAME --b NAME --up 'rate=500 delay=25 loss=0.5' --down 'rate=500 delay=25' --seed 1
//! wraith-netlab rtt 10.77.0.2:9 --count 20
//! wraith-netlab nat-probe --servers 11.0.0.1 11.0.0.2
//! wraith-netlab dht-nodes --network 11.2.0.0 --nodes 60
//! wraith-netlab flood 127.0.0.1:49000 --per-second 200000 --seconds 10
//! ```
//!
//! `link` makes both devices, prints `ready`, relays until its standard input is closed, and prints
//! its report as one line of JSON. The devices vanish with it. [`boxes`] documents the boxes, and
//! [`relay`] their timing. `nat-probe` classifies a NAT ([`wraith_core::nat`]) by the measurements
//! of [`nat_probe`].

mod boxes;
mod dht_nodes;
mod flood;
mod lateness;
mod nat_probe;
mod nat_punch;
mod relay;
mod rtt;
mod tun;

use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Parser, Subcommand};
use relay::Relay;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tun::Tun;
use wraith_sim::link::Path;

#[derive(Debug, Parser)]
#[command(name = "wraith-netlab", about = "A simulated link between two real network interfaces")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make two interfaces and relay between them until standard input is closed
    Link(LinkArgs),
    /// Measure the round trip to an address whose port is closed
    Rtt {
        address: SocketAddr,
        #[arg(long, default_value_t = 20)]
        count: u32,
        /// Start no attempt after this many seconds
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Run a separate Mainline DHT until standard input is closed
    DhtNodes(dht_nodes::Args),
    /// Flood a loopback address as a stranger
    Flood(flood::Args),
    /// Answer `nat-probe` at two addresses until standard input is closed
    NatServer(nat_probe::Servers),
    /// Classify the NAT of this machine
    NatProbe(nat_probe::Servers),
    /// Try to reach another instance of this command behind its NAT, which tries the same
    NatPunch(nat_punch::Args),
}

#[derive(Debug, clap::Args)]
struct LinkArgs {
    /// Interface at one end
    #[arg(long)]
    a: String,
    /// Interface at the other
    #[arg(long)]
    b: String,
    /// Boxes from a to b
    #[arg(long, default_value = "")]
    up: String,
    /// Boxes from b to a
    #[arg(long, default_value = "")]
    down: String,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::DhtNodes(args) => dht_nodes::run(&args),
        Command::Flood(args) => flood::run(&args),
        Command::Link(args) => link(&args),
        Command::NatServer(args) => nat_probe::run_servers(&args),
        Command::NatProbe(args) => nat_probe::probe(&args),
        Command::NatPunch(args) => nat_punch::run(&args),
        Command::Rtt { address, count, seconds } => {
            round_trips(address, count, Duration::from_secs(seconds))
        }
    }
}

fn link(args: &LinkArgs) -> Result<()> {
    let up = Path::new(args.seed, boxes::parse(&args.up)?);
    let down = Path::new(!args.seed, boxes::parse(&args.down)?);
    let (a, b) = (Tun::create(&args.a)?, Tun::create(&args.b)?);
    println!("ready");
    std::io::stdout().flush()?;
    let start = Instant::now();
    let (up, down) = (Relay::new(&a, &b, up, start), Relay::new(&b, &a, down, start));
    let stdin = std::io::stdin();
    let (up, down) = thread::scope(|scope| {
        let up = scope.spawn(|| up.run(stdin.as_fd()));
        let down = down.run(stdin.as_fd());
        (up.join().expect("a relay does not panic"), down)
    });
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let cpu = Duration::new(cpu.tv_sec as u64, cpu.tv_nsec as u32);
    let report = json!({
        "up": up?.report(),
        "down": down?.report(),
        "seconds": start.elapsed().as_secs_f64(),
        "cpu_seconds": cpu.as_secs_f64(),
    });
    println!("{report}");
    Ok(())
}

fn round_trips(address: SocketAddr, count: u32, limit: Duration) -> Result<()> {
    let samples = rtt::measure(address, count, limit)?;
    let ms = |sample: Duration| sample.as_secs_f64() * 1e3;
    let report = json!({
        "count": samples.len(),
        "min_ms": ms(samples[0]),
        "median_ms": ms(samples[samples.len() / 2]),
        "p95_ms": ms(samples[samples.len() * 95 / 100]),
        "max_ms": ms(samples[samples.len() - 1]),
    });
    println!("{report}");
    Ok(())
}
