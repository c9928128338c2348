//! The test binaries of the workspace and the tests in them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cargo;

/// One binary of tests, as cargo built it.
#[derive(Debug)]
pub struct Binary {
    pub package: String,
    /// Name of the target; that of the package's library for its unit tests.
    target: String,
    pub path: PathBuf,
    /// Folder of the package, in which its tests run.
    pub folder: PathBuf,
    /// Tests of processes wait more than they compute, so they start first and the others fill their pauses.
    waits: bool,
}

/// Variables of a test, with their values.
pub type Variables = &'static [(&'static str, &'static str)];

/// The crates of cryptography.
const CRYPTOGRAPHY: [&str; 3] = ["wraith-kernels", "wraith-crypto", "wraith-suite"];

/// The implementations that the tests of cryptography run with, beside the default ones.
const IMPLEMENTATIONS: [Variables; 4] = [
    &[("WRAITH_BACKENDS", "conservative")],
    &[("WRAITH_BACKENDS", "fast"), ("WRAITH_KERNELS", "aesni")],
    &[("WRAITH_BACKENDS", "fast"), ("WRAITH_KERNELS", "avx2")],
    &[("WRAITH_BACKENDS", "fast"), ("WRAITH_KERNELS", "avx512")],
];

/// One test, or all tests of a binary, to be run once.
#[derive(Clone, Debug)]
pub struct Case {
    pub binary: Arc<Binary>,
    /// Path of the test in its binary. `None` stands for all tests, in one process.
    pub test: Option<String>,
    pub variables: Variables,
}

impl Case {
    /// `PACKAGE::TARGET::TEST`, or `PACKAGE::TEST` where the target has the package's name; then the
    /// variables.
    pub fn name(&self) -> String {
        let Binary { package, target, .. } = &*self.binary;
        let mut name = package.clone();
        if package.replace('-', "_") != *target && package != target {
            name = format!("{name}::{target}");
        }
        if let Some(test) = &self.test {
            name = format!("{name}::{test}");
        }
        self.variables.iter().fold(name, |name, (key, value)| format!("{name} {key}={value}"))
    }
}

/// Builds the tests of these packages of a workspace, or of all of them.
pub fn build(manifest: &str, packages: &[String]) -> Result<Vec<Arc<Binary>>> {
    let mut command = cargo::cargo(["test", "--locked", "--no-run", "--manifest-path", manifest]);
    command.arg("--target-dir").arg(cargo::target());
    command.arg("--message-format=json-render-diagnostics");
    match packages {
        [] => command.arg("--workspace"),
        packages => command.args(packages.iter().flat_map(|package| ["--package", package])),
    };
    let line = cargo::announce(&command);
    let output = command.stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    ensure!(output.status.success(), "failed ({}): {line}", output.status);
    let messages = output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let mut binaries = Vec::new();
    for message in messages {
        binaries.extend(Binary::of(&serde_json::from_slice(message)?).map(Arc::new));
    }
    Ok(binaries)
}

impl Binary {
    /// The binary that a message of cargo names, if it names one of tests.
    fn of(message: &Value) -> Option<Self> {
        let path = message["executable"].as_str()?;
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        Some(Self {
            package: folder_name_of_package(message["package_id"].as_str()?),
            target: message["target"]["name"].as_str()?.to_owned(),
            path: path.into(),
            folder: folder.to_owned(),
            waits: message["target"]["kind"][0] == "test",
        })
    }

    /// All its tests with each of [`IMPLEMENTATIONS`], if they are tests of cryptography.
    fn with_each_implementation(self: &Arc<Self>) -> Vec<Case> {
        if !CRYPTOGRAPHY.contains(&self.package.as_str()) {
            return Vec::new();
        }
        let case = |variables| Case { binary: Arc::clone(self), test: None, variables };
        IMPLEMENTATIONS.map(case).to_vec()
    }

    /// The tests in it; those that `cargo test` leaves out by default if `ignored`.
    fn list(self: &Arc<Self>, ignored: bool) -> Result<Vec<Case>> {
        let mut command = Command::new(&self.path);
        command.args(["--list", "--format", "terse"]).args(ignored.then_some("--ignored"));
        let output = command.current_dir(&self.folder).output()?;
        ensure!(output.status.success(), "{} lists no tests", self.path.display());
        let lines = String::from_utf8(output.stdout)?;
        let tests = lines.lines().filter_map(|line| line.strip_suffix(": test"));
        let case = |test: &str| Case {
            binary: Arc::clone(self),
            test: Some(test.to_owned()),
            variables: &[],
        };
        Ok(tests.map(case).collect())
    }
}

/// The name in `path+file:///…/NAME#VERSION` or `path+file:///…#NAME@VERSION`.
fn folder_name_of_package(id: &str) -> String {
    let (path, fragment) = id.rsplit_once('#').unwrap_or((id, ""));
    match fragment.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => path.rsplit('/').next().unwrap_or(path).to_owned(),
    }
}

/// The selected tests in the order in which they start: first the tests that wait for minutes, then those of processes.
pub fn cases(binaries: &[Arc<Binary>], filters: &[String], times: usize) -> Result<VecDeque<Case>> {
    let mut cases = Vec::new();
    for binary in binaries {
        let long: Vec<_> = binary.list(true)?.into_iter().map(|case| case.test).collect();
        for case in binary.list(false)?.into_iter().chain(binary.with_each_implementation()) {
            let name = case.name();
            if filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str())) {
                let rank = (!long.contains(&case.test), !binary.waits);
                cases.extend(std::iter::repeat_n((rank, case), times));
            }
        }
    }
    cases.sort_by_key(|(rank, _)| *rank);
    Ok(cases.into_iter().map(|(_, case)| case).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_named_by_its_folder_or_by_its_fragment() {
        assert_eq!(
            folder_name_of_package("path+file:///a/crates/wraith-core#0.1.0"),
            "wraith-core"
        );
        assert_eq!(folder_name_of_package("path+file:///a/fuzz#wraith-fuzz@0.1.0"), "wraith-fuzz");
    }
}
