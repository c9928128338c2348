//! Developer commands: `cargo xtask test | race | fanout | delta | charts | grid | netlab | flood | swarm | wire | ct | guard | bench | fuzz | model |
//! package | publishable | bindings | recording | ci`. Each is what a person would type,
//! in the right order; what they print is meant to be pasted.

mod bench;
mod bindings;
mod cargo;
mod delta;
mod flood;
mod fuzz;
mod guard;
mod machine;
mod median;
mod model;
mod netlab;
mod package;
mod publishable;
mod race;
mod recording;
mod skip;
mod test;

use clap::{Parser, Subcommand};

/// What the program is run with wherever it is measured or shown: it then asks neither the DHT nor a router.
const OFFLINE: [(&str, &str); 2] = [("WRAITH_DHT", "off"), ("WRAITH_PORT_MAPPING", "off")];

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Developer commands of wraith")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run all tests, each in a process and a network namespace of its own; a failure runs a second time
    Test(test::Args),
    /// Race wraith against what people use today, on the same data in turn; medians, ratios, CPU time, peak memory
    Race(race::Args),
    /// Measure several receivers of one sender at once beside one alone
    Fanout(race::fanout::Args),
    /// Measure what a changed file costs whose old copy the receiver has, beside sending it whole and beside rsync
    Delta(delta::Args),
    /// Make the tables and charts of the committed race again
    Charts,
    /// Run the scenario grid: wraith beside other transports over simulated links of every kind
    Grid {
        /// Passed on; `--help` lists what there is
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Measure wraith and others over slow, long and lossy links between network namespaces (needs root)
    Netlab(netlab::Args),
    /// Measure what a flood from strangers takes from a transfer and from a newcomer
    Flood(flood::Args),
    /// Run N connections with fresh random seeds in the simulator
    Swarm {
        /// How many
        #[arg(default_value_t = 1000)]
        connections: u64,
        /// Passed on to the swarm
        #[arg(last = true)]
        more: Vec<String>,
    },
    /// Test whether what is on the wire is noise, and that mistakes would be seen
    Wire {
        /// Passed on; `--help` lists what there is
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Test whether what works on secrets takes the same time whatever they are, and that leaks would be found
    Ct {
        /// Passed on; `--help` lists what there is
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Count the instructions of the hot paths under callgrind and compare them with the baseline
    Guard(guard::Args),
    /// Run the microbenchmarks and set them beside the figures of other systems
    Bench(bench::Args),
    /// Give arbitrary bytes to every decoder that a stranger or a peer can reach, under libFuzzer
    Fuzz(fuzz::Args),
    /// Check the symbolic models of the protocol (docs/model) under Verifpal, which is installed if need be
    Model(model::Args),
    /// Make a Debian package and an archive of the program, man pages and completions, and try them out
    Package(package::Args),
    /// Put together what a registry would get of every crate that may be published
    Publishable,
    /// Build the library for Python, Kotlin, Swift and C, make the bindings, and run their tests
    Bindings(bindings::Args),
    /// Record a first transfer: docs/first-transfer.svg, and the transcript in the README
    Recording(recording::Args),
    /// Everything that must hold before a change lands (.ci/run)
    Ci,
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Test(args) => tests(&args),
        Command::Race(args) => race::run(&args),
        Command::Fanout(args) => race::fanout::run(&args),
        Command::Delta(args) => delta::run(&args),
        Command::Charts => race::charts(),
        Command::Grid { words } => cargo::grid(&words),
        Command::Netlab(args) => netlab::run(&args),
        Command::Flood(args) => flood::run(&args),
        Command::Swarm { connections, more } => cargo::swarm(connections, &more),
        Command::Wire { words } => cargo::wire(&words),
        Command::Ct { words } => cargo::ct(&words),
        Command::Guard(args) => guard::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Model(args) => model::run(&args),
        Command::Package(args) => package::run(&args),
        Command::Publishable => publishable::run(),
        Command::Bindings(args) => bindings::run(&args),
        Command::Recording(args) => recording::run(&args),
        Command::Ci => cargo::ci(),
    }
}

/// The selected tests; with no selection also the examples in doc comments and the smoke tests of the developer commands.
fn tests(args: &test::Args) -> anyhow::Result<()> {
    let mut report = test::run(args)?;
    if args.is_whole() {
        test::documentation(&mut report)?;
        report.step("netlab", netlab::smoke_test)?;
        report.step("package", package::smoke_test)?;
        report.step("recording", recording::smoke_test)?;
    }
    skip::close(report.close())
}
