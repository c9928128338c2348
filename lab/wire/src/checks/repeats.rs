//! Whether 4 or 8 bytes are equal at the same place in two datagrams more often than by chance. The
//! datagrams belong to different dials, or to one connection. Equal bytes would link the packets of
//! the connection.

use super::CheckFigure;
use super::sample::{Sample, SampledDatagram};
use crate::distributions::poisson_at_least;
use crate::finding::Figure;

/// Pairs of datagrams to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// All.
    All,
    /// Pairs of one connection.
    OfAConnection,
}

/// The figures.
pub fn figures(sample: &Sample, pairs: Pairs) -> Vec<CheckFigure> {
    let mut figures = Vec::new();
    for width in [4, 8] {
        let test = match (pairs, width) {
            (Pairs::All, 4) => "4 bytes again",
            (Pairs::All, _) => "8 bytes again",
            (Pairs::OfAConnection, 4) => "4 bytes again in a connection",
            (Pairs::OfAConnection, _) => "8 bytes again in a connection",
        };
        let (mut all, mut all_expected) = (0, 0.0);
        for start in sample.starts(width) {
            let window = |kept: &SampledDatagram| {
                let group = if pairs == Pairs::All { 0 } else { kept.connection };
                let number = |n, byte: &u8| n << 8 | u64::from(*byte);
                kept.window(start, width).map(|bytes| (group, bytes.iter().fold(0, number)))
            };
            let (equal, expected) =
                equal_pairs(sample.kept.iter().filter_map(window).collect(), width);
            if expected > 0.0 {
                let figure = Figure::Chance(poisson_at_least(equal, expected));
                figures.push(CheckFigure::new(test, start.to_string(), figure));
            }
            all += equal;
            all_expected += expected;
        }
        if all_expected > 0.0 {
            let figure = Figure::Chance(poisson_at_least(all, all_expected));
            figures.push(CheckFigure::new(test, "all offsets", figure));
        }
    }
    figures
}

/// Returns the number of equal pairs within groups, and the number expected by chance.
fn equal_pairs(mut values: Vec<(usize, u64)>, width: usize) -> (u64, f64) {
    values.sort_unstable();
    let pairs = |len: usize| len as u64 * (len as u64 - 1) / 2;
    let equal = values.chunk_by(|a, b| a == b).map(|equal| pairs(equal.len())).sum();
    let all: u64 = values.chunk_by(|a, b| a.0 == b.0).map(|group| pairs(group.len())).sum();
    (equal, all as f64 / 256_f64.powi(width as i32))
}
