//! Independent loss, without any relation to congestion.

use wraith_core::Time;

use super::{Datagram, Departures, Hop};
use crate::Rng;

/// Loses datagrams independently of each other (Bernoulli), as radio noise does.
#[derive(Clone, Debug)]
pub struct Loss(f64);

impl Loss {
    /// Loses each datagram with this probability, in percent.
    pub fn percent(percent: f64) -> Self {
        Self(percent / 100.0)
    }
}

impl Hop for Loss {
    fn pass(&mut self, now: Time, datagram: Datagram, rng: &mut Rng, out: &mut Departures) {
        if !rng.chance(self.0) {
            out.push((now, datagram));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::run;
    use super::*;
    use crate::hops;

    #[test]
    fn the_share_lost_is_the_one_asked_for() {
        let left = |percent| run(hops![Loss::percent(percent)], 20_000, 4, Duration::ZERO).len();
        assert!((18_800..19_200).contains(&left(5.0)));
        assert_eq!((left(0.0), left(100.0)), (20_000, 0));
    }
}
