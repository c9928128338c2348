//! Whether two classes of times differ: Welch's t-test on all of them, on the quickest of them, and
//! on their scatter.
//!
//! Times have a long tail (interrupts, other programs) that carries no information about the
//! operation and hides leaks. So the test is repeated on the times below each of many percentiles
//! of both classes together, as in dudect. If a leak changes the scatter and not the mean, the
//! second-order test finds it: the same test on squared distances from the mean.

use crate::measure::Times;

/// Number of percentiles at which the times are cropped, denser towards the tail (those of dudect:
/// 1 − 2^(−10·i/100)).
const CROPS: u32 = 100;
/// Minimum number of times of a class below a percentile: the t-test assumes normally distributed
/// sums.
const LEAST: usize = 50;
/// Share of the times for the second-order test, which a single interrupt would mask, and for the
/// sensitivity of the test.
const USUAL_SHARE: f64 = 0.9;

/// Count, mean and sum of squared distances from the mean, updated value by value (Welford).
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    count: usize,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
    }

    /// The variance of the mean.
    fn variance_of_mean(&self) -> f64 {
        self.squares / (self.count as f64 - 1.0) / self.count as f64
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<T: IntoIterator<Item = f64>>(values: T) -> Self {
        let mut moments = Self::default();
        values.into_iter().for_each(|value| moments.add(value));
        moments
    }
}

/// Welch's t: the difference of two means in standard errors.
pub fn welch(a: &Moments, b: &Moments) -> f64 {
    let difference = a.mean - b.mean;
    if difference == 0.0 { 0.0 } else { difference / standard_error(a, b) }
}

fn standard_error(a: &Moments, b: &Moments) -> f64 {
    (a.variance_of_mean() + b.variance_of_mean()).sqrt()
}

/// The test that gave a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Test {
    /// On all times.
    All,
    /// On this share of the times, the quickest ones.
    Quickest(f64),
    /// On squared distances from the mean, for this share.
    Scatter(f64),
}

/// Results of the tests on two classes.
#[derive(Clone, Copy, Debug)]
pub struct Analysis {
    /// Number of times.
    pub measurements: usize,
    /// The largest |t|.
    pub t: f64,
    /// The test that gave it.
    pub test: Test,
    /// The median of class A, in nanoseconds of a measurement.
    pub median: f64,
    /// Median of class B minus that of class A.
    pub difference: f64,
    /// The standard error of the difference of the means of the quickest nine tenths, in
    /// nanoseconds of a measurement.
    pub standard_error: f64,
}

/// Runs all tests.
pub fn analyse(times: &Times) -> Analysis {
    let mut ascending: Vec<(f64, usize)> = Vec::new();
    for (class, times) in times.iter().enumerate() {
        ascending.extend(times.iter().map(|time| (*time, class)));
    }
    ascending.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let usual = cut(&ascending, USUAL_SHARE);
    let mut found: Vec<(Test, f64)> = cropped(&ascending);
    found.push((Test::Scatter(1.0), scatter(&ascending)));
    found.push((Test::Scatter(USUAL_SHARE), scatter(usual)));
    found.retain(|(_, t)| !t.is_nan());
    let worst = found.into_iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    let (test, t) = worst.unwrap_or((Test::All, 0.0));
    let [a, b] = by_class(usual);
    let medians = times.each_ref().map(|times| median(times));
    Analysis {
        measurements: ascending.len(),
        t: t.abs(),
        test,
        median: medians[0],
        difference: medians[1] - medians[0],
        standard_error: standard_error(&a, &b),
    }
}

/// Returns the t of all times, and of those up to each percentile.
fn cropped(ascending: &[(f64, usize)]) -> Vec<(Test, f64)> {
    let mut moments = [Moments::default(); 2];
    let mut added = 0;
    let shares = (1..=CROPS).map(|i| 1.0 - (-10.0 * f64::from(i) / f64::from(CROPS)).exp2());
    let mut found = Vec::new();
    for share in shares.chain([1.0]) {
        let below = cut(ascending, share);
        below[added..].iter().for_each(|(time, class)| moments[*class].add(*time));
        added = below.len();
        if moments.iter().all(|moments| moments.count >= LEAST) {
            let test = if share == 1.0 { Test::All } else { Test::Quickest(share) };
            found.push((test, welch(&moments[0], &moments[1])));
        }
    }
    found
}

/// Returns the t of squared distances from the mean of each class.
fn scatter(times: &[(f64, usize)]) -> f64 {
    let moments = by_class(times);
    if moments.iter().any(|moments| moments.count < LEAST) {
        return 0.0;
    }
    let squared = times.iter().map(|(time, class)| ((time - moments[*class].mean).powi(2), *class));
    let [a, b] = by_class(&squared.collect::<Vec<_>>());
    welch(&a, &b)
}

fn by_class(times: &[(f64, usize)]) -> [Moments; 2] {
    [0, 1].map(|class| times.iter().filter(|time| time.1 == class).map(|time| time.0).collect())
}

