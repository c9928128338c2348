//! Whether a byte of a datagram predicts the byte at the same place of the next datagram: how often
//! the two are equal, and how much they differ. A constant shows as equality and a counter as a
//! difference of one; both remain visible through a constant mask.

use super::CheckFigure;
use super::byte_frequency::uniform;
use super::position::{PLACES, name, places};
use crate::distributions::binomial;
use crate::finding::Figure;

/// Maximum deviation in standard deviations, by the exact binomial tail.
const SIGMAS_MAX: f64 = 5.0;

/// Differences of neighbours, by place.
#[derive(Clone, Debug)]
pub struct Consecutive {
    /// The last datagram of each series.
    last: Vec<(usize, Vec<(usize, u8)>)>,
    differences: Vec<[u64; 256]>,
}

impl Default for Consecutive {
    fn default() -> Self {
        Self { last: Vec::new(), differences: vec![[0; 256]; PLACES] }
    }
}

impl Consecutive {
    /// Adds the next datagram of a series: a direction of a connection, or the same datagram of
    /// successive dials.
    pub fn add(&mut self, series: usize, bytes: &[u8]) {
        let at = self.last.iter().rposition(|(other, _)| *other == series).unwrap_or_else(|| {
            self.last.push((series, Vec::new()));
            self.last.len() - 1
        });
        let last = &mut self.last[at].1;
        let mut before = last.iter().peekable();
        for (place, byte) in places(bytes) {
            while before.next_if(|(earlier, _)| *earlier < place).is_some() {}
            if let Some((_, earlier)) = before.next_if(|(same, _)| *same == place) {
                self.differences[place][usize::from(byte.wrapping_sub(*earlier))] += 1;
            }
        }
        last.clear();
        last.extend(places(bytes));
    }

    /// The figures.
    pub fn figures(&self) -> Vec<CheckFigure> {
        let mut figures = Vec::new();
        for (place, differences) in self.differences.iter().enumerate() {
            let pairs: u64 = differences.iter().sum();
            let p = binomial(differences[0], pairs, 1.0 / 256.0);
            let equal = Figure::Within { p, sigmas: SIGMAS_MAX };
            figures.push(CheckFigure::new("equal to the one before", name(place), equal));
            let differing = Figure::Chance(uniform(differences));
            figures.push(CheckFigure::new("difference to the one before", name(place), differing));
        }
        figures
    }
}
