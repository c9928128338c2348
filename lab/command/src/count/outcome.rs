//! The counts of an operation, and the verdict.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result};

/// What an operation does with the secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Expectation {
    /// The same for all.
    Same,
    /// It may differ, for this reason.
    Excluded(String),
    /// It leaks by the number of instructions.
    CountLeak,
    /// It leaks by the path, with the same number of instructions.
    PathLeak,
}

/// One run with one secret.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    secret: String,
    instructions: u64,
    /// Hash of the path, if it is known.
    path: Option<String>,
}

/// An operation with its runs.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) name: String,
    expectation: Expectation,
    runs: Vec<Run>,
}

/// Verdict on an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All secrets give the same.
    Same,
    /// Two secrets differ.
    Differs,
    /// They may differ.
    Excluded,
    /// A leak was found.
    Found,
    /// A leak was not found.
    NotFound,
    /// The processor does not have it, or the tool cannot see it.
    Absent,
}

impl Operation {
    /// Returns the verdict. Only single steps show the path.
    pub(super) fn verdict(&self, has_paths: bool) -> Verdict {
        let differs = self.runs.windows(2).any(|pair| {
            (pair[0].instructions, &pair[0].path) != (pair[1].instructions, &pair[1].path)
        });
        match (&self.expectation, differs) {
            _ if self.runs.is_empty() => Verdict::Absent,
            (Expectation::PathLeak, false) if !has_paths => Verdict::Absent,
            (Expectation::Excluded(_), _) => Verdict::Excluded,
            (Expectation::Same, false) => Verdict::Same,
            (Expectation::Same, true) => Verdict::Differs,
            (_, true) => Verdict::Found,
            (_, false) => Verdict::NotFound,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.name)?;
        if let Expectation::Excluded(reason) = &self.expectation {
            let counts = self.runs.iter().map(|run| run.instructions);
            let (least, most) = (counts.clone().min(), counts.max());
            let (least, most) = (least.unwrap_or_default(), most.unwrap_or_default());
            return write!(f, " {least} to {most} instructions: {reason}");
        }
        for Run { secret, instructions, path } in &self.runs {
            let path = path.as_ref().map(|path| format!(" (path {path})")).unwrap_or_default();
            write!(f, "\n    {instructions:>12} {secret}{path}")?;
        }
        Ok(())
    }
}

/// Parses the output of `wraith-count`. `total` reads the count of a process from valgrind's file.
pub(super) fn parsed(output: &str, total: impl Fn(&str) -> Result<u64>) -> Result<Vec<Operation>> {
    let mut operations: Vec<Operation> = Vec::new();
    let mut steps = BTreeMap::new();
    for line in output.lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["operation", name, expectation, reason] => {
                let expectation = match expectation {
                    "same" => Expectation::Same,
                    "count-leak" => Expectation::CountLeak,
                    "path-leak" => Expectation::PathLeak,
                    _ => Expectation::Excluded(reason.to_owned()),
                };
                operations.push(Operation { name: name.to_owned(), expectation, runs: Vec::new() });
            }
            ["steps", pid, count, path] => {
                steps.insert(pid, (count.parse()?, Some(path.to_owned())));
            }
            ["run", _, secret, pid] => {
                let (instructions, path) = match steps.remove(pid) {
                    Some(counted) => counted,
                    None => (total(pid)?, None),
                };
                let operation = operations.last_mut().context("a run without an operation")?;
                operation.runs.push(Run { secret: secret.to_owned(), instructions, path });
            }
            _ => {}
        }
    }
    Ok(operations)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(output: &str, has_paths: bool) -> Vec<Verdict> {
        let total = |pid: &str| Ok(pid.parse::<u64>()? / 10);
        let operations = parsed(output, total).unwrap();
        operations.iter().map(|each| each.verdict(has_paths)).collect()
    }

    #[test]
    fn counts_of_valgrind_are_compared() {
        let output = "operation\ta\tsame\t\nrun\ta\tzeros\t101\nrun\ta\tones\t102\n\
                      operation\tb\tsame\t\nrun\tb\tzeros\t101\nrun\tb\tones\t111\n\
                      operation\tc\tcount-leak\t\nrun\tc\tzeros\t101\nrun\tc\tones\t102\n\
                      operation\td\tcount-leak\t\nrun\td\tzeros\t101\nrun\td\tones\t112\n\
                      operation\te\texcluded\twhy\nrun\te\tzeros\t101\nrun\te\tones\t112\n\
                      operation\tf\tsame\t\nabsent\tf\n\
                      operation\tg\tpath-leak\t\nrun\tg\tzeros\t101\nrun\tg\tones\t102\n";
        use Verdict::*;
        let expected = [Same, Differs, NotFound, Found, Excluded, Absent, Absent];
        assert_eq!(verdicts(output, false), expected);
    }

    #[test]
    fn paths_of_one_length_are_compared() {
        let output = "operation\ta\tsame\t\nsteps\t1\t9\tab\nrun\ta\tzeros\t1\nsteps\t2\t9\tab\n\
                      run\ta\tones\t2\n\
                      operation\tb\tpath-leak\t\nsteps\t3\t9\tab\nrun\tb\tzeros\t3\n\
                      steps\t4\t9\tcd\nrun\tb\tones\t4\n";
        assert_eq!(verdicts(output, true), [Verdict::Same, Verdict::Found]);
    }
}
