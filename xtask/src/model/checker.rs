//! Runs Verifpal as a separate program. Verifpal is not linked into this program: its licence
//! (GPL-3.0) differs from ours.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::files::Verdict;
use crate::cargo;

/// Version that the expected verdicts belong to; another may search differently.
const VERSION: &str = "1.6.7";
/// Time limit of one model: a slower model must become smaller.
const LIMIT: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(20);

pub struct Checker {
    program: PathBuf,
}

impl Checker {
    /// Finds the checker in `folder`, or installs it there, which takes some minutes and a
    /// registry.
    pub fn installed(folder: &Path) -> Result<Self> {
        let root = folder.join("checker");
        let program = root.join("bin/verifpal");
        if !is_of_version(&program) {
            fs::create_dir_all(&root)?;
            // The checker declares a newer compiler than it needs.
            let words = ["install", "verifpal", "--version", VERSION, "--locked", "--force"];
            let mut install = cargo::cargo(words);
            install.args(["--ignore-rust-version", "--root"]).arg(&root);
            install.arg("--target-dir").arg(folder.join("build"));
            cargo::run(&mut install).context("the checker is missing and cannot be installed")?;
            ensure!(is_of_version(&program), "{} is not version {VERSION}", program.display());
        }
        Ok(Self { program })
    }

    /// Returns the checker's verdict for each query of a model, in order.
    pub fn verdicts(&self, model: &Path, sessions: u8) -> Result<Vec<(String, Verdict)>> {
        let report = model.with_extension("json");
        let mut child = Command::new(&self.program)
            .args(["verify", "--format", "json", "--sessions", &sessions.to_string()])
            .arg(model)
            // Models are checked in parallel instead.
            .env("VERIFPAL_THREADS", "1")
            .stdin(Stdio::null())
            .stdout(File::create(&report)?)
            .spawn()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        let started = Instant::now();
        while child.try_wait()?.is_none() {
            if started.elapsed() > LIMIT {
                child.kill()?;
                child.wait()?;
                anyhow::bail!("no result after {} s", LIMIT.as_secs());
            }
            std::thread::sleep(POLL);
        }
        let report: Value = serde_json::from_slice(&fs::read(&report)?).context("no report")?;
        let report = &report["models"][0];
        ensure!(report["ok"] == true, "it cannot be read: {}", report["error"]);
        let queries = report["analysis"]["queries"].as_array().context("no queries")?;
        queries.iter().map(verdict).collect()
    }
}

fn verdict(query: &Value) -> Result<(String, Verdict)> {
    let name = query["query"].as_str().context("a query without a name")?;
    let found = query["resolved"].as_bool().context("a query without a result")?;
    let exhausted = query["envelope"]["exhausted"] == true;
    ensure!(found || exhausted, "{name}: the search ended early");
    Ok((name.to_owned(), if found { Verdict::Found } else { Verdict::Holds }))
}

fn is_of_version(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout).split_whitespace().last() == Some(VERSION)
    })
}
