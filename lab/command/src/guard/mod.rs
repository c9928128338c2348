//! `cargo lab guard`: counts the instructions of the hot paths (`lab/guard`) and compares them with the committed
//! baseline.
//!
//! Times on a shared machine vary too much; the instructions of a fixed program on fixed input do
//! not. Each path is run N and 2 N times under callgrind, which also presents the same processor on
//! every machine with AVX2. The difference excludes start-up and repeats to a fraction of a
//! percent.
//!
//! Another compiler or library changes the counts without any change of our code. So the baseline
//! records its conditions. Under other conditions, the guard compares nothing and reports that it
//! is skipped.

mod baseline;
pub(crate) mod callgrind;
pub(crate) mod conditions;

use std::fmt::Write;

use anyhow::{Context, Result, bail};

use crate::{cargo, programs, skip};
use baseline::{Baseline, Count};

/// Growth of a count that fails, in percent. Repeated runs differ by less than 0.1; a change
/// elsewhere in the crate moves the compiler's inlining by 1 or 2. A larger cost needs an
/// explanation and a `--bless`.
const TOLERANCE_PERCENT: f64 = 3.0;

#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Count only paths with this in their name
    filter: Option<String>,
    /// Write the counts as the new baseline
    #[arg(long, conflicts_with = "filter")]
    bless: bool,
}

pub fn run(args: &Args) -> Result<()> {
    let Some(valgrind) = conditions::valgrind() else {
        return skipped("valgrind is not installed");
    };
    let program = programs::build("wraith-guard")?;
    let here = conditions::gather(&program, valgrind)?;
    if args.bless {
        let paths = callgrind::count_all(&program, |_| true)?;
        let baseline = Baseline { conditions: here, paths };
        print!("{}", baseline.encode());
        return baseline.write();
    }
    let baseline = Baseline::read()?;
    if let Some(difference) = conditions::difference(&baseline.conditions, &here) {
        // Counts of another compiler or C library are not comparable, and no setting of this
        // machine would change that.
        println!("not compared: {difference}; `cargo lab guard --bless` takes the baseline anew");
        return Ok(());
    }
    let wanted = |name: &str| args.filter.as_ref().is_none_or(|filter| name.contains(filter));
    let now = callgrind::count_all(&program, wanted)?;
    let before: Vec<Count> =
        baseline.paths.into_iter().filter(|count| wanted(&count.name)).collect();
    let comparison = compare(&before, &now);
    print!("{}", comparison.table);
    if !comparison.complaints.is_empty() {
        bail!(
            "{}\nIf the cost is justified, run `cargo lab guard --bless` and explain it in the commit.",
            comparison.complaints.join("\n")
        );
    }
    Ok(())
}

fn skipped(why: &str) -> Result<()> {
    skip::skipped("the guard", why);
    skip::close(Ok(()))
}

struct Comparison {
    table: String,
    complaints: Vec<String>,
}

fn compare(before: &[Count], now: &[Count]) -> Comparison {
    let mut table =
        format!("{:<16}{:>14}{:>14}{:>9}  of a\n", "instructions", "baseline", "now", "");
    let mut complaints = Vec::new();
    for count in now {
        let Some(old) = before.iter().find(|old| old.name == count.name) else {
            complaints.push(format!("{} has no baseline", count.name));
            continue;
        };
        let percent = (count.instructions / old.instructions - 1.0) * 100.0;
        let verdict = if percent > TOLERANCE_PERCENT {
            complaints.push(format!("{} takes {percent:.1} % more instructions", count.name));
            "  SLOWER"
        } else if percent < -TOLERANCE_PERCENT {
            "  faster: --bless keeps it so"
        } else {
            ""
        };
        let (name, old, new, unit) =
            (&count.name, old.instructions, count.instructions, &count.unit);
        // Writing to a string cannot fail.
        let _ =
            writeln!(table, "{name:<16}{old:>14.1}{new:>14.1}{percent:>+8.1}%  {unit}{verdict}");
    }
    for old in before.iter().filter(|old| now.iter().all(|count| count.name != old.name)) {
        complaints.push(format!("{} is in the baseline, but is not a guarded path", old.name));
    }
    Comparison { table, complaints }
}

/// Path of the baseline in the repository.
fn baseline_file() -> std::path::PathBuf {
    cargo::root().join("lab/guard/baseline.tsv")
}

/// Reads a required file.
fn text_of(file: &std::path::Path) -> Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: &str, instructions: f64) -> Count {
        Count { name: name.into(), unit: "packet".into(), instructions }
    }

    #[test]
    fn growth_beyond_the_tolerance_is_a_complaint_and_less_is_none() {
        let before = [count("a", 1000.0), count("b", 1000.0), count("c", 1000.0)];
        let now = [count("a", 1031.0), count("b", 1029.0), count("c", 500.0)];
        let Comparison { table, complaints } = compare(&before, &now);
        assert_eq!(complaints, ["a takes 3.1 % more instructions"]);
        assert_eq!(table.matches("SLOWER").count(), 1);
        assert_eq!(table.matches("faster").count(), 1);
    }

    #[test]
    fn a_path_on_one_side_only_is_a_complaint() {
        let complaints = compare(&[count("old", 1.0)], &[count("new", 1.0)]).complaints;
        assert_eq!(complaints.len(), 2, "{complaints:?}");
    }
}
