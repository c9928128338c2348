//! `wraith speed`, with fast or with conservative backends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::super::contests::Contest;
use super::text;

/// A `speed` event.
#[derive(Debug, Deserialize)]
pub struct Ours {
    name: String,
    bytes: Option<u32>,
    operations_per_second: Option<f64>,
    pub backend: String,
    pub scope: String,
}

/// wraith's kernels.
pub const FAST: &str = "fast";
/// Libraries and portable code.
pub const CONSERVATIVE: &str = "conservative";

/// Rows by name and bytes.
type Rows = BTreeMap<(String, Option<u32>), Ours>;

fn rows(output: &str) -> Result<Rows> {
    let events = output.lines().map(serde_json::from_str::<Ours>);
    let events = events.collect::<Result<Vec<_>, _>>()?;
    Ok(events.into_iter().map(|event| ((event.name.clone(), event.bytes), event)).collect())
}

fn key(contest: &Contest) -> (String, Option<u32>) {
    (contest.row.clone(), contest.bytes)
}

fn command(wraith: &Path, backends: &str) -> Command {
    let mut command = Command::new(wraith);
    command.args(["speed", "--no-config", "--backends", backends]).stdin(Stdio::null());
    command
}

/// Returns wraith's description of each row, with fast backends.
///
/// # Errors
/// wraith lacks a row.
pub fn described(wraith: &Path, contests: &[Contest]) -> Result<Vec<Ours>> {
    let lengths: BTreeSet<u32> = contests.iter().filter_map(|contest| contest.bytes).collect();
    let lengths: Vec<String> = lengths.iter().map(u32::to_string).collect();
    let mut command = command(wraith, FAST);
    command.args(["--json", "--list"]);
    if !lengths.is_empty() {
        command.args(["--bytes", &lengths.join(",")]);
    }
    let mut rows = rows(&text(command.output()?, "wraith speed")?)?;
    let described = |contest: &Contest| {
        rows.remove(&key(contest)).with_context(|| format!("wraith has no row {}", contest.row))
    };
    contests.iter().map(described).collect()
}

/// Returns the processor features that wraith's algorithms use.
pub fn processor(wraith: &Path) -> Result<String> {
    let output = command(wraith, FAST).args(["SHA-256 hash", "--seconds", "0.001"]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find_map(|line| line.strip_prefix("This processor: "));
    Ok(line.context("wraith speed names no processor")?.trim_end_matches('.').to_owned())
}

/// Measures the rows with these backends, with one start for each length.
pub fn measure(
    wraith: &Path,
    backends: &str,
    contests: &[&Contest],
    seconds: f64,
) -> Result<Vec<Result<f64>>> {
    let mut measured = Rows::new();
    let lengths: BTreeSet<Option<u32>> = contests.iter().map(|contest| contest.bytes).collect();
    for bytes in lengths {
        let mut command = command(wraith, backends);
        command.args(["--json", "--seconds", &seconds.to_string()]);
        if let Some(bytes) = bytes {
            command.args(["--bytes", &bytes.to_string()]);
        }
        let of_length = contests.iter().filter(|contest| contest.bytes == bytes);
        let output = command.args(of_length.map(|contest| &contest.row)).output()?;
        // Exit code 10: some of them cannot be computed.
        let is_partial = output.status.code() == Some(10);
        measured.extend(match is_partial {
            true => rows(&partial(&output.stdout))?,
            false => rows(&text(output, "wraith speed")?)?,
        });
    }
    let figure = |contest: &&Contest| {
        let ours = measured.get(&key(contest)).and_then(|ours| ours.operations_per_second);
        ours.with_context(|| format!("wraith cannot measure {}", contest.row))
    };
    Ok(contests.iter().map(figure).collect())
}

/// Returns the lines with figures, without the notes and the error between them.
fn partial(stdout: &[u8]) -> String {
    let output = String::from_utf8_lossy(stdout);
    output
        .lines()
        .filter(|line| line.contains("operations_per_second"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_distinguished_by_name_and_bytes() {
        let event = |bytes: u32, rate: f64| {
            format!(
                r#"{{"event":"speed","name":"SM3 hash","bytes":{bytes},"operations_per_second":{rate},"backend":"own","scope":"x"}}"#
            )
        };
        let output =
            format!("{}\n{{\"event\":\"note\"}}\n{}\n", event(1024, 2.0), event(8192, 1.0));
        let rows = rows(&partial(output.as_bytes())).unwrap();
        assert_eq!(rows[&("SM3 hash".to_owned(), Some(8192))].operations_per_second, Some(1.0));
        assert_eq!(rows.len(), 2);
    }
}
