//! Duplicates: they must change nothing, whether a network or an attacker makes them.

use std::time::Duration;

use wraith_core::Time;

use super::{Datagram, Departures, Hop};
use crate::Rng;

/// Delivers some datagrams twice; with [`Duplicate::every`], an attacker that replays everything it
/// saw.
#[derive(Clone, Debug)]
pub struct Duplicate {
    chance: f64,
    after: Duration,
}

impl Duplicate {
    /// Delivers `percent` of the datagrams again, up to `after` later.
    pub fn percent(percent: f64, after: Duration) -> Self {
        Self { chance: percent / 100.0, after }
    }

    /// Delivers every datagram again, up to `after` later.
    pub fn every(after: Duration) -> Self {
        Self { chance: 1.0, after }
    }
}

impl Hop for Duplicate {
    fn pass(&mut self, now: Time, datagram: Datagram, rng: &mut Rng, out: &mut Departures) {
        if rng.chance(self.chance) {
            let copy = (now + rng.up_to(self.after), datagram.clone());
            out.push((now, datagram));
            out.push(copy);
        } else {
            out.push((now, datagram));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::run;
    use super::*;
    use crate::hops;

    #[test]
    fn copies_come_in_addition_to_the_original() {
        let out = run(hops![Duplicate::every(Duration::from_millis(1))], 100, 4, Duration::ZERO);
        assert_eq!(out.len(), 200);
    }
}
