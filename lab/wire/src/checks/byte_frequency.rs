//! Whether all byte values are equally frequent: overall, and at each place across datagrams
//! (Pearson's χ²).
//!
//! Entropy is a G statistic of the same counts.

use super::CheckFigure;
use super::position::{PLACES, name, places};
use crate::distributions::{chi_squared, chi_squared_of_uniform};
use crate::finding::Figure;

/// Minimum expected count of a value for χ²; below it the two halves of a byte are counted instead.
const EXPECTED_MIN: u64 = 5;

/// Counts of each byte value.
#[derive(Clone, Debug)]
pub struct ByteCounts {
    overall: [u64; 256],
    at: Vec<[u64; 256]>,
}

impl Default for ByteCounts {
    fn default() -> Self {
        Self { overall: [0; 256], at: vec![[0; 256]; PLACES] }
    }
}

impl ByteCounts {
    /// Counts a datagram.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.overall[usize::from(*byte)] += 1;
        }
        for (place, byte) in places(bytes) {
            self.at[place][usize::from(byte)] += 1;
        }
    }

    /// Returns the counts at each place.
    pub fn at_places(&self) -> impl Iterator<Item = (usize, &[u64; 256])> {
        self.at.iter().enumerate()
    }

    /// The figures.
    pub fn figures(&self) -> Vec<CheckFigure> {
        let mut figures = vec![
            CheckFigure::new("byte frequency", "all bytes", Figure::Chance(uniform(&self.overall))),
            CheckFigure::new("entropy", "all bytes", Figure::Chance(g_test(&self.overall))),
        ];
        for (place, counts) in self.at_places() {
            let figure = Figure::Chance(uniform(counts));
            figures.push(CheckFigure::new("byte frequency by offset", name(place), figure));
        }
        figures
    }

    /// Shannon's entropy of all bytes, in bits per byte.
    pub fn entropy(&self) -> f64 {
        entropy(&self.overall)
    }
}

/// Returns the probability of such counts of byte values if all values are equally likely. With few
/// bytes it tests the halves of bytes and returns the smaller probability (doubled for the choice).
pub fn uniform(counts: &[u64; 256]) -> f64 {
    if counts.iter().sum::<u64>() >= 256 * EXPECTED_MIN {
        return chi_squared_of_uniform(counts);
    }
    let (mut high, mut low) = ([0; 16], [0; 16]);
    for (value, count) in counts.iter().enumerate() {
        high[value / 16] += count;
        low[value % 16] += count;
    }
    (2.0 * chi_squared_of_uniform(&high).min(chi_squared_of_uniform(&low))).min(1.0)
}

fn entropy(counts: &[u64]) -> f64 {
    let total = counts.iter().sum::<u64>() as f64;
    let share = |&count: &u64| count as f64 / total;
    -counts.iter().map(share).filter(|share| *share > 0.0).map(|s| s * s.log2()).sum::<f64>()
}

/// The shortfall of the entropy from 8 bits is χ² distributed: G = 2 n ln 2 (8 - H).
fn g_test(counts: &[u64; 256]) -> f64 {
    let total = counts.iter().sum::<u64>() as f64;
    let g = 2.0 * total * std::f64::consts::LN_2 * (8.0 - entropy(counts));
    chi_squared(g.max(0.0), 255)
}
