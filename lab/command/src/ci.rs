//! `cargo lab ci`: small forms of the measurements that guard every change.

use anyhow::Result;
use xtask::test;

use crate::{cargo, guard, netlab, programs, skip};

/// Packages whose tests run: those of the small forms, and the command itself. The others race
/// against programs whose libraries take longer to build than all of this.
const TESTED: [&str; 6] =
    ["wraith-ct", "wraith-grid", "wraith-guard", "wraith-lab", "wraith-netlab", "wraith-wire"];

/// Runs the tests, the smallest grid, a second of an emulated link with every kind of NAT, and the
/// guard.
pub fn run() -> Result<()> {
    let mut report = test::run(&test::Args::of_packages(&TESTED), cargo::LAB)?;
    report.step("the small grid", || programs::grid(&["--ci".to_owned()]))?;
    report.step("netlab", netlab::smoke_test)?;
    report.step("guard", || guard::run(&guard::Args::default()))?;
    skip::close(report.close())
}
