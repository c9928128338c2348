//! Reordering: to a sender that detects losses by counting packets, it looks like a loss.

use std::time::Duration;

use wraith_core::Time;

use super::{Datagram, Departures, Hop};
use crate::Rng;

/// Delays some datagrams, so that later ones overtake them.
#[derive(Clone, Debug)]
pub struct Reorder {
    chance: f64,
    by: Duration,
}

impl Reorder {
    /// Delays `percent` of the datagrams by up to `by`.
    pub fn percent(percent: f64, by: Duration) -> Self {
        Self { chance: percent / 100.0, by }
    }
}

impl Hop for Reorder {
    fn pass(&mut self, now: Time, datagram: Datagram, rng: &mut Rng, out: &mut Departures) {
        let held = if rng.chance(self.chance) { rng.up_to(self.by) } else { Duration::ZERO };
        out.push((now + held, datagram));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{number, run};
    use super::*;
    use crate::hops;

    #[test]
    fn some_are_overtaken_and_none_is_lost() {
        let hop = Reorder::percent(10.0, Duration::from_millis(1));
        let out = run(hops![hop], 1000, 4, Duration::from_micros(10));
        let overtaken = out.windows(2).filter(|w| number(&w[1].1) < number(&w[0].1)).count();
        assert!((50..150).contains(&overtaken), "overtaken {overtaken}");
        assert_eq!(out.len(), 1000);
    }
}
