//! `cargo lab ci`: small forms of the measurements that guard every change.

use anyhow::Result;
use xtask::test;

use crate::{cargo, count, guard, netlab, programs, skip};

/// Packages whose tests run: those of the small forms, and the command itself. The others race
/// against programs whose libraries take longer to build than all of this.
const TESTED: [&str; 6] =
    ["wraith-ct", "wraith-grid", "wraith-guard", "wraith-lab", "wraith-netlab", "wraith-wire"];

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only do what may run beside other work: build all programs, and count the instructions of code
    /// with secrets
    #[arg(long)]
    prepare: bool,
    /// Do only the rest, after --prepare
    #[arg(long, conflicts_with = "prepare")]
    prepared: bool,
}

/// Runs the tests, the smallest grid, a second of an emulated link with every kind of NAT, the counts
/// of code with secrets, and the guard.
pub fn run(args: &Args) -> Result<()> {
    let tests = test::Args::of_packages(&TESTED);
    let count = || count::run(&count::Args::small());
    if args.prepare {
        test::build(&tests, cargo::LAB)?;
        programs::build_debug("wraith-grid")?;
        programs::build_debug("wraith-netlab")?;
        programs::build("wraith-count")?;
        programs::build("wraith-guard")?;
        return count();
    }
    let mut report = test::run(&tests, cargo::LAB)?;
    report.step("the small grid", || programs::grid(&["--ci".to_owned()]))?;
    report.step("netlab", netlab::smoke_test)?;
    if !args.prepared {
        report.step("instructions by secret", count)?;
    }
    report.step("guard", || guard::run(&guard::Args::default()))?;
    skip::close(report.close())
}
