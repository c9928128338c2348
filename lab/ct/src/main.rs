//! `cargo lab ct`: tests that code with secrets runs in constant time.

use std::process::Command;

use anyhow::{Result, ensure};
use clap::Parser;
use wraith_ct::{report, run};

/// Test code with secrets for constant time with two classes of inputs each, and find the leaks of
/// the controls
#[derive(Debug, Parser)]
#[command(name = "cargo lab ct")]
struct Args {
    /// Take one measurement in 50 and count only gross differences (seconds)
    #[arg(long)]
    small: bool,
    /// Seed of all inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// List the targets and the controls, and measure nothing
    #[arg(long)]
    list: bool,
    /// Treat every difference as final: another process has already found it
    #[arg(long, hide = true)]
    confirming: bool,
    /// Measure only targets and controls whose names contain one of these
    names: Vec<String>,
}

fn main() -> Result<()> {
    let Args { small, seed, list, confirming, names } = Args::parse();
    let (targets, controls) = run::candidates();
    if list {
        print!("{}\ncontrols\n{}", report::list(&targets), report::list(&controls));
        return Ok(());
    }
    let is_wanted =
        |name: &str| names.is_empty() || names.iter().any(|part| name.contains(&**part));
    let all = || targets.iter().chain(&controls);
    ensure!(all().any(|each| is_wanted(&each.name())), "nothing has such a name; --list names all");

    println!("seed {seed}\n{}", report::head());
    let form = if small { run::SMALL } else { run::FULL };
    let is_control = |name| controls.iter().any(|control| control.target.name == name);
    let outcome = run::run(form, seed, is_wanted, |row| {
        println!("{}", report::row(row, is_control(row.candidate.target.name)));
    });
    let is_good = match outcome.differing() {
        _ if outcome.is_good() => true,
        differing if confirming || differing.is_empty() => false,
        // A difference caused by a secret is present in every process; one caused by memory layout
        // is not.
        differing => {
            println!("\nagain, in a process of its own:");
            let mut again = Command::new(std::env::current_exe()?);
            again.args(small.then_some("--small")).arg("--confirming");
            again.arg("--seed").arg(seed.wrapping_add(1).to_string()).args(differing);
            again.status()?.success() && outcome.are_controls_found()
        }
    };
    ensure!(is_good, "a time depends on a secret, or a control was not found (seed {seed})");
    Ok(())
}
