//! Results as tables, for the terminal and for the page.

use std::fmt::Write;

use super::results::{Measure, Results, Row, Table};
use super::targets;

/// Formats a whole race: the machine, the targets, and each table.
pub fn render(results: &Results) -> String {
    let machine = &results.machine;
    let mut out = format!(
        "{}, {} cores, {} GiB, Linux {}; {}; `{}`\n\n",
        machine.cpu,
        machine.cores,
        machine.memory_gib,
        machine.kernel,
        results.date,
        results.command,
    );
    let targets = targets::render(results);
    if !targets.is_empty() {
        out += &format!("{targets}\n");
    }
    for table in &results.tables {
        out += &format!("**{}**\n\n{}\n", table.title, one(table));
    }
    out
}

/// One table: a row for each contender, with its ratio to wraith (above 1: wraith is that much
/// better).
pub fn one(table: &Table) -> String {
    let figure = match table.measure {
        Measure::Seconds => "seconds",
        Measure::GbitPerSecond => "Gbit/s",
    };
    let mut out = format!(
        "| peer | {figure}, median | min–max | runs | wraith is × better | CPU ns/byte | peak MiB |\n\
         |---|---|---|---|---|---|---|\n"
    );
    for row in &table.rows {
        let name = &row.name;
        let Some(spread) = row.spread(table.measure) else {
            let why = row.skipped.as_deref().unwrap_or("did not run");
            let _ = writeln!(out, "| {name} | skipped: {why} | | | | | |");
            continue;
        };
        let ratio = ours(table, row).map_or_else(
            || "–".into(),
            |ours| match table.measure {
                Measure::Seconds => format!("{:.2}", spread.median / ours),
                Measure::GbitPerSecond => format!("{:.2}", ours / spread.median),
            },
        );
        let (median, min, max) = (spread.median, spread.min, spread.max);
        let (runs, cpu, peak) = (row.samples.len(), row.cpu_ns_per_byte(), peak(row));
        let _ = writeln!(
            out,
            "| {name} | {median:.3} | {min:.3}–{max:.3} | {runs} | {ratio} | {cpu:.2} | {peak} |"
        );
    }
    out
}

/// Returns the median of wraith's row that `row` is compared with: the one on as many cores.
fn ours(table: &Table, row: &Row) -> Option<f64> {
    let conditions = |row: &Row| {
        row.name.split_once(", ").map_or_else(String::new, |(_, conditions)| conditions.to_owned())
    };
    let mine = conditions(row);
    let like = |ours: &&Row| ours.name.starts_with("wraith") && mine.starts_with(&conditions(ours));
    let best = table.rows.iter().filter(like).max_by_key(|ours| ours.name.len())?;
    best.spread(table.measure).map(|spread| spread.median)
}

fn peak(row: &Row) -> String {
    let each: Vec<_> =
        row.peak_rss_mib().into_iter().map(|(side, mib)| format!("{side} {mib:.0}")).collect();
    each.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::results::Sample;
    use super::*;

    #[test]
    fn a_row_is_compared_with_wraith_on_as_many_cores() {
        let row = |name: &str, seconds: f64| Row {
            samples: vec![Sample {
                bytes: 1,
                seconds,
                cpu_seconds: 0.0,
                peak_rss_bytes: std::collections::BTreeMap::new(),
            }],
            ..Row::new(name)
        };
        let rows = vec![
            row("wraith, 1 core", 1.0),
            row("quinn, 1 core", 2.0),
            row("raw, 1 core, in turn", 2.0),
            row("wraith, 1 core each", 3.0),
            row("quinn, 1 core each", 2.0),
        ];
        let (id, title) = (String::new(), String::new());
        let table = Table { id, title, measure: Measure::Seconds, rows };
        let each: Vec<_> = table.rows.iter().map(|row| ours(&table, row)).collect();
        assert_eq!(each, [1.0, 1.0, 1.0, 3.0, 3.0].map(Some));
    }
}
