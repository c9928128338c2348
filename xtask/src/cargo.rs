//! Calls of cargo, and the folders of its results.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Manifest of the product's workspace, relative to [`root`].
pub const WORKSPACE: &str = "Cargo.toml";
/// Manifest of the workspace of measurements.
pub const LAB: &str = "lab/Cargo.toml";

/// Runs `connections` connections with fresh seeds; the simulator prints the seed of each failure.
pub fn swarm(connections: u64, more: &[String]) -> Result<()> {
    let mut words: Vec<String> =
        ["run", "--release", "--locked", "--package", "wraith-sim", "--example", "swarm", "--"]
            .map(String::from)
            .to_vec();
    words.push(connections.to_string());
    words.extend_from_slice(more);
    run(&mut cargo(words))
}

/// Runs the checks that a change must pass before it lands. The list is in `.ci/run`, which needs
/// nothing built.
pub fn ci() -> Result<()> {
    run(&mut Command::new(root().join(".ci/run")))
}

/// Runs a command of the lab. Both workspaces build into one folder, so shared dependencies are
/// compiled once.
pub fn lab(words: &[String]) -> Result<()> {
    let mut command = cargo(["run", "--quiet", "--locked", "--package", "wraith-lab"]);
    command.args(["--manifest-path", LAB, "--target-dir"]).arg(target()).arg("--").args(words);
    let status = command.status().context("cannot run cargo")?;
    // The command has reported its own error.
    std::process::exit(status.code().unwrap_or(1));
}

/// Builds the program as users get it, and returns its path.
pub fn build_release() -> Result<PathBuf> {
    run(&mut cargo([
        "build",
        "--release",
        "--locked",
        "--bin",
        "wraith",
        "--package",
        "wraith-p2p-cli",
    ]))?;
    Ok(target().join("release/wraith"))
}

/// Builds the program with the settings of the tests, and returns its path.
pub fn build_debug() -> Result<PathBuf> {
    build_tested(&["--bin", "wraith", "--package", "wraith-p2p-cli"])?;
    Ok(target().join("debug/wraith"))
}

/// Builds the selected targets with the settings of the tests. In CI all tests were just built: with
/// a selection, cargo would unify other features and compile the dependencies again.
pub fn build_tested(selection: &[&str]) -> Result<()> {
    let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    let words = match in_ci {
        true => ["test", "--workspace", "--no-run", "--locked"].to_vec(),
        false => ["build", "--locked"].iter().chain(selection).copied().collect(),
    };
    run(&mut cargo(words))
}

/// Downloads the sources of all dependencies, for all platforms. Tests without a network read them:
/// `cargo metadata` needs every package of the lock file.
pub fn fetch(manifest: &str) -> Result<()> {
    run(&mut cargo(["fetch", "--locked", "--quiet", "--manifest-path", manifest]))
}

/// Builds `package` of the workspace with this manifest in release, with further options of cargo.
pub fn build(manifest: &str, package: &str, more: &[&str]) -> Result<()> {
    let words =
        ["build", "--release", "--locked", "--manifest-path", manifest, "--package", package];
    run(cargo(words).arg("--target-dir").arg(target()).args(more))
}

/// Builds a package outside the workspace in release, for `triple`, into `folder`. The package has
/// no lock file: it would be out of date after every change of the workspace's lock file.
pub fn build_elsewhere(manifest: &str, folder: &Path, triple: &str, rustflags: &str) -> Result<()> {
    let words = ["build", "--release", "--manifest-path", manifest, "--target", triple];
    run(cargo(words).arg("--target-dir").arg(folder).env("RUSTFLAGS", rustflags))
}

/// Returns the target triple of this machine.
pub fn host() -> Result<String> {
    let version = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?.stdout;
    let version = String::from_utf8_lossy(&version);
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc prints no host")?.to_owned())
}

/// Returns cargo's target folder.
pub fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    // A relative path is relative to the workspace, as in cargo.
    root().join(target.map_or_else(|| "target".into(), PathBuf::from))
}

/// Returns the folder of the project: the one above the manifest of the running command that
/// contains `.ci`. If several checkouts share a target folder, the running program may have been
/// built in another checkout.
pub fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR");
    let package = package.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let root = package.ancestors().find(|folder| folder.join(".ci/run").exists());
    root.expect("the developer commands are in the project's folder").to_owned()
}

/// Returns a cargo command with these arguments, in the workspace.
pub fn cargo<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args(words).current_dir(root());
    command
}

/// Prints a command and runs it. Fails if the command fails.
pub fn run(command: &mut Command) -> Result<()> {
    let line = announce(command);
    let status = command.status().with_context(|| format!("cannot run {line}"))?;
    ensure!(status.success(), "failed ({status}): {line}");
    Ok(())
}

/// Prints the command as a person would type it, and returns that line.
pub fn announce(command: &Command) -> String {
    let line = format!("{command:?}").replace('"', "");
    eprintln!("$ {line}");
    line
}
