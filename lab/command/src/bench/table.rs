//! Rows and their references, as Markdown tables.

use std::fmt::Write;

use super::reference::Reference;
use super::results::{Measured, Results, Throughput};

/// Returns the table of one group's measured rows; empty if none was measured.
pub(super) fn table(group: &str, results: &Results, references: &[Reference]) -> String {
    let mut rows = String::new();
    for reference in references.iter().filter(|reference| reference.group() == group) {
        let Some(measured) = results.get(&reference.row) else { continue };
        let row = reference.row.strip_prefix(group).map_or("", |row| row.trim_start_matches('/'));
        let (median, fastest) = (time(measured.median_ns), time(measured.fastest_ns));
        let theirs = match &reference.theirs {
            Some((name, ns)) => format!("`{name}` | {} | {}", time(*ns), ratio(measured, *ns)),
            None => "– | – | –".into(),
        };
        let rate = rate(measured);
        // Writing to a string cannot fail.
        let _ = writeln!(rows, "| {row} | {median} | {fastest} | {rate} | {theirs} |");
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "| {group} | median | fastest | at the median | reference | its median | × as fast |\n\
         |---|---|---|---|---|---|---|\n{rows}"
    )
}

/// The row in which both sides run the same library, so its ratio compares the machines.
const YARDSTICK: &str = "hash/65536";

/// Summarises the ratios: how often ours is faster, the rows in which it is not, and the spread of
/// the samples.
pub(super) fn summary(results: &Results, references: &[Reference]) -> String {
    let ratios: Vec<(&str, f64)> = references
        .iter()
        .filter_map(|reference| {
            let (_, theirs) = reference.theirs.as_ref()?;
            Some((reference.row.as_str(), theirs / results.get(&reference.row)?.median_ns))
        })
        .collect();
    let machine = ratios.iter().find(|(row, _)| *row == YARDSTICK).map_or(1.0, |(_, ratio)| *ratio);
    let slower: Vec<String> = ratios
        .iter()
        .filter(|(row, ratio)| ratio / machine < 1.0 && *row != YARDSTICK)
        .map(|(row, ratio)| format!("`{row}` {:.2}", ratio / machine))
        .collect();
    let mut noise: Vec<f64> =
        results.values().map(|row| (row.median_ns / row.fastest_ns - 1.0) * 100.0).collect();
    noise.sort_by(f64::total_cmp);
    let middle = noise.get(noise.len() / 2).copied().unwrap_or_default();
    let most = noise.last().copied().unwrap_or_default();
    format!(
        "The yardstick (`{YARDSTICK}`) is at {machine:.2}. Measured by it, {} of {} comparisons are below 1: {}.\n\n\
         Noise: the median of a row lies {middle:.0} % above its fastest sample (the median of all rows; at most {most:.0} %).",
        slower.len(),
        ratios.len(),
        if slower.is_empty() { "none".into() } else { slower.join(", ") },
    )
}

/// Formats the speed-up of our row; bold if ours is slower.
fn ratio(measured: &Measured, theirs: f64) -> String {
    let times = theirs / measured.median_ns;
    match times {
        times if times < 1.0 => format!("**{times:.2}**"),
        times if times < 10.0 => format!("{times:.2}"),
        times => format!("{times:.0}"),
    }
}

fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.1} ns"),
        ns if ns < 1e6 => format!("{:.2} µs", ns / 1e3),
        ns => format!("{:.2} ms", ns / 1e6),
    }
}

/// Formats bytes per second, or the time of an element.
fn rate(measured: &Measured) -> String {
    match measured.moves {
        Throughput::Bytes(bytes) => format!("{:.2} GB/s", bytes / measured.median_ns),
        Throughput::Elements(count) if count > 1.0 => {
            format!("{:.2} ns each", measured.median_ns / count)
        }
        Throughput::Elements(_) | Throughput::Nothing => "–".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(row: &str, theirs: Option<f64>) -> Reference {
        Reference { row: row.into(), theirs: theirs.map(|ns| ("theirs/1".into(), ns)) }
    }

    #[test]
    fn a_slower_row_is_shown_as_such() {
        let references =
            [reference("a/1", Some(100.0)), reference("a/2", Some(300.0)), reference("b/x", None)];
        let measured =
            Measured { median_ns: 150.0, fastest_ns: 75.0, moves: Throughput::Bytes(300.0) };
        let results = ["a/1", "a/2", "b/x"].map(|row| (row.to_owned(), measured)).into();
        let a = table("a", &results, &references);
        let line = "| 1 | 150.0 ns | 75.0 ns | 2.00 GB/s | `theirs/1` | 100.0 ns | **0.67** |";
        assert!(a.contains(line), "{a}");
        assert!(a.contains("| 2.00 |") && !a.contains("| x |"), "{a}");
        assert!(table("b", &results, &references).contains("| x | 150.0 ns |"));
        assert_eq!(table("c", &results, &references), "");
    }

    #[test]
    fn slowdowns_beyond_the_machine_difference_are_named() {
        let references = [
            reference(YARDSTICK, Some(50.0)),
            reference("a/1", Some(40.0)),
            reference("a/2", Some(60.0)),
        ];
        let measured = Measured { median_ns: 100.0, fastest_ns: 80.0, moves: Throughput::Nothing };
        let results = references.clone().map(|reference| (reference.row, measured)).into();
        let summary = summary(&results, &references);
        assert!(summary.contains("is at 0.50"), "{summary}");
        assert!(summary.contains("1 of 3 comparisons are below 1: `a/1` 0.80."), "{summary}");
        assert!(summary.contains("lies 25 %"), "{summary}");
    }
}
