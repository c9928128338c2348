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
    /// Only build what the run needs
    #[arg(long)]
    build: bool,
}

/// Runs the tests, the smallest grid, a second of an emulated link with every kind of NAT, the counts
/// of code with secrets, and the guard.
pub fn run(args: &Args) -> Result<()> {
    let tests = test::Args::of_packages(&TESTED);
    if args.build {
        test::build(&tests, cargo::LAB)?;
        programs::build_debug("wraith-grid")?;
        programs::build_debug("wraith-netlab")?;
        programs::build("wraith-count")?;
        return programs::build("wraith-guard").map(drop);
    }
    let mut report = test::run(&tests, cargo::LAB)?;
    report.step("the small grid", || programs::grid(&["--ci".to_owned()]))?;
    report.step("netlab", netlab::smoke_test)?;
    report.step("instructions by secret", || count::run(&count::Args::small()))?;
    report.step("guard", || guard::run(&guard::Args::default()))?;
    skip::close(report.close())
}
