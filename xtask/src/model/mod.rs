//! `cargo xtask model`: checks the symbolic models of `docs/model` and compares the verdicts with
//! the expected ones.
//!
//! Invariant: every query of every model carries its expected verdict, `// holds` or `// found` (an
//! attack), and the checker agrees. A file of `broken` is a protocol that lacks one mechanism, and
//! the checker must find an attack in it. Otherwise its silence about the real protocol would prove
//! nothing.

mod checker;
mod files;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::cargo;
use checker::Checker;
use files::{Model, Verdict};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Check only these models, named by their files without the extension
    models: Vec<String>,
    /// Fail if the checker is missing and cannot be installed, instead of skipping all models
    #[arg(long)]
    required: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let mut models = files::read(&cargo::root().join(files::FOLDER))?;
    if let Some(unknown) = args.models.iter().find(|name| models.iter().all(|m| m.name != **name)) {
        bail!("no model is called {unknown}");
    }
    models.retain(|model| args.models.is_empty() || args.models.contains(&model.name));
    let folder = cargo::target().join("model");
    let checker = match Checker::installed(&folder) {
        Ok(checker) => checker,
        Err(why) if !args.required => {
            eprintln!("skipped: all {} models: {why:#}", models.len());
            return Ok(());
        }
        Err(why) => return Err(why),
    };
    let wrong = check_all(&checker, &models, &folder)?;
    if wrong > 0 {
        bail!("{wrong} of {} models are not as expected", models.len());
    }
    println!("{} models are as expected", models.len());
    Ok(())
}

/// Checks as many models at a time as there are cores. Returns the number of models with unexpected
/// verdicts.
fn check_all(checker: &Checker, models: &[Model], folder: &Path) -> Result<usize> {
    // The files stay there, variants as whole models, so that a reader can replay an attack step by
    // step.
    for model in models {
        let path = folder.join(model.file_name());
        fs::write(&path, &model.text)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let waiting = Mutex::new(models.iter());
    let wrong = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().expect("no check panics").next();
                    let Some(model) = next else { break };
                    let started = Instant::now();
                    let result = checker
                        .verdicts(&folder.join(model.file_name()), model.sessions)
                        .and_then(|verdicts| compare(model, &verdicts));
                    let seconds = started.elapsed().as_secs();
                    match result {
                        Ok(()) => println!("{seconds:>4} s  {}: {}", model.path, model.code()),
                        Err(why) => {
                            *wrong.lock().expect("no check panics") += 1;
                            println!("{seconds:>4} s  {}: WRONG: {why:#}", model.path);
                        }
                    }
                }
            });
        }
    });
    Ok(wrong.into_inner().expect("no check panics"))
}

/// Fails with the name of each query whose verdict is unexpected.
fn compare(model: &Model, verdicts: &[(String, Verdict)]) -> Result<()> {
    let expected: Vec<&str> = model.queries.iter().map(|(query, _)| query.as_str()).collect();
    let asked: Vec<&str> = verdicts.iter().map(|(query, _)| query.as_str()).collect();
    if expected != asked {
        bail!("the checker answered {asked:?}, asked were {expected:?}");
    }
    let different: Vec<String> = model
        .queries
        .iter()
        .zip(verdicts)
        .filter(|((_, expected), (_, verdict))| expected != verdict)
        .map(|((query, expected), (_, verdict))| {
            format!("{query}: {verdict}, expected: {expected}")
        })
        .collect();
    if different.is_empty() { Ok(()) } else { bail!("{}", different.join("; ")) }
}
