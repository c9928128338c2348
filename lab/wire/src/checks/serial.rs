//! Whether bits and bytes depend on their neighbours in the same datagram. The figures:
//!
//! - the number of runs of equal bits (NIST SP 800-22 §2.3),
//! - the share of ones (§2.1),
//! - the correlation of successive bytes (Knuth, TAOCP 3.3.2 K).

use super::CheckFigure;
use super::bit_bias::z;
use crate::distributions::normal;
use crate::finding::Figure;

/// The variance of 2x - 255 for a uniform byte x.
const VARIANCE: f64 = (65536.0 - 1.0) / 3.0;

/// Sums over all datagrams.
#[derive(Clone, Debug, Default)]
pub struct Serial {
    bits: u64,
    ones: u64,
    /// Pairs of adjacent bits, and the pairs that differ.
    neighbours: u64,
    changes: u64,
    /// Pairs of adjacent bytes, and the sum of their products around the mean.
    pairs: u64,
    products: i64,
}

impl Serial {
    /// Adds a datagram.
    pub fn add(&mut self, bytes: &[u8]) {
        let Some(&first) = bytes.first() else { return };
        let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
        let mut changes = ((first ^ first >> 1) & 0x7f).count_ones();
        let mut products = 0;
        for pair in bytes.windows(2) {
            let word = u16::from_be_bytes([pair[0], pair[1]]);
            changes += ((word ^ word >> 1) & 0xff).count_ones();
            products += (2 * i64::from(pair[0]) - 255) * (2 * i64::from(pair[1]) - 255);
        }
        self.bits += 8 * bytes.len() as u64;
        self.ones += u64::from(ones);
        self.neighbours += 8 * bytes.len() as u64 - 1;
        self.changes += u64::from(changes);
        self.pairs += bytes.len() as u64 - 1;
        self.products += products;
    }

    /// The figures.
    pub fn figures(&self) -> Vec<CheckFigure> {
        let correlation = self.products as f64 / (VARIANCE * (self.pairs as f64).sqrt());
        [
            ("ones and zeros", z(self.ones, self.bits)),
            ("runs of bits", z(self.changes, self.neighbours)),
            ("successive bytes", correlation),
        ]
        .map(|(test, z)| CheckFigure::new(test, "all bytes", Figure::Chance(normal(z))))
        .to_vec()
    }
}
