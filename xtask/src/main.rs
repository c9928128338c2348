//! The commands for developers of wraith. Each command runs the steps that a person would type, in
//! the right order.
//!
//! Races, link emulation and other measurements are in `lab/` and run by `cargo lab`.

use clap::{Parser, Subcommand};
use xtask::{
    address_sanitizer, bindings, cargo, fuzz, model, package, prose, publishable, recording, skip,
    test,
};

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    about = "Developer commands of wraith; measurements: cargo lab --help"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run all tests, each in a process and a network namespace of its own; a failure runs a second time
    Test(test::Args),
    /// Run everything that must pass before a change lands (.ci/run)
    Ci,
    /// Measure the documents, comments and messages: free relatives, and words of a sentence
    Prose(prose::Args),
    /// Run N connections with fresh random seeds in the simulator
    Swarm {
        /// Number of connections
        #[arg(default_value_t = 1000)]
        connections: u64,
        /// Options of the swarm; `-- --help` lists them
        #[arg(last = true)]
        more: Vec<String>,
    },
    /// Feed arbitrary bytes to every decoder that a stranger or a peer can reach, under libFuzzer
    Fuzz(fuzz::Args),
    /// Run the tests of wraith-crypto, or of another package, under AddressSanitizer
    Asan(address_sanitizer::Args),
    /// Check the symbolic models of the protocol (docs/model) with Verifpal; installs it if it is missing
    Model(model::Args),
    /// Build the library for Python, Kotlin, Swift and C, generate the bindings, and run their tests
    Bindings(bindings::Args),
    /// Record a first transfer: docs/first-transfer.svg, and the transcript in the README
    Recording(recording::Args),
    /// Build a Debian package and an archive of the program, man pages and completions, and try them out
    Package(package::Args),
    /// Check what a registry would get of every crate that may be published
    Publishable(publishable::Args),
    /// Count the instructions of code with secrets for several secrets each (`cargo lab count`)
    #[command(disable_help_flag = true)]
    Ct {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Run a command of the lab (`cargo lab`)
    #[command(hide = true, disable_help_flag = true)]
    Lab {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Test(args) => tests(&args),
        Command::Ci => cargo::ci(),
        Command::Prose(args) => prose::run(&args),
        Command::Swarm { connections, more } => cargo::swarm(connections, &more),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Asan(args) => address_sanitizer::run(&args),
        Command::Model(args) => model::run(&args),
        Command::Bindings(args) => bindings::run(&args),
        Command::Recording(args) => recording::run(&args),
        Command::Package(args) => package::run(&args),
        Command::Publishable(args) => publishable::run(&args),
        Command::Ct { words } => cargo::lab(&[vec!["count".to_owned()], words].concat()),
        Command::Lab { words } => cargo::lab(&words),
    }
}

/// The selected tests; with no selection also the examples in doc comments, the package and the recording.
fn tests(args: &test::Args) -> anyhow::Result<()> {
    let mut report = test::run(args, cargo::WORKSPACE)?;
    if args.is_whole() {
        test::documentation(&mut report)?;
        report.step("package", package::smoke_test)?;
        report.step("recording", recording::smoke_test)?;
    }
    skip::close(report.close())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Cli, cargo};

    const DOCUMENTS: [&str; 8] = [
        "README.md",
        "docs/GUIDE.md",
        "docs/SESSIONS.md",
        "docs/TESTING.md",
        "bindings/README.md",
        "bindings/kotlin/README.md",
        "bindings/python/README.md",
        "bindings/swift/README.md",
    ];

    #[test]
    fn the_documented_commands_parse() {
        for name in DOCUMENTS {
            let text = std::fs::read_to_string(cargo::root().join(name)).unwrap();
            let lines = text.lines().filter_map(|line| line.strip_prefix("$ cargo xtask "));
            let lines: Vec<&str> = lines.map(|line| line.split(" #").next().unwrap()).collect();
            assert!(!lines.is_empty(), "{name} has no command of cargo xtask any more");
            for line in lines {
                let words = ["xtask"].into_iter().chain(line.split_whitespace());
                if let Err(error) = Cli::try_parse_from(words) {
                    panic!("{name}: cargo xtask {line}: {error}");
                }
            }
        }
    }
}
