//! What a test says about a population, and what counts as failed.
//!
//! Figures that have a rule of their own ("within 4 σ") are held to it. All other probabilities of one run are judged together by
//! Holm's correction, so that a run of noise fails with a probability of [`ALPHA`] at most, however many figures it has.

/// The chance that figures under Holm's correction fail a run of perfect noise.
pub const ALPHA: f64 = 1e-3;

/// One figure.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The test, as the tables name it.
    pub test: &'static str,
    /// The datagrams it looked at.
    pub population: String,
    /// Where in them.
    pub place: String,
    /// The figure.
    pub figure: Figure,
}

/// How far something is from noise.
#[derive(Clone, Copy, Debug)]
pub enum Figure {
    /// How likely this, or something further from what is expected, is by chance. Under Holm's correction with all others.
    Chance(f64),
    /// The same, held to both tails beyond so many standard deviations.
    Within {
        /// How likely it is by chance.
        p: f64,
        /// The limit.
        sigmas: f64,
    },
    /// Something that must not be more than this.
    AtMost {
        /// What it is.
        value: f64,
        /// The limit.
        limit: f64,
    },
}

/// A figure with its verdict.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The figure.
    pub finding: Finding,
    /// Whether it passed.
    pub passed: bool,
}

/// Judges all figures of one run.
pub fn judge(findings: Vec<Finding>) -> Vec<Judged> {
    let mut chances: Vec<f64> = findings.iter().filter_map(|finding| finding.chance()).collect();
    chances.sort_by(f64::total_cmp);
    let bound = holm_bound(&chances);
    let passed = |figure: Figure| match figure {
        Figure::Chance(p) => p > bound,
        Figure::Within { p, sigmas } => p >= crate::distributions::normal(sigmas),
        Figure::AtMost { value, limit } => value <= limit,
    };
    let judged = |finding: Finding| Judged { passed: passed(finding.figure), finding };
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

/// The largest of these ascending probabilities that fails (Holm 1979); below all if none does.
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
