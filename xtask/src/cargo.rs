//! The commands that are cargo's in the end.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// All tests of the workspace, with their debug assertions. The program's own move gigabytes between real processes, so
/// the processes they start are of the release build; the tests themselves need not be.
pub fn test() -> Result<()> {
    let program = build_release()?;
    run(cargo(["test", "--workspace", "--locked"]).env("WRAITH_PROGRAM", &program))?;
    // Those that wait for minutes, as nobody wants to in between.
    let slow = ["test", "--locked", "-p", "wraith-cli", "--test", "silent_peer", "--test", "sleep"];
    run(cargo(slow.into_iter().chain(["--", "--ignored"])).env("WRAITH_PROGRAM", program))
}

/// `connections` connections with fresh seeds; the simulator prints the seed of any that fails.
pub fn swarm(connections: u64, more: &[String]) -> Result<()> {
    let mut words: Vec<String> =
        ["run", "--release", "--locked", "--package", "wraith-sim", "--example", "swarm", "--"]
            .map(String::from)
            .to_vec();
    words.push(connections.to_string());
    words.extend_from_slice(more);
    run(&mut cargo(words))
}

/// The scenario grid, with `words` for it. The few cells of `--ci` take seconds as the tests build them, and less than
/// another build.
pub fn grid(words: &[String]) -> Result<()> {
    let profile = if words.iter().any(|word| word == "--ci") { "dev" } else { "release" };
    let grid = ["run", "--profile", profile, "--locked", "--package", "wraith-grid", "--"];
    run(&mut cargo(grid.into_iter().chain(words.iter().map(String::as_str))))
}

/// What a change must pass before it lands.
pub fn ci() -> Result<()> {
    run(&mut Command::new(root().join(".ci/run")))
}

/// Builds the program as users get it and says where it is.
pub fn build_release() -> Result<PathBuf> {
    build("wraith-cli", &[])?;
    Ok(target().join("release/wraith"))
}

/// Builds `package` in release, with more words for cargo if need be; what it makes is in `release` of [`target`].
pub fn build(package: &str, more: &[&str]) -> Result<()> {
    let words = ["build", "--release", "--locked", "--package", package];
    run(&mut cargo(words.iter().chain(more).copied()))
}

/// Builds `package` as the tests build it; what it makes is in `debug` of [`target`].
pub fn build_debug(package: &str) -> Result<()> {
    run(&mut cargo(["build", "--locked", "--package", package]))
}

/// Runs the benchmarks of `package` whose names contain `filter`; criterion leaves what it measured in `folder`.
pub fn bench(package: &str, folder: &Path, filter: Option<&str>) -> Result<()> {
    let words = ["bench", "--locked", "--package", package, "--"].into_iter().chain(filter);
    run(cargo(words).env("CRITERION_HOME", folder))
}

/// Builds a package outside the workspace in release, for `triple`, into `folder`. It has no lock file: one of its own would
/// be wrong after every change to those of the workspace.
pub fn build_elsewhere(manifest: &str, folder: &Path, triple: &str, rustflags: &str) -> Result<()> {
    let words = ["build", "--release", "--manifest-path", manifest, "--target", triple];
    run(cargo(words).arg("--target-dir").arg(folder).env("RUSTFLAGS", rustflags))
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    // Relative to the workspace, as cargo has it.
    root().join(target.map_or_else(|| "target".into(), PathBuf::from))
}

/// The workspace that it was called in. With one target folder for several checkouts the program may have been built in another.
pub fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR");
    let xtask = here.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().expect("xtask lies in the workspace").to_owned()
}

fn cargo<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args(words).current_dir(root());
    command
}

fn run(command: &mut Command) -> Result<()> {
    let line = format!("{command:?}").replace('"', "");
    eprintln!("$ {line}");
    let status = command.status().with_context(|| format!("cannot run {line}"))?;
    if !status.success() {
        bail!("failed ({status}): {line}");
    }
    Ok(())
}
