//! `cargo xtask test`: every test in a process of its own, cut off from the machine and from every other test.
//!
//! Tests of one binary share a process under `cargo test`, and all tests of a machine share its ports, its multicast groups, and
//! the signals, limits and variables of the shell that started them. Here a test shares none of these
//! ([`isolation`]), so the order and the number of tests that run at once change nothing.
//!
//! Invariants:
//! - No test waits for ever: a test that exceeds [`run::LIMIT`] is killed, with every process in its network namespace.
//! - A test that fails runs a second time, while no other test runs. If the second run passes, the
//!   test is reported as `FLAKY`, the outputs of both runs are kept, and the whole run is treated
//!   as passed ([`report`]).

mod binaries;
mod isolation;
mod report;
mod run;

use std::sync::Arc;

use anyhow::{Result, ensure};

pub use self::binaries::Binary;
pub use self::report::Report;
use crate::cargo;

/// Tests at once for each core: most of them wait for other processes, for a silent peer, or for a deadline.
const TESTS_PER_CORE: usize = 4;

#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Only tests whose name contains one of these words; `PACKAGE::` selects all tests of a package
    filters: Vec<String>,
    /// Only tests of this package (repeatable)
    #[arg(long, short, value_name = "PACKAGE")]
    package: Vec<String>,
    /// Runs of each test, all of which must pass
    #[arg(long, value_name = "N", default_value_t = 1)]
    times: usize,
    /// Tests that run at once; 4 for each core by default
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Report a failure at once instead of running the test a second time
    #[arg(long)]
    no_retry: bool,
}

impl Args {
    /// Selects all tests of these packages, once.
    pub fn of_packages(packages: &[&str]) -> Self {
        let package = packages.iter().map(|package| (*package).to_owned()).collect();
        Self { package, times: 1, ..Self::default() }
    }

    /// Whether this is the run of everything, with the tests of documentation and of the developer commands.
    pub fn is_whole(&self) -> bool {
        self.filters.is_empty() && self.package.is_empty() && self.times == 1
    }

    fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or_else(|| TESTS_PER_CORE * cores())
    }
}

/// Builds the selected tests, and downloads what they read.
pub fn build(args: &Args, manifest: &str) -> Result<Vec<Arc<Binary>>> {
    cargo::fetch(manifest)?;
    binaries::build(manifest, &args.package)
}

/// Builds and runs the selected tests of the workspace with this manifest. The caller closes the report.
pub fn run(args: &Args, manifest: &str) -> Result<Report> {
    isolation::reset_this_process()?;
    let binaries = build(args, manifest)?;
    let cases = binaries::cases(&binaries, &args.filters, args.times)?;
    ensure!(!cases.is_empty(), "no test has a name with {}", args.filters.join(" or "));
    let mut report = Report::new(manifest)?;
    println!("{} tests of {} binaries, {} at once", cases.len(), binaries.len(), args.threads());
    let failed = run::all(cases, args.threads(), &mut report)?;
    run::again(failed, args.no_retry, &mut report)?;
    Ok(report)
}

/// The examples in doc comments.
pub fn documentation(report: &mut Report) -> Result<()> {
    report.step("the examples in doc comments", || {
        let mut command = cargo::cargo(["test", "--workspace", "--locked", "--doc", "--quiet"]);
        isolation::set_environment(&mut command);
        cargo::run(&mut command)
    })
}