/// Returns the quickest `share` of the times, and all that equal the last one: a cut between equal
/// times would separate them by class.
fn cut(ascending: &[(f64, usize)], share: f64) -> &[(f64, usize)] {
    let at = (ascending.len() as f64 * share) as usize;
    let Some((last, _)) = at.checked_sub(1).and_then(|last| ascending.get(last)) else {
        return &[];
    };
    let end = ascending.partition_point(|(time, _)| time <= last);
    &ascending[..end]
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    let middle = times.len() / 2;
    if times.is_empty() {
        return f64::NAN;
    }
    *times.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::{Rng, SeedableRng};

    use super::*;

    /// Times of a busy machine: a clock of whole nanoseconds, noise around `base`, and an interrupt
    /// in one of fifty.
    fn noisy(rng: &mut ChaCha20Rng, base: f64) -> f64 {
        let unit = |rng: &mut ChaCha20Rng| f64::from(rng.next_u32()) / f64::from(u32::MAX);
        let noise: f64 = (0..12).map(|_| unit(rng)).sum::<f64>() * 20.0;
        let interrupt = if unit(rng) < 0.02 { 20_000.0 * unit(rng) } else { 0.0 };
        (base + noise + interrupt).round()
    }

    fn times(seed: u64, count: usize, mut of: impl FnMut(&mut ChaCha20Rng, usize) -> f64) -> Times {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        [0, 1].map(|class| (0..count).map(|_| of(&mut rng, class)).collect())
    }

    fn moments(values: &[f64]) -> Moments {
        values.iter().copied().collect()
    }

    /// Three worked examples that commonly explain the test, with unequal sizes and variances.
    #[test]
    fn welchs_t_is_that_of_worked_examples() {
        let a = [
            27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7,
            21.4,
        ];
        let b = [
            27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5,
            24.4,
        ];
        assert!((welch(&moments(&a), &moments(&b)) + 2.46).abs() < 0.005);
        let a = [17.2, 20.9, 22.6, 18.1, 21.7, 21.4, 23.5, 24.2, 14.7, 21.8];
        let b = [
            21.5, 22.8, 21.0, 23.0, 21.6, 23.6, 22.5, 20.7, 23.4, 21.8, 20.7, 21.7, 21.5, 22.5,
            23.6, 21.5, 22.5, 23.5, 21.5, 21.8,
        ];
        assert!((welch(&moments(&a), &moments(&b)) + 1.57).abs() < 0.005);
        // Means 2 and 4, variances 1 and 4, three of each: −2 / √(1/3 + 4/3).
        let t = welch(&moments(&[1.0, 2.0, 3.0]), &moments(&[2.0, 4.0, 6.0]));
        assert!((t + 2.0 / (5.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(welch(&moments(&[1.0, 2.0]), &moments(&[1.0, 2.0])), 0.0);
    }

    #[test]
    fn equal_samples_show_no_difference() {
        for seed in 0..50 {
            let same = analyse(&times(seed, 5000, |rng, _| noisy(rng, 1000.0)));
            assert!(same.t < 6.0, "seed {seed}: {same:?}");
        }
    }

    #[test]
    fn a_leak_that_interrupts_hide_is_found_below_them() {
        let leak = times(1, 20_000, |rng, class| noisy(rng, 1000.0 + 4.0 * class as f64));
        let raw = welch(&moments(&leak[0]), &moments(&leak[1]));
        let found = analyse(&leak);
        assert!(raw.abs() < 5.0, "{raw}");
        assert!(found.t > 15.0, "{found:?}");
        assert!(matches!(found.test, Test::Quickest(_)));
        assert!((found.difference - 4.0).abs() < 2.0);
        let visible = 10.0 * found.standard_error;
        assert!((1.0..4.0).contains(&visible), "{visible}");
    }

    #[test]
    fn a_leak_into_the_scatter_alone_is_found() {
        let found = analyse(&times(2, 20_000, |rng, class| {
            let spread = [0.0, 30.0][class];
            let side = if rng.next_u32() & 1 == 0 { spread } else { -spread };
            noisy(rng, 1000.0 + side)
        }));
        assert!(found.t > 15.0, "{found:?}");
    }

    #[test]
    fn a_coarse_clock_parts_no_equal_times() {
        let coarse = times(3, 10_000, |rng, _| (noisy(rng, 1000.0) / 42.0).round() * 42.0);
        assert!(analyse(&coarse).t < 6.0);
        let still = analyse(&[vec![42.0; 1000], vec![42.0; 1000]]);
        assert_eq!((still.t, still.difference), (0.0, 0.0));
        let apart = analyse(&[vec![42.0; 1000], vec![84.0; 1000]]);
        assert_eq!(apart.t, f64::INFINITY);
    }

    #[test]
    fn nothing_measured_is_no_difference() {
        assert_eq!(analyse(&[Vec::new(), Vec::new()]).t, 0.0);
    }
}
