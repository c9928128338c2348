//! Results of tests about a population, and the criteria of failure.
//!
//! Figures with a rule of their own ("within 4 σ") are judged by it. Holm's correction judges all
//! other probabilities of a run together. So a run of noise fails with a probability of at most
//! [`ALPHA`], regardless of the number of figures.

/// Probability that figures under Holm's correction fail a run of perfect noise.
pub const ALPHA: f64 = 1e-3;

/// One figure.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Name of the test in the tables.
    pub test: &'static str,
    /// Tested datagrams.
    pub population: String,
    /// Place in the datagrams.
    pub place: String,
    /// The figure.
    pub figure: Figure,
}

/// Distance from noise.
#[derive(Clone, Copy, Debug)]
pub enum Figure {
    /// Probability of this value, or a more extreme one, by chance. Judged by Holm's
    /// correction with all others.
    Chance(f64),
    /// The same probability, limited to both tails beyond a number of standard deviations.
    Within {
        /// Probability by chance.
        p: f64,
        /// The limit.
        sigmas: f64,
    },
    /// A value with an upper limit.
    AtMost {
        /// The value.
        value: f64,
        /// The limit.
        limit: f64,
    },
}

/// A figure with its verdict.
#[derive(Clone, Debug)]
pub struct JudgedFinding {
    /// The figure.
    pub finding: Finding,
    /// Whether it passed.
    pub passed: bool,
}

/// Judges all figures of one run.
pub fn judge(findings: Vec<Finding>) -> Vec<JudgedFinding> {
    let mut chances: Vec<f64> = findings.iter().filter_map(|finding| finding.chance()).collect();
    chances.sort_by(f64::total_cmp);
    let bound = holm_bound(&chances);
    let passed = |figure: Figure| match figure {
        Figure::Chance(p) => p > bound,
        Figure::Within { p, sigmas } => p >= crate::distributions::normal(sigmas),
        Figure::AtMost { value, limit } => value <= limit,
    };
    let judged = |finding: Finding| JudgedFinding { passed: passed(finding.figure), finding };
    findings.into_iter().map(judged).collect()
}

impl Finding {
    fn chance(&self) -> Option<f64> {
        match self.figure {
            Figure::Chance(p) => Some(p),
            _ => None,
        }
    }
}

/// Returns the largest of these ascending probabilities that fails (Holm 1979); below all if none
/// does.
fn holm_bound(ascending: &[f64]) -> f64 {
    let rejected = ascending
        .iter()
        .enumerate()
        .take_while(|(i, p)| **p <= ALPHA / (ascending.len() - i) as f64);
    rejected.last().map_or(-1.0, |(_, p)| *p)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_rejects_step_by_step() {
        assert!(holm_bound(&[]) < 0.0);
        assert!(holm_bound(&[0.000_6, 0.5]) < 0.0, "more than half of alpha");
        assert_eq!(holm_bound(&[0.000_4, 0.000_9]), 0.000_9, "the second is alone by then");
        assert_eq!(holm_bound(&[0.0, 0.0, 0.4]), 0.0);
    }
}
