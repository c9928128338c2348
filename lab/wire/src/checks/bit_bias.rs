//! Whether the bit at each position is as often 1 as 0.

use super::Figured;
use super::byte_frequency::ByteCounts;
use super::position::name;
use crate::distributions::normal;
use crate::finding::Figure;

/// Standard deviations that no position may be off: 1280 positions of noise reach it once in 800 populations.
const SIGMAS_MAX: f64 = 4.9;

/// The figures, bit 0 being the lowest of a byte.
pub fn figures(counts: &ByteCounts) -> Vec<Figured> {
    let mut figures = Vec::new();
    for (place, counts) in counts.at_places() {
        let total: u64 = counts.iter().sum();
        for bit in 0..8 {
            let set = (0..256).filter(|value| value >> bit & 1 == 1);
            let ones: u64 = set.map(|value| counts[value]).sum();
            let figure = Figure::Within { p: normal(z(ones, total)), sigmas: SIGMAS_MAX };
            figures.push(Figured::new("bit bias", format!("{}, bit {bit}", name(place)), figure));
        }
    }
    figures
}

/// By how many standard deviations `ones` of `total` are off one half.
pub fn z(ones: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { (2.0 * ones as f64 - total as f64) / (total as f64).sqrt() }
}
