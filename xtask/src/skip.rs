//! Skipped checks and their reasons: one line when a check is skipped, and all of them in the last
//! line of `cargo xtask test`.
//!
//! The test harness hides the output of passing tests, so a test bypasses it with one line on
//! standard error: `skipped: NAME OF THE TEST: WHY`. In CI (`CI=true`) all requirements are
//! present, so a skipped test counts as failed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};

/// Prefix of the line of a skipped test.
const PREFIX: &str = "skipped: ";
/// Prefix of the line of a test that no installation could make run; CI does not fail for it.
const UNCHECKED: &str = "unchecked: ";

/// `WHAT: WHY` of everything skipped in this process and in the tests it ran.
static SKIPPED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Returns whether a line of a test's output reports that it proved nothing because the machine
/// lacks a tool or a feature.
pub fn is_note(line: &str) -> bool {
    line.starts_with(PREFIX) || line.starts_with(UNCHECKED)
}

/// Reports that a check was skipped.
pub fn skipped(what: &str, why: &str) {
    let line = format!("{PREFIX}{what}: {why}");
    eprintln!("{line}");
    heard(&line);
}

/// Counts the line if it reports a skipped test.
pub fn heard(line: &str) {
    if let Some(what) = line.strip_prefix(PREFIX) {
        SKIPPED.lock().unwrap_or_else(PoisonError::into_inner).push(what.to_owned());
    }
}

/// Prints the closing line. Returns `result`, or an error in CI if any check was skipped.
pub fn close(result: Result<()>) -> Result<()> {
    let skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    println!("{}", summary(&skipped));
    let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    ensure!(result.is_err() || skipped.is_empty() || !in_ci, "in CI nothing may be skipped");
    result
}

/// `skipped: N (WHAT, WHAT: WHY; WHAT: WHY)`.
fn summary(skipped: &[String]) -> String {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in skipped {
        // The path of a test contains colons, but none before a space.
        let (what, why) = line.split_once(": ").unwrap_or((line, "it does not say why"));
        reasons.entry(why).or_default().push(what);
    }
    let reasons: Vec<_> =
        reasons.iter().map(|(why, what)| format!("{}: {why}", what.join(", "))).collect();
    match skipped.len() {
        0 => format!("{PREFIX}0"),
        n => format!("{PREFIX}{n} ({})", reasons.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_counts_and_names_each_reason_once() {
        assert_eq!(summary(&[]), "skipped: 0");
        let lines = ["sleep::a: needs root", "pages::b: no zsh: not found", "disk::c: needs root"];
        assert_eq!(
            summary(&lines.map(String::from)),
            "skipped: 3 (sleep::a, disk::c: needs root; pages::b: no zsh: not found)"
        );
    }
}
