//! What a run of the tests prints: a line for each failure at once, the slowest tests, and the
//! closing lines.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::run::Outcome;
use crate::{cargo, skip};

/// Tests that are listed as the slowest.
const SLOWEST: usize = 10;
/// A line is printed each time so many tests have passed.
const PROGRESS: usize = 250;

/// Counts and names of the tests that ran.
#[derive(Debug)]
pub struct Report {
    started: Instant,
    passed: usize,
    failed: Vec<String>,
    flaky: Vec<String>,
    took: BTreeMap<String, Duration>,
    /// Where the outputs of failed runs are kept.
    folder: PathBuf,
}

impl Report {
    /// Starts the report of a workspace's tests. Each workspace has its own folder, so that the run
    /// of one keeps the outputs of the other.
    pub fn new(manifest: &str) -> Result<Self> {
        let workspace = if manifest == cargo::LAB { "lab" } else { "product" };
        let folder = cargo::target().join("failed-tests").join(workspace);
        let _ = fs::remove_dir_all(&folder);
        let (failed, flaky, took) = (Vec::new(), Vec::new(), BTreeMap::new());
        Ok(Self { started: Instant::now(), passed: 0, failed, flaky, took, folder })
    }

    /// Counts a first run and forwards the lines by which a test reports that it proved nothing.
    pub fn ran(&mut self, outcome: &Outcome) -> Result<()> {
        let name = outcome.case.name();
        let notes = outcome.output.lines();
        for note in notes.filter(|line| skip::is_note(line)) {
            eprintln!("{note}");
            skip::heard(note);
        }
        if outcome.passed() {
            self.passed += 1;
            if self.passed.is_multiple_of(PROGRESS) {
                println!("{} tests passed, {} s", self.passed, self.started.elapsed().as_secs());
            }
        } else {
            println!("failed: {name} ({})", outcome.end());
        }
        let took = self.took.entry(name).or_default();
        *took = outcome.took.max(*took);
        Ok(())
    }

    /// Counts a test that failed, as flaky if its second run passed, and keeps the outputs of both
    /// runs.
    pub fn failed(&mut self, first: &Outcome, second: Option<&Outcome>) -> Result<()> {
        let name = first.case.name();
        println!("\n---- {name}: first run, {}\n{}", first.end(), first.output.trim_end());
        self.store_output(&name, 1, &first.output)?;
        if let Some(second) = second {
            println!("---- {name}: second run, alone, {}", second.end());
            self.store_output(&name, 2, &second.output)?;
            if second.passed() {
                println!("FLAKY: {name}");
                self.flaky.push(name);
                return Ok(());
            }
            println!("{}", second.output.trim_end());
        }
        self.failed.push(name);
        Ok(())
    }

    fn store_output(&self, name: &str, run: u32, output: &str) -> Result<()> {
        fs::create_dir_all(&self.folder)?;
        let file = format!("{}.{run}.txt", name.replace("::", "."));
        Ok(fs::write(self.folder.join(file), output)?)
    }

    /// Runs a step that is no test of the harness; a step that fails runs once more, as a test
    /// does.
    pub fn step(&mut self, name: &str, work: impl Fn() -> Result<()>) -> Result<()> {
        let Err(first) = work() else {
            self.passed += 1;
            return Ok(());
        };
        println!("failed: {name}: {first:#}; it runs once more");
        match work() {
            Ok(()) => {
                println!("FLAKY: {name}");
                self.flaky.push(name.to_owned());
            }
            Err(second) => {
                println!("failed again: {name}: {second:#}");
                self.failed.push(name.to_owned());
            }
        }
        Ok(())
    }

    /// Prints the closing lines. Returns an error if a test failed twice.
    pub fn close(&self) -> Result<()> {
        let mut slowest: Vec<_> = self.took.iter().collect();
        slowest.sort_by_key(|(_, took)| std::cmp::Reverse(**took));
        println!("\nslowest:");
        for (name, took) in slowest.iter().take(SLOWEST) {
            println!("  {:6.1} s  {name}", took.as_secs_f64());
        }
        for name in &self.flaky {
            println!("FLAKY: {name}");
        }
        for name in &self.failed {
            println!("FAILED: {name}");
        }
        if !self.flaky.is_empty() || !self.failed.is_empty() {
            println!("the outputs of failed runs are in {}", self.folder.display());
        }
        println!("flaky: {}", self.flaky.len());
        let end = if self.failed.is_empty() { "ok" } else { "FAILED" };
        let (passed, failed) = (self.passed + self.flaky.len(), self.failed.len());
        let seconds = self.started.elapsed().as_secs_f64();
        println!(
            "test result: {end}. {passed} passed; {failed} failed; 0 ignored; 0 measured; \
             0 filtered out; finished in {seconds:.2}s"
        );
        ensure!(self.failed.is_empty(), "{failed} tests failed twice");
        Ok(())
    }
}
