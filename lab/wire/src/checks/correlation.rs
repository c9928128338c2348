//! Whether 1, 2 or 4 bytes, read as a number in either byte order, increase with the length of the
//! datagram or with time (Spearman's rank correlation).

use super::CheckFigure;
use super::sample::{Sample, SampledDatagram, Start, UNALIGNED};
use crate::distributions::normal;
use crate::finding::Figure;

/// Maximum rank correlation.
const RHO_MAX: f64 = 0.02;
/// Number of datagrams at which the maximum is six standard deviations of chance.
const RHO_MAX_NEEDS: usize = 90_000;
/// Minimum number of datagrams for a meaningful result.
const DATAGRAMS_MIN: usize = 100;

const READINGS: [(usize, bool, &str); 5] = [
    (1, true, "1 byte"),
    (2, true, "2 bytes, big-endian"),
    (2, false, "2 bytes, little-endian"),
    (4, true, "4 bytes, big-endian"),
    (4, false, "4 bytes, little-endian"),
];

/// The figures.
pub fn figures(sample: &Sample) -> Vec<CheckFigure> {
    type Target = fn(&SampledDatagram) -> u64;
    let targets: [(&'static str, &'static str, Target); 2] = [
        ("number against length", "number against length, rho", |kept| kept.len as u64),
        ("number against time", "number against time, rho", |kept| kept.ordinal),
    ];
    let mut figures = Vec::new();
    for (width, big_endian, reading) in READINGS {
        let mut targets_known: Option<(usize, [Option<Ranks>; 2])> = None;
        for start in sample.starts(width) {
            if matches!(start, Start::Head(at) if at + width > UNALIGNED) {
                continue;
            }
            let has = |kept: &&SampledDatagram| kept.window(start, width).is_some();
            let long_enough: Vec<&SampledDatagram> = sample.kept.iter().filter(has).collect();
            if long_enough.len() < DATAGRAMS_MIN {
                continue;
            }
            let read = |kept: &&SampledDatagram| {
                let window = kept.window(start, width).expect("the others were left out");
                number(window, big_endian)
            };
            let values = Ranks::of(long_enough.iter().map(read));
            // Datagrams that are long enough for one window are long enough for all windows that
            // need no more. So sets of equal size are equal.
            if targets_known.as_ref().is_none_or(|(len, _)| *len != long_enough.len()) {
                let ranks =
                    targets.map(|(_, _, of)| Ranks::of(long_enough.iter().map(|kept| of(kept))));
                targets_known = Some((long_enough.len(), ranks));
            }
            let known = &targets_known.as_ref().expect("it was just made").1;
            for ((test, of_rho, _), target) in targets.iter().zip(known) {
                let (Some(values), Some(target)) = (&values, target) else { continue };
                let rho = values.correlation(target);
                let n = long_enough.len();
                let place = format!("{reading}, {start}");
                let chance = Figure::Chance(normal(rho * ((n - 1) as f64).sqrt()));
                figures.push(CheckFigure::new(test, place.clone(), chance));
                if n >= RHO_MAX_NEEDS {
                    let figure = Figure::AtMost { value: rho.abs(), limit: RHO_MAX };
                    figures.push(CheckFigure::new(of_rho, place, figure));
                }
            }
        }
    }
    figures
}

fn number(bytes: &[u8], big_endian: bool) -> u64 {
    let push = |number, byte: &u8| number << 8 | u64::from(*byte);
    if big_endian { bytes.iter().fold(0, push) } else { bytes.iter().rev().fold(0, push) }
}

/// Ranks around their mean, and the root of the sum of their squares.
struct Ranks {
    centred: Vec<f32>,
    norm: f64,
}

impl Ranks {
    /// Computes ranks; equal values share the mean of their ranks. `None` if all are equal.
    fn of(values: impl Iterator<Item = u64>) -> Option<Self> {
        let mut sorted: Vec<(u64, u32)> = values.zip(0..).collect();
        let count = sorted.len();
        sorted.sort_unstable();
        let mut centred = vec![0.0; count];
        let mut from = 0;
        for equal in sorted.chunk_by(|a, b| a.0 == b.0) {
            let middle = from as f64 + (equal.len() - 1) as f64 / 2.0;
            for (_, at) in equal {
                centred[*at as usize] = (middle - (count - 1) as f64 / 2.0) as f32;
            }
            from += equal.len();
        }
        let norm = centred.iter().map(|rank| f64::from(*rank).powi(2)).sum::<f64>().sqrt();
        (norm > 0.0).then_some(Self { centred, norm })
    }

    fn correlation(&self, other: &Self) -> f64 {
        let product = |(a, b): (&f32, &f32)| f64::from(*a) * f64::from(*b);
        self.centred.iter().zip(&other.centred).map(product).sum::<f64>() / (self.norm * other.norm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_correlate_as_their_values_grow() {
        let a = Ranks::of([1, 2, 3, 4, 100].into_iter()).unwrap();
        let b = Ranks::of([10, 20, 30, 40, 50].into_iter()).unwrap();
        let c = Ranks::of([5, 4, 3, 2, 1].into_iter()).unwrap();
        assert!((a.correlation(&b) - 1.0).abs() < 1e-9);
        assert!((a.correlation(&c) + 1.0).abs() < 1e-9);
        assert!(Ranks::of([7; 9].into_iter()).is_none());
        let ties = Ranks::of([1, 1, 2].into_iter()).unwrap();
        assert_eq!(ties.centred, [-0.5, -0.5, 1.0]);
    }
}
