//! A whole run: measures and judges the targets, then the controls.
//!
//! | | fails, or is found, if |
//! |---|---|
//! | a target, full form | \|t\| is above [`THRESHOLD`], and again in two more measurements of other inputs |
//! | a target, small form | \|t\| is above [`GROSS`] in four measurements of other inputs |
//! | a control | \|t\| is above [`THRESHOLD`] in one of three measurements |
//!
//! A target that fails is measured again in another process, and has failed if it also fails there.
//! The memory layout of one process can separate times by tenths of a nanosecond.
//!
//! By chance alone, |t| would reach 4 in the worst of a hundred tests. Differences of a fraction of
//! a nanosecond, which come from the machine and not from the program, exceed that with enough
//! measurements. The program of dudect's authors uses 10, too.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_suite::Backends;

use crate::controls::CONTROLS;
use crate::measure::Plan;
use crate::statistics::{Analysis, analyse};
use crate::targets::{self, Target};

/// The |t| above which two classes differ.
pub const THRESHOLD: f64 = 10.0;
/// The |t| above which they differ in the small form, which takes only few measurements on a busy
/// machine.
pub const GROSS: f64 = 30.0;
/// Minimum number of measurements of both classes together; fewer are not tested.
const LEAST_MEASUREMENTS: usize = 150;
/// Maximum number of measurements of a control until it is found.
const CONTROL_ATTEMPTS: u64 = 3;
/// Random streams for each target: more than attempts.
const STREAMS: u64 = 16;

/// Number of measurements, and the criteria of failure.
#[derive(Clone, Copy, Debug)]
pub struct MeasurementForm {
    /// Divisor of the measurements of the full form.
    one_in: usize,
    /// The |t| that fails a target.
    fails_above: f64,
    /// Number of measurements that must fail.
    attempts: u64,
}

/// The full form, which takes a few minutes.
pub const FULL: MeasurementForm =
    MeasurementForm { one_in: 1, fails_above: THRESHOLD, attempts: 3 };

/// The small form, which takes seconds.
pub const SMALL: MeasurementForm = MeasurementForm { one_in: 50, fails_above: GROSS, attempts: 4 };

/// Verdict on a target or a control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The classes do not differ.
    Same,
    /// They differed once, and not again.
    Unconfirmed,
    /// The classes differ.
    DifferencePosition,
    /// The processor does not support it.
    Skipped,
}

/// A target or control with the backends that compute it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The target or control.
    pub target: Target,
    /// The choice during its measurements.
    pub backends: Backends,
}

impl Candidate {
    /// Returns the name on the command line and in the tables.
    pub fn name(&self) -> String {
        let Self { target, backends } = self;
        match backends {
            Backends::Fast => target.name.to_owned(),
            Backends::Conservative => format!("{}.{backends}", target.name),
        }
    }
}

/// A target or control with its last measurement.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The target or control.
    pub candidate: Candidate,
    /// `None` if it was skipped.
    pub analysis: Option<Analysis>,
    /// The verdict.
    pub verdict: Verdict,
}

/// Results of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Results of the targets.
    pub targets: Vec<Row>,
    /// Results of the controls.
    pub controls: Vec<Row>,
}

impl Outcome {
    /// Returns whether no target differs and every control does.
    pub fn is_good(&self) -> bool {
        self.differing().is_empty() && self.are_controls_found()
    }

    /// Returns the names of the targets that differ. They fail if they differ in another process,
    /// too.
    pub fn differing(&self) -> Vec<String> {
        let differ = self.targets.iter().filter(|row| row.verdict == Verdict::DifferencePosition);
        differ.map(|row| row.candidate.name()).collect()
    }

    /// Returns whether every control differs.
    pub fn are_controls_found(&self) -> bool {
        self.controls.iter().all(|row| row.verdict == Verdict::DifferencePosition)
    }
}

/// Returns all targets and all controls. A target of the suite is there once with all kernels and
/// once with none.
pub fn candidates() -> (Vec<Candidate>, Vec<Candidate>) {
    let of = |targets: &[Target], backends| -> Vec<Candidate> {
        targets.iter().map(|&target| Candidate { target, backends }).collect()
    };
    let mut all = of(&targets::all(), Backends::Fast);
    all.extend(of(&targets::with_kernels_and_without(), Backends::Conservative));
    (all, of(CONTROLS, Backends::Fast))
}

/// Measures the targets and controls that `wanted` selects.
pub fn run(
    form: MeasurementForm,
    seed: u64,
    wanted: impl Fn(&str) -> bool,
    mut tell: impl FnMut(&Row),
) -> Outcome {
    let (targets, controls) = candidates();
    let mut part = 0;
    let mut rows = |candidates: Vec<Candidate>, judge: Judge| {
        let mut rows = Vec::new();
        for candidate in candidates {
            part += STREAMS;
            if wanted(&candidate.name()) {
                let row = judge(form, candidate, &|attempt| generator(seed, part + attempt));
                tell(&row);
                rows.push(row);
            }
        }
        rows
    };
    Outcome { targets: rows(targets, judge_target), controls: rows(controls, judge_control) }
}

