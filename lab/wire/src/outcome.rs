//! Results of a run.

use crate::finding::JudgedFinding;

/// Results of a run.
#[derive(Debug)]
pub struct Outcome {
    /// All figures.
    pub judged: Vec<JudgedFinding>,
    /// Each control, and the tests that caught it.
    pub controls: Vec<(&'static str, Vec<&'static str>)>,
    /// Notes: recorded and skipped data, and results that are reported and not judged.
    pub notes: Vec<String>,
    /// Whether an external program found a fault.
    pub failed_outside: bool,
}

impl Outcome {
    /// Returns whether all figures pass and all controls are caught.
    pub fn is_good(&self) -> bool {
        let caught = self.controls.iter().all(|(_, tests)| !tests.is_empty());
        caught && !self.failed_outside && self.judged.iter().all(|judged| judged.passed)
    }
}
