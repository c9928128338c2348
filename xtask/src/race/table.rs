//! The result as a table: medians, spread, and ratios to cp and scp.

use std::fmt::Write;

use super::data::DataSet;
use super::peers::Peer;
use super::process::Run;

/// One row for each peer.
pub fn render(set: &DataSet, peers: &[Peer<'_>], results: &[Vec<Run>]) -> String {
    let median_of = |name: &str| {
        let at = peers.iter().position(|p| p.name() == name)?;
        Some(median(results[at].iter().map(|run| run.seconds)))
    };
    let (cp, scp) = (median_of("cp"), median_of("scp"));
    let runs = results.first().map_or(0, Vec::len);
    let mut out = format!(
        "{}: {} bytes in {}, {runs} runs each, in turn; seconds\n\n\
         | peer | median | min–max | MB/s | × cp | × scp | CPU s | peak RSS MiB |\n\
         |---|---|---|---|---|---|---|---|\n",
        set.name, set.bytes, set.files,
    );
    for (peer, runs) in peers.iter().zip(results) {
        let seconds = || runs.iter().map(|run| run.seconds);
        let middle = median(seconds());
        let (min, max) = (seconds().fold(f64::MAX, f64::min), seconds().fold(0.0, f64::max));
        let rate = set.bytes as f64 / 1e6 / middle;
        let (to_cp, to_scp) = (ratio(middle, cp), ratio(middle, scp));
        let (cpu, rss) = (cpu(runs), peak_rss(runs));
        let name = peer.name();
        let _ = writeln!(
            out,
            "| {name} | {middle:.3} | {min:.3}–{max:.3} | {rate:.0} | {to_cp} | {to_scp} | {cpu} | {rss} |",
        );
    }
    out
}

fn ratio(seconds: f64, to: Option<f64>) -> String {
    to.map_or_else(|| "–".into(), |to| format!("{:.2}", seconds / to))
}

/// Median CPU time of all processes of a run that we started ourselves.
fn cpu(runs: &[Run]) -> String {
    let all = runs.iter().map(|run| run.usage.iter().map(|(_, u)| u.cpu_seconds).sum());
    format!("{:.2}", median(all))
}

/// The highest of all runs, for each process.
fn peak_rss(runs: &[Run]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let highest = |at: usize| {
        let peak =
            runs.iter().filter_map(|run| run.usage.get(at)).map(|(_, u)| u.peak_rss_bytes).max();
        peak.unwrap_or(0) as f64 / f64::from(1 << 20)
    };
    let each =
        first.usage.iter().enumerate().map(|(at, (name, _))| format!("{name} {:.0}", highest(at)));
    each.collect::<Vec<_>>().join(", ")
}

/// The middle value, or the mean of the two middle ones; 0 of nothing.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    }
}
