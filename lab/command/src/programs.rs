//! The lab's own programs: how each is built, and the commands that only run one of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::cargo;

/// Packages of the programs that the commands run. Cargo takes the features of a dependency from
/// the selected packages, so these are always selected together. Another selection would compile
/// most dependencies again.
const PROGRAMS: [&str; 5] =
    ["wraith-ct", "wraith-grid", "wraith-guard", "wraith-netlab", "wraith-wire"];

/// Runs the scenario grid. The few cells of `--ci` take seconds even with the settings of the
/// tests.
pub fn grid(words: &[String]) -> Result<()> {
    run("wraith-grid", words, words.iter().any(|word| word == "--ci"))
}

/// Runs the test of the bytes on the wire. Its small form takes seconds even with the settings of
/// the tests.
pub fn wire(words: &[String]) -> Result<()> {
    run("wraith-wire", words, words.iter().any(|word| word == "--small"))
}

/// Runs the timing test, always with the product's settings, as other settings generate other
/// instructions.
pub fn ct(words: &[String]) -> Result<()> {
    run("wraith-ct", words, false)
}

/// Builds one of [`PROGRAMS`] and runs it in the project's folder.
fn run(name: &str, words: &[String], debug: bool) -> Result<()> {
    let program = if debug { build_debug(name) } else { build(name) }?;
    cargo::run(Command::new(program).args(words).current_dir(cargo::root()))
}

/// Builds one of [`PROGRAMS`] in release and returns its path.
pub fn build(name: &str) -> Result<PathBuf> {
    build_with(name, &["--release"])?;
    Ok(cargo::target().join("release").join(name))
}

/// Builds one of [`PROGRAMS`] with the settings of the tests and returns its path.
pub fn build_debug(name: &str) -> Result<PathBuf> {
    build_with(name, &[])?;
    Ok(cargo::target().join("debug").join(name))
}

fn build_with(name: &str, profile: &[&str]) -> Result<()> {
    let mut command =
        cargo::cargo(["build", "--locked", "--manifest-path", cargo::LAB, "--bin", name]);
    command.args(PROGRAMS.iter().flat_map(|package| ["--package", package])).args(profile);
    cargo::run(command.arg("--target-dir").arg(cargo::target()))
}

/// Runs the benchmarks of `package` whose names contain `filter`; criterion writes its results to
/// `folder`.
pub fn bench(package: &str, folder: &Path, filter: Option<&str>) -> Result<()> {
    let mut command = cargo::cargo(["bench", "--locked", "--manifest-path", cargo::LAB]);
    command.arg("--target-dir").arg(cargo::target());
    command.args(["--package", package, "--"]).args(filter);
    cargo::run(command.env("CRITERION_HOME", folder))
}