/// Measures a candidate as often as its verdict needs.
type Judge = fn(MeasurementForm, Candidate, &Draw) -> Row;

/// Returns the random generator of an attempt.
type Draw<'a> = dyn Fn(u64) -> ChaCha20Rng + 'a;

fn generator(seed: u64, stream: u64) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

fn measure(
    form: MeasurementForm,
    Candidate { target, backends }: Candidate,
    mut rng: ChaCha20Rng,
) -> Option<Analysis> {
    Backends::choose(Some(backends));
    let Plan { measurements, batch } = target.plan;
    let measurements = (measurements / form.one_in).max(LEAST_MEASUREMENTS);
    let plan = Plan { measurements, batch };
    (target.measure)(plan, &mut rng).map(|times| analyse(&times))
}

/// Judges a target, which fails if every attempt fails. The row shows the first attempt that does
/// not.
fn judge_target(form: MeasurementForm, candidate: Candidate, draw: &Draw) -> Row {
    let mut row = Row { candidate, analysis: None, verdict: Verdict::Skipped };
    for attempt in 0..form.attempts {
        row.analysis = measure(form, candidate, draw(attempt));
        let Some(Analysis { t, .. }) = row.analysis else { return row };
        row.verdict = match (t > form.fails_above, attempt) {
            (true, _) => Verdict::DifferencePosition,
            (false, 0) => Verdict::Same,
            (false, _) => Verdict::Unconfirmed,
        };
        if row.verdict != Verdict::DifferencePosition {
            break;
        }
    }
    row
}

/// Judges a control, which is found if one attempt finds it.
fn judge_control(form: MeasurementForm, candidate: Candidate, draw: &Draw) -> Row {
    let mut row = Row { candidate, analysis: None, verdict: Verdict::Same };
    for attempt in 0..CONTROL_ATTEMPTS {
        row.analysis = measure(form, candidate, draw(attempt));
        if row.analysis.is_some_and(|analysis| analysis.t > THRESHOLD) {
            row.verdict = Verdict::DifferencePosition;
            break;
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::measure::Times;

    /// Times of about 1000, of which those of class B are 200 longer if `differ` is set.
    fn made(plan: Plan, rng: &mut ChaCha20Rng, differ: bool) -> Option<Times> {
        use rand_core::Rng;
        let more = if differ { 200.0 } else { 0.0 };
        let time = |rng: &mut ChaCha20Rng| 1000.0 + f64::from(rng.next_u32() % 100);
        Some([0.0, more].map(|more| (0..plan.measurements / 2).map(|_| time(rng) + more).collect()))
    }

    fn target(measure: fn(Plan, &mut ChaCha20Rng) -> Option<Times>) -> Candidate {
        let plan = Plan { measurements: 50_000, batch: 1 };
        let target = Target { name: "made", classes: ["a", "b"], plan, measure };
        Candidate { target, backends: Backends::Fast }
    }

    fn draw(attempt: u64) -> ChaCha20Rng {
        generator(1, attempt)
    }

    #[test]
    fn a_difference_fails_a_target_and_finds_a_control() {
        let same = target(|plan, rng| made(plan, rng, false));
        let leak = target(|plan, rng| made(plan, rng, true));
        for form in [SMALL, FULL] {
            assert_eq!(judge_target(form, same, &draw).verdict, Verdict::Same);
            assert_eq!(judge_control(form, same, &draw).verdict, Verdict::Same);
            assert_eq!(judge_target(form, leak, &draw).verdict, Verdict::DifferencePosition);
            assert_eq!(judge_control(form, leak, &draw).verdict, Verdict::DifferencePosition);
        }
    }

    #[test]
    fn a_difference_that_does_not_come_again_fails_nothing() {
        // The stream is the number of the attempt.
        let once = target(|plan, rng| made(plan, rng, rng.get_stream() == 0));
        assert_eq!(judge_target(FULL, once, &draw).verdict, Verdict::Unconfirmed);
        assert_eq!(judge_control(FULL, once, &draw).verdict, Verdict::DifferencePosition);
    }

    #[test]
    fn unsupported_processor_features_are_no_failure() {
        assert_eq!(judge_target(FULL, target(|_, _| None), &draw).verdict, Verdict::Skipped);
    }

    #[test]
    fn a_control_that_is_not_found_fails_the_run() {
        let row = |verdict| Row { candidate: target(|_, _| None), analysis: None, verdict };
        let outcome = |target, control| Outcome {
            targets: vec![row(target)],
            controls: vec![row(Verdict::DifferencePosition), row(control)],
        };
        assert!(outcome(Verdict::Same, Verdict::DifferencePosition).is_good());
        assert!(outcome(Verdict::Unconfirmed, Verdict::DifferencePosition).is_good());
        assert!(!outcome(Verdict::DifferencePosition, Verdict::DifferencePosition).is_good());
        assert!(!outcome(Verdict::Same, Verdict::Same).is_good());
    }

    #[test]
    fn names_are_unique() {
        let (targets, controls) = candidates();
        let names: BTreeSet<_> = targets.iter().chain(&controls).map(Candidate::name).collect();
        assert_eq!(names.len(), targets.len() + controls.len());
    }
}
