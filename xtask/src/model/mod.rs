//! `cargo xtask model`: the symbolic models of `docs/model`, each under a checker of protocols, beside what is expected of it.
//!
//! Invariant: every query of every model says `// holds` or `// found` (an attack) behind it, and nothing else comes out. A
//! file of `broken` is a protocol that lacks one thing, in which an attack must be found: else the checker would prove nothing
//! by finding none.

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
    /// Only these models, by the name of the file without its ending
    models: Vec<String>,
    /// Fail where the checker is not there and cannot be installed, instead of skipping everything
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

/// Checks as many models at a time as there are cores; returns how many are not as expected.
fn check_all(checker: &Checker, models: &[Model], folder: &Path) -> Result<usize> {
    // They stay there, variants as whole models: for who wants to see an attack step by step.
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

/// Names each query whose verdict is another than expected.
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
