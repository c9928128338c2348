//! The commands that are cargo's in the end.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The packages whose programs the other commands run. They are selected together whichever of them is built: cargo takes
/// the features of a dependency from what is selected, so another selection would compile most dependencies again.
const PROGRAMS: [&str; 6] =
    ["wraith-cli", "wraith-ct", "wraith-grid", "wraith-guard", "wraith-netlab", "wraith-wire"];

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
    let ci = words.iter().any(|word| word == "--ci");
    let program = if ci { build_debug("wraith-grid") } else { build_program("wraith-grid") }?;
    run(Command::new(program).args(words).current_dir(root()))
}

/// Whether what is on the wire is noise, with `words` for the program that tells. Its small form takes seconds as the tests build it, and
/// less than another build.
pub fn wire(words: &[String]) -> Result<()> {
    let small = words.iter().any(|word| word == "--small");
    let program = if small { build_debug("wraith-wire") } else { build_program("wraith-wire") }?;
    run(Command::new(program).args(words).current_dir(root()))
}

/// Whether times depend on secrets, with `words` for the program that tells. Always as the program itself is built: another build is other
/// instructions.
pub fn ct(words: &[String]) -> Result<()> {
    run(Command::new(build_program("wraith-ct")?).args(words).current_dir(root()))
}

/// What a change must pass before it lands: the list stands in `.ci/run`, which needs nothing built to begin with.
pub fn ci() -> Result<()> {
    run(&mut Command::new(root().join(".ci/run")))
}

/// Builds the program as users get it and says where it is.
pub fn build_release() -> Result<PathBuf> {
    build_program("wraith")
}

/// Builds one program of [`PROGRAMS`] as the tests are built and says where it is.
fn build_debug(name: &str) -> Result<PathBuf> {
    run(&mut cargo(["build", "--locked", "--bin", name, "--package", name]))?;
    Ok(target().join("debug").join(name))
}

/// Builds one program of [`PROGRAMS`] in release and says where it is.
pub fn build_program(name: &str) -> Result<PathBuf> {
    let packages = PROGRAMS.iter().flat_map(|package| ["--package", package]);
    let words = ["build", "--release", "--locked", "--bin", name];
    run(&mut cargo(words.into_iter().chain(packages)))?;
    Ok(target().join("release").join(name))
}

/// Builds `package` in release, with more words for cargo if need be; what it makes is in `release` of [`target`].
pub fn build(package: &str, more: &[&str]) -> Result<()> {
    let words = ["build", "--release", "--locked", "--package", package];
    run(&mut cargo(words.iter().chain(more).copied()))
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

/// Cargo with these words, in the workspace.
pub fn cargo<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args(words).current_dir(root());
    command
}

/// Runs a command that must succeed, and shows it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_linked_at_the_highest_level() {
        // With thin link-time optimization the level of the package that is linked is that of the passes behind: a program that was to be
        // small had kernels of half the speed.
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        for package in PROGRAMS {
            let lowered = format!("{package} = {{ opt-level");
            assert!(!manifest.lines().any(|line| line.starts_with(&lowered)), "{lowered}");
        }
    }
}
