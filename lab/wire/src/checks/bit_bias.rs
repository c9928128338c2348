//! Whether the bit at each position is equally often 1 and 0.

use super::CheckFigure;
use super::byte_frequency::ByteCounts;
use super::position::name;
use crate::distributions::normal;
use crate::finding::Figure;

/// Maximum deviation of a position in standard deviations: 1280 positions of noise reach it once in
/// 800 populations.
const SIGMAS_MAX: f64 = 4.9;

/// Returns the figures; bit 0 is the lowest of a byte.
pub fn figures(counts: &ByteCounts) -> Vec<CheckFigure> {
    let mut figures = Vec::new();
    for (place, counts) in counts.at_places() {
        let total: u64 = counts.iter().sum();
        for bit in 0..8 {
            let set = (0..256).filter(|value| value >> bit & 1 == 1);
            let ones: u64 = set.map(|value| counts[value]).sum();
            let figure = Figure::Within { p: normal(z(ones, total)), sigmas: SIGMAS_MAX };
            figures.push(CheckFigure::new(
                "bit bias",
                format!("{}, bit {bit}", name(place)),
                figure,
            ));
        }
    }
    figures
}

/// Returns the deviation of `ones` of `total` from one half, in standard deviations.
pub fn z(ones: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { (2.0 * ones as f64 - total as f64) / (total as f64).sqrt() }
}
