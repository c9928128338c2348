//! What proved nothing here, and why: a line at the time, and all of it in the last line of `cargo xtask test`.
//!
//! A test says it past the harness, which keeps what a passing test prints to itself: one line on standard error,
//! `skipped: NAME OF THE TEST: WHY`. In CI (`CI=true`) everything is there that a test asks for, so one that is skipped has
//! failed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};

/// What a line of a skipped test begins with.
const PREFIX: &str = "skipped: ";
/// What a line begins with where nothing that could be installed would change it; CI does not fail for it.
const UNCHECKED: &str = "unchecked: ";

/// `WHAT: WHY` of everything skipped in this process and in the tests it ran.
static SKIPPED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Whether a line of a test's output reports that it proved nothing, for want of a tool or of a feature of the machine.
pub fn is_note(line: &str) -> bool {
    line.starts_with(PREFIX) || line.starts_with(UNCHECKED)
}

/// Says that something was skipped.
pub fn skipped(what: &str, why: &str) {
    let line = format!("{PREFIX}{what}: {why}");
    eprintln!("{line}");
    heard(&line);
}

/// Counts the line if it is that of a skipped test.
pub fn heard(line: &str) {
    if let Some(what) = line.strip_prefix(PREFIX) {
        SKIPPED.lock().unwrap_or_else(PoisonError::into_inner).push(what.to_owned());
    }
}

/// Prints the closing line. Returns `result`, or an error in CI if anything was skipped.
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
        // A test has colons in its path, and none of them before a space.
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
