//! The tables, as text.

use crate::run::{Candidate, Outcome, Row, THRESHOLD, Verdict};
use crate::statistics::Test;

/// The heading of the rows.
pub fn head() -> String {
    let head =
        ["name", "measured", "max |t|", "in", "median, ns", "B−A, ns", "visible, ns", "verdict"];
    format!("{}classes", columns(head))
}

fn columns([name, measured, t, test, median, difference, visible, verdict]: [&str; 8]) -> String {
    format!(
        "{name:<33} {measured:>11} {t:>8}  {test:<14} {median:>10} {difference:>9} {visible:>11}  {verdict:<14} "
    )
}

/// Formats one target or control. The figures in nanoseconds are per operation: the median of class
/// A, the excess of class B's median, and the difference of means at which |t| would reach the
/// threshold.
pub fn row(row: &Row, is_control: bool) -> String {
    let classes = row.candidate.target.classes.join(" / ");
    let name = row.candidate.name();
    let verdict = match (row.verdict, is_control) {
        (Verdict::Same, false) => "no difference",
        (Verdict::Same | Verdict::Skipped | Verdict::Unconfirmed, true) => "NOT FOUND",
        (Verdict::Unconfirmed, false) => "not confirmed",
        (Verdict::DifferencePosition, false) => "DIFFERS",
        (Verdict::DifferencePosition, true) => "found",
        (Verdict::Skipped, false) => "skipped: this processor lacks the instructions",
    };
    let Some(analysis) = row.analysis else { return format!("{name:<33} {verdict}") };
    let batch = row.candidate.target.plan.batch;
    let each = |nanoseconds: f64| nanoseconds / batch as f64;
    let measured = if batch == 1 { String::new() } else { format!("×{batch}") };
    let measured = format!("{}{measured}", analysis.measurements);
    let test = match analysis.test {
        Test::All => "all".to_owned(),
        Test::Quickest(share) => format!("quickest {:.0} %", 100.0 * share),
        Test::Scatter(share) => format!("scatter {:.0} %", 100.0 * share),
    };
    let columns = columns([
        &name,
        &measured,
        &format!("{:.1}", analysis.t),
        &test,
        &format!("{:.1}", each(analysis.median)),
        &format!("{:.2}", each(analysis.difference)),
        &format!("{:.3}", each(THRESHOLD * analysis.standard_error)),
        verdict,
    ]);
    columns + &classes
}

/// Lists the names and classes of targets.
pub fn list(candidates: &[Candidate]) -> String {
    let line =
        |each: &Candidate| format!("{:<33} {}\n", each.name(), each.target.classes.join(" / "));
    candidates.iter().map(line).collect()
}

/// Formats a whole outcome.
pub fn text(outcome: &Outcome) -> String {
    let targets = outcome.targets.iter().map(|target| row(target, false));
    let controls = outcome.controls.iter().map(|control| row(control, true));
    [head()].into_iter().chain(targets).chain(controls).collect::<Vec<_>>().join("\n")
}
