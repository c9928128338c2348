//! Counts instructions: runs the program under callgrind with N and with 2 N repetitions, and takes
//! the difference.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::baseline::Count;
use super::conditions::valgrind_command;
use super::text_of;

/// A path as `wraith-guard list` prints it.
struct ListedPath {
    name: String,
    unit: String,
    /// Units in one repetition.
    units: u64,
    /// Repetitions in the shorter run.
    times: u64,
}

/// Counts the cost of one unit of every path whose name is `wanted`.
pub(super) fn count_all(program: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<Count>> {
    let listed = list(program)?;
    listed.iter().filter(|path| wanted(&path.name)).map(|path| count(program, path)).collect()
}

fn list(program: &Path) -> Result<Vec<ListedPath>> {
    let output = Command::new(program).arg("list").output().context("cannot run the guard")?;
    let text = String::from_utf8(output.stdout).context("the list is no text")?;
    let listed = text.lines().map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
        [name, unit, units, times] => Ok(ListedPath {
            name: name.to_owned(),
            unit: unit.to_owned(),
            units: units.parse()?,
            times: times.parse()?,
        }),
        _ => bail!("not a path: {line}"),
    });
    listed.collect()
}

fn count(program: &Path, path: &ListedPath) -> Result<Count> {
    let (once, twice) = std::thread::scope(|scope| {
        let longer = scope.spawn(|| instructions(program, &path.name, 2 * path.times));
        let shorter = instructions(program, &path.name, path.times);
        (shorter, longer.join().expect("it does not panic"))
    });
    let (once, twice) = (once?, twice?);
    if twice <= once {
        bail!("{}: {once} instructions once, {twice} twice", path.name);
    }
    let units = (path.times * path.units) as f64;
    let instructions = (twice - once) as f64 / units;
    Ok(Count { name: path.name.clone(), unit: path.unit.clone(), instructions })
}

/// Counts the instructions of a whole run of the program.
fn instructions(program: &Path, name: &str, times: u64) -> Result<u64> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let file = folder.path().join("counts");
    let mut command = valgrind_command("callgrind");
    command.arg(format!("--callgrind-out-file={}", file.display()));
    command.arg(program).args(["run", name, &times.to_string()]);
    let output = command.output().context("cannot run valgrind")?;
    if !output.status.success() {
        bail!("{name} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    total(&file)
}

/// Returns the total of a file of callgrind.
pub(crate) fn total(file: &Path) -> Result<u64> {
    let text = text_of(file)?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    total.and_then(|total| total.trim().parse().ok()).context("callgrind wrote no total")
}
