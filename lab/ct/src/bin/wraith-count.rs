//! `wraith-count`: runs operations on secrets, each secret in a process of its own, so that the
//! instructions can be counted. `cargo xtask ct` runs it and compares the counts.
//!
//! Lines of standard output, in columns:
//!
//! | line | content |
//! |---|---|
//! | `kernel` | name, instructions, state |
//! | `operation` | name, expectation, reason of an exclusion |
//! | `absent` | name of an operation that this processor does not have |
//! | `run` | name, name of the secret, ID of the process |
//! | `steps` | ID of the process, instructions, hash of the path; before its `run` |

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;
use wraith_ct::count::operations::public_key::write_rsa_keys;
use wraith_ct::count::process::{self, Tool};
use wraith_ct::count::secrets::{Draw, Form};
use wraith_ct::count::{self, Expectation, Length, Operation};

/// Run operations on secrets for a tool that counts instructions
#[derive(Debug, Parser)]
struct Args {
    /// Run with a few secrets, and only the short operations
    #[arg(long)]
    small: bool,
    /// Count by single steps; otherwise the program runs under callgrind
    #[arg(long)]
    steps: bool,
    /// Seed of all inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// List the kernels and operations, and run nothing
    #[arg(long)]
    list: bool,
    /// Write keys of RSA into this folder, and run nothing
    #[arg(long)]
    rsa_keys: Option<PathBuf>,
    /// With --steps, write the address of each instruction into this folder, a file for each process
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Run every Nth operation, from this one on: I/N
    #[arg(long, default_value = "0/1", value_parser = share)]
    share: (usize, usize),
    /// Run only operations whose names contain one of these
    names: Vec<String>,
}

fn share(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    parts.filter(|(i, n)| i < n).ok_or_else(|| "not I/N with I < N".to_owned())
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(folder) = &args.rsa_keys {
        return Ok(write_rsa_keys(folder)?);
    }
    if args.list {
        for kernel in wraith_suite::kernels() {
            let state = if kernel.is_available() { "used" } else { "not used" };
            println!("kernel\t{}\t{}\t{state}", kernel.name(), kernel.features());
        }
    }
    process::fix_randomness()?;
    let is_wanted = |operation: &Operation| {
        let names = &args.names;
        let is_named = names.iter().any(|part| operation.name.contains(&**part));
        let is_excluded = matches!(operation.expectation, Expectation::Excluded(_));
        let longest = match args.small {
            true => Length::Short,
            false if names.is_empty() => Length::Long,
            false => Length::Endless,
        };
        (names.is_empty() || is_named)
            && operation.length <= longest
            && !(args.small && is_excluded)
    };
    let (first, step) = args.share;
    let all = count::all();
    for operation in all.iter().filter(|each| is_wanted(each)).skip(first).step_by(step) {
        let (expectation, reason) = match operation.expectation {
            Expectation::Same => ("same", ""),
            Expectation::Excluded(reason) => ("excluded", reason),
            Expectation::CountLeak => ("count-leak", ""),
            Expectation::PathLeak => ("path-leak", ""),
        };
        println!("operation\t{}\t{expectation}\t{reason}", operation.name);
        if !args.list {
            run(operation, &args)?;
        }
    }
    Ok(())
}

fn run(operation: &Operation, args: &Args) -> Result<()> {
    let is_small = args.small || operation.length > Length::Short;
    let form = if is_small { Form::Small } else { Form::Full };
    ensure!(!args.steps || process::HAS_STEPS, "--steps needs Linux on x86-64");
    let tool = if args.steps { Tool::Steps } else { Tool::Valgrind };
    let mut draw = Draw::new(form, args.seed, &operation.name);
    let Some(prepared) = operation.prepare(&mut draw) else {
        println!("absent\t{}", operation.name);
        return Ok(());
    };
    process::warm_up(&prepared);
    let pids = process::counted(&prepared, tool, args.trace.as_deref())?;
    for (secret, pid) in prepared.secrets.iter().zip(pids) {
        println!("run\t{}\t{}\t{pid}", operation.name, secret.name);
    }
    Ok(())
}
