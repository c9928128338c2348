//! `cargo lab`: all measurements of wraith, alone and beside other programs.
//!
//! The product's own commands are in `xtask`. The lab also uses its calls of cargo and its test
//! runner.

mod bench;
mod ci;
mod count;
mod delta;
mod flood;
mod guard;
mod machine;
mod median;
mod netlab;
mod programs;
mod race;

use clap::{Parser, Subcommand};
use xtask::{OFFLINE, cargo, skip};

#[derive(Debug, Parser)]
#[command(name = "cargo lab", about = "Measurements of wraith, alone and beside other programs")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Race wraith against common tools on the same data in turn: medians, ratios, CPU time, peak
    /// memory
    Race(race::Args),
    /// Compare several receivers of one sender at once with one receiver alone
    Fanout(race::fanout::Args),
    /// Measure the cost of a changed file, beside the whole file and beside rsync
    Delta(delta::Args),
    /// Draw the tables and charts of the committed race again
    Charts,
    /// Run the scenario grid: wraith beside other transports over simulated links of every kind
    Grid {
        /// Options of the grid; `cargo lab grid --help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Measure wraith and others over slow, long and lossy links between network namespaces (needs
    /// root)
    Netlab(netlab::Args),
    /// Measure the cost of a flood from strangers for a transfer and for a newcomer
    Flood(flood::Args),
    /// Test that the bytes on the wire are noise, and that the test would find mistakes
    Wire {
        /// Options of the test; `cargo lab wire --help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Test that code with secrets runs in constant time, and that the test would find leaks
    Ct {
        /// Options of the test; `cargo lab ct --help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Count the instructions of code with secrets for several secrets each: the counts must be the
    /// same
    Count(count::Args),
    /// Count the instructions of the hot paths under callgrind and compare them with the baseline
    Guard(guard::Args),
    /// Run the microbenchmarks and compare them with the figures of other systems
    Bench(bench::Args),
    /// Run the part of the lab that must pass before a change lands: its tests, the small grid, the
    /// guard
    Ci(ci::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Race(args) => race::run(&args),
        Command::Fanout(args) => race::fanout::run(&args),
        Command::Delta(args) => delta::run(&args),
        Command::Charts => race::charts(),
        Command::Grid { words } => programs::grid(&words),
        Command::Netlab(args) => netlab::run(&args),
        Command::Flood(args) => flood::run(&args),
        Command::Wire { words } => programs::wire(&words),
        Command::Ct { words } => programs::ct(&words),
        Command::Count(args) => count::run(&args),
        Command::Guard(args) => guard::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Ci(args) => ci::run(&args),
    }
}
