//! `cargo lab wire`: tests that the bytes on the wire are noise.

use anyhow::{Result, ensure};
use clap::Parser;
use wraith_wire::{report, run};

/// Test recorded datagrams statistically, and controls that must fail the tests
#[derive(Debug, Parser)]
#[command(name = "cargo lab wire")]
struct Args {
    /// Record 300 handshakes and 16 MiB of packets instead of 10,000 and 1 GiB
    #[arg(long)]
    small: bool,
    /// Seed of all random numbers, except for records of the DHT
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<()> {
    let Args { small, seed } = Args::parse();
    println!("seed {seed}");
    let form = if small { run::SMALL } else { run::FULL };
    let outcome = run::run(form, seed, |what| eprintln!("{what}"))?;
    print!("{}", report::text(&outcome));
    ensure!(
        outcome.is_good(),
        "something on the wire is no noise, or a control was not caught (seed {seed})"
    );
    Ok(())
}
