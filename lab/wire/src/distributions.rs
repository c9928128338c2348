//! Probabilities that a figure, or a more extreme one, occurs by chance.
//!
//! All of them use the incomplete gamma function, computed as in Numerical Recipes §6.2: by its
//! series below a + 1, by its continued fraction above a + 1. Tails keep their relative precision
//! down to 1e-300, because Holm's correction compares tails.

/// Relative change at which a series or a fraction has converged.
const EPSILON: f64 = 1e-15;

/// Both tails of a standard normal beyond `z`.
pub fn normal(z: f64) -> f64 {
    upper_gamma(0.5, z * z / 2.0)
}

/// Number of standard deviations with `p` in both tails, which people read more easily than 1e-7.
pub fn sigmas(p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if normal(middle) > p { low = middle } else { high = middle }
    }
    low
}

/// The tail of χ² above `statistic`.
pub fn chi_squared(statistic: f64, degrees_of_freedom: usize) -> f64 {
    upper_gamma(degrees_of_freedom as f64 / 2.0, statistic / 2.0)
}

/// The χ² of counts that are expected to be equal; 1 if there are none.
pub fn chi_squared_of_uniform(counts: &[u64]) -> f64 {
    let total: u64 = counts.iter().sum();
    if total == 0 {
        return 1.0;
    }
    let expected = total as f64 / counts.len() as f64;
    let square = |&count: &u64| (count as f64 - expected).powi(2) / expected;
    chi_squared(counts.iter().map(square).sum(), counts.len() - 1)
}

/// Probability that a Poisson variable of this mean is at least `count`.
pub fn poisson_at_least(count: u64, mean: f64) -> f64 {
    if count == 0 { 1.0 } else { lower_gamma(count as f64, mean) }
}

/// Probability that `trials` of this `chance` give `count` or a less likely count on either side:
/// twice the smaller tail.
pub fn binomial(count: u64, trials: u64, chance: f64) -> f64 {
    if trials == 0 {
        return 1.0;
    }
    let odds = chance / (1.0 - chance);
    let at = |k: u64| {
        let (k, n) = (k as f64, trials as f64);
        let ways = ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0);
        (ways + k * chance.ln() + (n - k) * (1.0 - chance).ln()).exp()
    };
    let (mut tail, mut term, mut k) = (0.0, at(count), count);
    // Away from the middle, where each term is smaller than the previous one.
    let above = count as f64 >= trials as f64 * chance;
    while term > tail * EPSILON {
        tail += term;
        if above {
            if k == trials {
                break;
            }
            term *= (trials - k) as f64 / (k + 1) as f64 * odds;
            k += 1;
        } else {
            if k == 0 {
                break;
            }
            term *= k as f64 / (trials - k + 1) as f64 / odds;
            k -= 1;
        }
    }
    (2.0 * tail).min(1.0)
}

/// P(a, x), regularized.
fn lower_gamma(a: f64, x: f64) -> f64 {
    if x < a + 1.0 { gamma_series(a, x) } else { 1.0 - gamma_fraction(a, x) }
}

/// Q(a, x) = 1 - P(a, x).
fn upper_gamma(a: f64, x: f64) -> f64 {
    if x < a + 1.0 { 1.0 - gamma_series(a, x) } else { gamma_fraction(a, x) }
}

fn gamma_series(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let (mut n, mut term, mut sum) = (a, 1.0 / a, 1.0 / a);
    while term > sum * EPSILON {
        n += 1.0;
        term *= x / n;
        sum += term;
    }
    sum * (a * x.ln() - x - ln_gamma(a)).exp()
}

/// Continued fraction by Lentz's method.
fn gamma_fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..10_000 {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        let away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
        d = 1.0 / away_from_zero(an * d + b);
        c = away_from_zero(b + an / c);
        h *= d * c;
        if (d * c - 1.0).abs() < EPSILON {
            break;
        }
    }
    h * (a * x.ln() - x - ln_gamma(a)).exp()
}

/// Lanczos' approximation, g = 7.
fn ln_gamma(x: f64) -> f64 {
    const C: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let t = x + 7.5;
    let sum: f64 = C[0] + (1_u8..).zip(&C[1..]).map(|(i, c)| c / (x + f64::from(i))).sum::<f64>();
    (2.0 * std::f64::consts::PI).sqrt().ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a / b - 1.0).abs() < 1e-4, "{a} is not {b}");
    }

    /// Values of printed statistical tables.
    #[test]
    fn tails_are_those_of_the_tables() {
        close(normal(1.0), 0.317_310_5);
        close(normal(1.959_964), 0.05);
        close(normal(5.0), 5.733_031e-7);
        close(normal(10.0), 1.523_971e-23);
        close(chi_squared(3.841_459, 1), 0.05);
        close(chi_squared(310.457_4, 255), 0.01);
        close(chi_squared(18.307_04, 10), 0.05);
        close(poisson_at_least(3, 1.0), 0.080_301_4);
        close(poisson_at_least(1, 1e-9), 1e-9);
        close(binomial(60, 100, 0.5), 2.0 * 0.028_443_97);
        close(binomial(40, 100, 0.5), 2.0 * 0.028_443_97);
        close(binomial(0, 300, 0.125), 2.0 * 0.875_f64.powi(300));
        close(sigmas(5.733_031e-7), 5.0);
    }

    #[test]
    fn equal_counts_are_likely_and_unequal_ones_are_not() {
        assert!(chi_squared_of_uniform(&[100; 256]) > 0.999);
        assert!(chi_squared_of_uniform(&[0; 256]) > 0.999);
        let mut counts = [100; 256];
        counts[7] = 400;
        assert!(chi_squared_of_uniform(&counts) < 1e-9);
    }
}
