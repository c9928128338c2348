//! Corruption: a datagram that does not authenticate must only increment a counter.

use wraith_core::Time;

use super::{Datagram, Departures, Hop};
use crate::Rng;

/// Maximum number of flipped bits in one datagram.
const FLIPS_MAX: u64 = 8;
/// Maximum number of bytes appended to one datagram.
const APPENDED_MAX: u64 = 40;

/// Damages some datagrams: flips bits, truncates, or appends bytes, as only a hostile path does.
#[derive(Clone, Debug)]
pub struct Corrupt(f64);

impl Corrupt {
    /// Damages `percent` of the datagrams.
    pub fn percent(percent: f64) -> Self {
        Self(percent / 100.0)
    }
}

impl Hop for Corrupt {
    fn pass(&mut self, now: Time, mut datagram: Datagram, rng: &mut Rng, out: &mut Departures) {
        if rng.chance(self.0) {
            damage(&mut datagram.bytes, rng);
        }
        out.push((now, datagram));
    }
}

/// Changes `bytes` in one of three ways; the result always differs.
pub(crate) fn damage(bytes: &mut Vec<u8>, rng: &mut Rng) {
    let len = bytes.len() as u64;
    match rng.below(8) {
        0 if len > 0 => bytes.truncate(rng.below(len) as usize),
        1 => {
            for _ in 0..rng.between(1, APPENDED_MAX) {
                bytes.push(rng.bits() as u8);
            }
        }
        // Flips distinct bits, so that none is flipped back.
        _ if len > 0 => {
            let first = rng.below(8 * len);
            for i in first..(first + rng.between(1, FLIPS_MAX)).min(8 * len) {
                bytes[(i / 8) as usize] ^= 1 << (i % 8);
            }
        }
        _ => bytes.push(0),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{datagram, run};
    use super::*;
    use crate::hops;

    #[test]
    fn a_damaged_datagram_is_never_the_original() {
        let mut rng = Rng::new(1, 1);
        for _ in 0..2000 {
            let mut bytes = datagram(1, 60).bytes;
            damage(&mut bytes, &mut rng);
            assert_ne!(bytes, datagram(1, 60).bytes);
        }
        damage(&mut Vec::new(), &mut rng);
    }

    #[test]
    fn the_share_damaged_is_the_one_asked_for() {
        let out = run(hops![Corrupt::percent(10.0)], 10_000, 40, Duration::ZERO);
        let whole = (0..).zip(&out).filter(|(i, (_, d))| *d == datagram(*i, 40)).count();
        assert!((8_800..9_200).contains(&whole), "whole {whole}");
    }
}
