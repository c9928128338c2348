//! `cargo lab count`, also `cargo xtask ct`: counts the instructions of every operation on secrets
//! (`lab/ct/src/count`) for several secrets each, and compares the counts.
//!
//! Valgrind counts on a processor without AVX-512, VAES, GFNI, SHA and ADX. `--steps` counts on the
//! real processor by single steps, thousands of times slower.

mod outcome;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::guard::{callgrind, conditions};
use crate::{programs, skip};
use outcome::{Operation, Verdict};

/// Runs of an operation whose counts differ, before that is a difference. Under load, single steps
/// may lose an instruction.
const ATTEMPTS: usize = 3;

#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Run with a few secrets each, without the long operations
    #[arg(long)]
    small: bool,
    /// Count on the real processor by single steps, and compare the paths, too (slow: name operations)
    #[arg(long)]
    steps: bool,
    /// Seed of all inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Count only operations whose names contain one of these
    names: Vec<String>,
}

impl Args {
    /// Returns the form that runs with every change.
    pub fn small() -> Self {
        Self { small: true, seed: 1, ..Self::default() }
    }
}

/// The implementations that are selected, as values of `WRAITH_BACKENDS` and `WRAITH_KERNELS`.
type Selection = [&'static str; 2];

/// A part of the operations with one selection.
struct Job {
    selection: Selection,
    share: String,
}

pub fn run(args: &Args) -> Result<()> {
    if !args.steps && conditions::valgrind().is_none() {
        skip::skipped("instructions by secret", "valgrind is not installed");
        return skip::close(Ok(()));
    }
    let began = Instant::now();
    let program = programs::build("wraith-count")?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let counter = Counter { args, program: &program, folder: folder.path() };
    counter.prepare()?;
    let selections: &[Selection] = match (args.steps, args.small) {
        (true, _) => &[["fast", "avx512"]],
        (false, true) => &[["fast", "avx2"], ["conservative", "off"]],
        (false, false) => &[["fast", "avx2"], ["fast", "aesni"], ["conservative", "off"]],
    };
    let mut is_good = true;
    for (selection, operations) in counter.all(selections)? {
        is_good &= report(selection, &operations, args);
    }
    println!("{} s", began.elapsed().as_secs());
    ensure!(
        is_good,
        "instructions depend on a secret, or a leak was not found (seed {})",
        args.seed
    );
    Ok(())
}

/// Prints the result of a selection, and returns whether it is good.
fn report([backends, kernels]: Selection, operations: &[Operation], args: &Args) -> bool {
    let with = |verdict| {
        operations
            .iter()
            .filter(move |each| each.verdict(args.steps) == verdict)
            .collect::<Vec<_>>()
    };
    let (same, found) = (with(Verdict::Same), with(Verdict::Found));
    let (differ, missed) = (with(Verdict::Differs), with(Verdict::NotFound));
    println!(
        "backends {backends}, kernels {kernels}: {} operations the same, {} leaks found",
        same.len(),
        found.len()
    );
    for operation in with(Verdict::Excluded).iter().filter(|_| !args.small) {
        println!("  excluded {operation}");
    }
    differ.iter().for_each(|operation| println!("  DIFFERS {operation}"));
    missed.iter().for_each(|operation| println!("  NOT FOUND {operation}"));
    let is_nothing = same.is_empty() && args.names.is_empty();
    if is_nothing {
        println!("  nothing was counted");
    }
    differ.is_empty() && missed.is_empty() && !is_nothing
}

/// Runs the program that runs the operations.
struct Counter<'a> {
    args: &'a Args,
    program: &'a Path,
    folder: &'a Path,
}

impl Counter<'_> {
    /// Makes what takes long under valgrind.
    fn prepare(&self) -> Result<()> {
        let keys = self.folder.join("rsa");
        std::fs::create_dir(&keys).context("cannot make a folder")?;
        let status = Command::new(self.program).arg("--rsa-keys").arg(keys).status();
        ensure!(status.context("cannot run wraith-count")?.success(), "no keys of RSA");
        Ok(())
    }

    /// Counts all operations with all selections, on all cores. Repeats those that differ.
    fn all(&self, selections: &[Selection]) -> Result<BTreeMap<Selection, Vec<Operation>>> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shares = (0..cores).map(|i| format!("{i}/{cores}"));
        let jobs: Vec<Job> = shares
            .flat_map(|share| {
                selections.iter().map(move |&selection| Job { selection, share: share.clone() })
            })
            .collect();
        let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..cores {
                scope.spawn(|| {
                    while let Some(job) = jobs.get(next.fetch_add(1, Relaxed)) {
                        let counted = self.job(job);
                        results.lock().expect("no thread panics").push((job.selection, counted));
                    }
                });
            }
        });
        let mut all = BTreeMap::<Selection, Vec<Operation>>::new();
        for (selection, counted) in results.into_inner().expect("no thread panics") {
            all.entry(selection).or_default().extend(counted?);
        }
        Ok(all)
    }

    fn job(&self, Job { selection, share }: &Job) -> Result<Vec<Operation>> {
        let mut operations = self.counted(*selection, &self.args.names, share)?;
        for _ in 1..ATTEMPTS {
            let differs = |each: &&mut Operation| each.verdict(self.args.steps) == Verdict::Differs;
            for operation in operations.iter_mut().filter(differs) {
                let again =
                    self.counted(*selection, std::slice::from_ref(&operation.name), "0/1")?;
                let again = again.into_iter().find(|each| each.name == operation.name);
                *operation = again.context("an operation is there only once")?;
            }
        }
        Ok(operations)
    }

    fn counted(
        &self,
        [backends, kernels]: Selection,
        names: &[String],
        share: &str,
    ) -> Result<Vec<Operation>> {
        let counts = tempfile::tempdir_in(self.folder).context("cannot make a folder")?;
        let mut command = match self.args.steps {
            true => Command::new(self.program),
            false => {
                let mut valgrind = conditions::valgrind_command("callgrind");
                let file = counts.path().join("%p");
                valgrind.arg(format!("--callgrind-out-file={}", file.display()));
                valgrind.arg(self.program);
                valgrind
            }
        };
        command.args(self.args.small.then_some("--small"));
        command.args(self.args.steps.then_some("--steps"));
        command.args(["--seed", &self.args.seed.to_string(), "--share", share]).args(names);
        command.env("WRAITH_BACKENDS", backends).env("WRAITH_KERNELS", kernels);
        command.env("WRAITH_COUNT_RSA", self.folder.join("rsa"));
        let output = command.output().context("cannot run wraith-count")?;
        if !output.status.success() {
            bail!("wraith-count failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        let text = String::from_utf8(output.stdout).context("no text")?;
        outcome::parsed(&text, |pid| callgrind::total(&counts.path().join(pid)))
    }
}
