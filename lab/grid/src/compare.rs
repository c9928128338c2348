//! Comparison with the baseline: the ratio in each cell, and a summary in Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::cell::{Cell, Condition, millis};
use crate::contender::Contender;
use crate::report::Row;

/// Share of the baseline's goodput below which a cell is run again. It is slightly above the share
/// below which the cell is reported as lost, so that good luck is repeated as well as bad luck.
pub const CLOSE: f64 = 0.97;
/// Number of runs of a close cell; odd.
pub const RUNS: u32 = 5;

/// Share of the baseline's goodput below which a cell counts as lost.
pub const BEHIND: f64 = 0.95;
/// Maximum number of lost cells in the summary, the worst first.
const LISTED: usize = 40;

/// One contender and the best baseline in the same cell.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The result of wraith.
    pub ours: &'a Row,
    /// The baseline with the highest goodput.
    pub best: &'a Row,
}

impl Comparison<'_> {
    /// Returns our goodput as a multiple of the baseline's.
    pub fn ratio(&self) -> f64 {
        self.ours.figures.goodput / self.best.figures.goodput.max(f64::MIN_POSITIVE)
    }
}

/// Compares `contender` with the best baseline, in every cell in which both ran one flow.
pub fn compare(rows: &[Row], contender: Contender) -> Vec<Comparison<'_>> {
    let mut best: BTreeMap<String, &Row> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.contender.is_baseline()) {
        let best = best.entry(row.cell.to_string()).or_insert(row);
        if row.figures.goodput > best.figures.goodput {
            *best = row;
        }
    }
    let ours = rows.iter().filter(|row| row.contender == contender && !row.cell.has_two_flows());
    ours.filter_map(|ours| best.get(&ours.cell.to_string()).map(|best| Comparison { ours, best }))
        .collect()
}

/// Summarises the grid in Markdown.
pub fn summary(rows: &[Row], command: &str, seed: u64) -> String {
    let mut text = format!(
        "# The scenario grid\n\nMade by `{command}` (seed {seed}); [grid.csv](grid.csv) has every figure, \
         [grid.svg](grid.svg) the map, [PERFORMANCE.md](../PERFORMANCE.md) the explanation. Where {} has less than {CLOSE} × the \
         better quinn, a figure is the median of {RUNS} seeds.\n",
        Contender::default_wraith()
    );
    for contender in Contender::ALL.into_iter().filter(|contender| !contender.is_baseline()) {
        let comparisons = compare(rows, contender);
        if !comparisons.is_empty() {
            by_loss(&mut text, contender, &comparisons);
            behind(&mut text, contender, &comparisons);
        }
    }
    peculiar(&mut text, rows);
    text
}

fn by_loss(text: &mut String, contender: Contender, comparisons: &[Comparison<'_>]) {
    let _ = writeln!(text, "\n## {contender} beside the better quinn of each cell\n");
    text.push_str("| loss | cells | behind 0.95 | lowest | median ratio | highest | median goodput, ours | quinn's |\n");
    text.push_str("|---|---|---|---|---|---|---|---|\n");
    let mut groups: Vec<(String, Vec<&Comparison<'_>>)> = Vec::new();
    let plain = comparisons.iter().filter(|c| c.ours.cell.condition == Condition::Plain);
    for comparison in plain {
        let name = comparison.ours.cell.loss.to_string();
        match groups.iter_mut().find(|(found, _)| *found == name) {
            Some((_, group)) => group.push(comparison),
            None => groups.push((name, vec![comparison])),
        }
    }
    for (name, group) in &groups {
        let ratios = sorted(group.iter().map(|c| c.ratio()));
        let ours = sorted(group.iter().map(|c| c.ours.figures.goodput));
        let theirs = sorted(group.iter().map(|c| c.best.figures.goodput));
        let lost = ratios.iter().filter(|ratio| **ratio < BEHIND).count();
        let _ = writeln!(
            text,
            "| {name} | {} | {lost} | {:.2} | {:.2} | {:.1} | {:.1} % | {:.1} % |",
            group.len(),
            ratios[0],
            median(&ratios),
            ratios[ratios.len() - 1],
            100.0 * median(&ours),
            100.0 * median(&theirs),
        );
    }
}

fn behind(text: &mut String, contender: Contender, comparisons: &[Comparison<'_>]) {
    let mut lost: Vec<_> = comparisons.iter().filter(|c| c.ratio() < BEHIND).collect();
    lost.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    let listed = lost.len().min(LISTED);
    let _ = write!(
        text,
        "\n{contender} is behind {BEHIND} × quinn in {} of {} cells",
        lost.len(),
        comparisons.len()
    );
    if lost.is_empty() {
        text.push_str(".\n");
        return;
    }
    let _ = writeln!(text, "; the worst {listed}:\n");
    text.push_str("| cell | ratio | ours | quinn's | who | its packets sent again |\n|---|---|---|---|---|---|\n");
    for c in &lost[..listed] {
        let _ = writeln!(
            text,
            "| {} | {:.2} | {:.1} % | {:.1} % | {} | {:.1} % |",
            c.ours.cell,
            c.ratio(),
            100.0 * c.ours.figures.goodput,
            100.0 * c.best.figures.goodput,
            c.best.contender,
            100.0 * c.best.figures.retransmitted,
        );
    }
}

fn peculiar(text: &mut String, rows: &[Row]) {
    let peculiar: Vec<_> =
        rows.iter().filter(|row| row.cell.condition != Condition::Plain).collect();
    if peculiar.is_empty() {
        return;
    }
    text.push_str("\n## Peculiar links, and two flows at one bottleneck\n\n");
    text.push_str("| cell | who | goodput | p95 queue, ms | sent again | needlessly | Jain | share of the first |\n");
    text.push_str("|---|---|---|---|---|---|---|---|\n");
    for Row { cell, contender, figures: f } in peculiar {
        let (jain, share) = f.fairness.map_or((String::new(), String::new()), |(jain, share)| {
            (format!("{jain:.2}"), format!("{:.0} %", 100.0 * share))
        });
        let _ = writeln!(
            text,
            "| {} | {contender} | {:.1} % | {:.1} | {:.1} % | {:.1} % | {jain} | {share} |",
            short(cell),
            100.0 * f.goodput,
            millis(f.queue_delay),
            100.0 * f.retransmitted,
            100.0 * f.spurious,
        );
    }
}

/// The name of a special cell without the parts that all of them share.
fn short(cell: &Cell) -> String {
    cell.to_string().replace(" 0% ", ", ").replace("bdp ", "")
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}
