//! The tables, as text.

use std::fmt::Write as _;

use crate::checks::censor::RULES;
use crate::distributions::{normal, sigmas};
use crate::finding::{Figure, JudgedFinding};
use crate::outcome::Outcome;

/// Maximum number of failures shown for one test.
const FAILURES_SHOWN: usize = 8;

/// Describes the result of a censor's published rules.
pub fn censor((each, any): &([f64; RULES.len()], f64)) -> Vec<String> {
    let mut lines = vec![format!(
        "report: by the published rules for fully encrypted traffic {:.2} % of first payloads are exempt. Random datagrams are not \
         exempt from rules of that kind; those published were applied to TCP.",
        100.0 * any
    )];
    let each = RULES.iter().zip(each);
    lines.extend(each.map(|((rule, _), share)| format!("    {rule}: {:.2} %", 100.0 * share)));
    lines
}

/// Formats a whole outcome.
pub fn text(outcome: &Outcome) -> String {
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{line}").expect("text takes all");
    let head = ["test", "figures", "worst", "verdict", "the worst is of"];
    line(format!("{:<30} {:>8}  {:<26} {:<12} {}", head[0], head[1], head[2], head[3], head[4]));
    for row in rows(&outcome.judged) {
        let failed: Vec<_> = row.iter().filter(|judged| !judged.passed).collect();
        let verdict =
            if failed.is_empty() { "pass".into() } else { format!("FAIL ({})", failed.len()) };
        let worst = &worst(&row).finding;
        let (test, figure) = (worst.test, words(worst.figure));
        let of = format!("{}, {}", worst.population, worst.place);
        line(format!("{test:<30} {:>8}  {figure:<26} {verdict:<12} {of}", row.len()));
        for JudgedFinding { finding, .. } in failed.into_iter().take(FAILURES_SHOWN) {
            let figure = words(finding.figure);
            line(format!("    {}, {}: {figure}", finding.population, finding.place));
        }
    }
    line(String::new());
    line(format!("{:<42} caught by", "control"));
    for (name, tests) in &outcome.controls {
        let tests = if tests.is_empty() { "NOTHING".to_owned() } else { tests.join(", ") };
        line(format!("{name:<42} {tests}"));
    }
    line(String::new());
    for note in &outcome.notes {
        line(note.clone());
    }
    text
}

/// Groups figures by test, in their order.
fn rows(judged: &[JudgedFinding]) -> Vec<Vec<&JudgedFinding>> {
    let mut rows: Vec<Vec<&JudgedFinding>> = Vec::new();
    for judged in judged {
        match rows.iter_mut().find(|row| row[0].finding.test == judged.finding.test) {
            Some(row) => row.push(judged),
            None => rows.push(vec![judged]),
        }
    }
    rows
}

fn worst<'a>(row: &[&'a JudgedFinding]) -> &'a JudgedFinding {
    let badness = |judged: &&&JudgedFinding| match judged.finding.figure {
        Figure::Chance(p) => -p,
        Figure::Within { p, sigmas } => -p / normal(sigmas),
        Figure::AtMost { value, .. } => value,
    };
    row.iter().max_by(|a, b| badness(a).total_cmp(&badness(b))).expect("a row has a figure")
}

fn words(figure: Figure) -> String {
    match figure {
        Figure::Chance(p) => format!("p = {p:.1e}"),
        Figure::Within { p, sigmas: limit } => format!("{:.2} σ, limit {limit} σ", sigmas(p)),
        Figure::AtMost { value, limit } => format!("{value:.5}, limit {limit}"),
    }
}
