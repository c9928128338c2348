//! Chosen losses, for tests in which a certain datagram must be lost.

use wraith_core::Time;

use super::{Datagram, Departures, Hop};
use crate::Rng;

/// Drops chosen datagrams, numbered from 0.
#[derive(Clone, Debug)]
pub struct DropNth {
    numbers: Vec<u64>,
    seen: u64,
}

impl DropNth {
    /// Drops the datagrams with these numbers.
    pub fn these(numbers: impl Into<Vec<u64>>) -> Self {
        Self { numbers: numbers.into(), seen: 0 }
    }

    /// Drops the first `count`.
    pub fn first(count: u64) -> Self {
        Self::these((0..count).collect::<Vec<_>>())
    }
}

impl Hop for DropNth {
    fn pass(&mut self, now: Time, datagram: Datagram, _: &mut Rng, out: &mut Departures) {
        if !self.numbers.contains(&self.seen) {
            out.push((now, datagram));
        }
        self.seen += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{number, run};
    use super::*;
    use crate::hops;

    #[test]
    fn exactly_the_chosen_ones_are_missing() {
        let out = run(hops![DropNth::these([1, 3])], 5, 4, Duration::ZERO);
        assert_eq!(out.iter().map(|(_, d)| number(d)).collect::<Vec<_>>(), [0, 2, 4]);
    }
}
