//! Bursty loss: it hits handshakes, retransmissions and loss detection harder than its average
//! suggests.

use std::time::Duration;

use wraith_core::Time;

use super::{Datagram, Departures, Hop};
use crate::Rng;

/// Idle time after which a channel is good again: fading ends even without datagrams.
const FADE_MAX: Duration = Duration::from_millis(100);

/// Loses datagrams in bursts: the Gilbert–Elliott model of a channel that is good or bad, and changes its state with
/// every datagram (E. N. Gilbert, "Capacity of a burst-noise channel", 1960; E. O. Elliott, 1963).
#[derive(Clone, Debug)]
pub struct BurstLoss {
    bad: bool,
    last: Time,
    good_to_bad: f64,
    bad_to_good: f64,
    loss_when_good: f64,
    loss_when_bad: f64,
}

impl BurstLoss {
    /// Sets the four parameters of the model, as probabilities per datagram.
    pub fn new(
        good_to_bad: f64,
        bad_to_good: f64,
        loss_when_good: f64,
        loss_when_bad: f64,
    ) -> Self {
        Self {
            bad: false,
            last: Time::ZERO,
            good_to_bad,
            bad_to_good,
            loss_when_good,
            loss_when_bad,
        }
    }

    /// Loses `percent` of all datagrams (below 100), in bursts of `datagrams` on average.
    pub fn percent(percent: f64, datagrams: f64) -> Self {
        let share = percent / 100.0;
        let bad_to_good = 1.0 / datagrams;
        Self::new(bad_to_good * share / (1.0 - share), bad_to_good, 0.0, 1.0)
    }
}

impl Hop for BurstLoss {
    fn pass(&mut self, now: Time, datagram: Datagram, rng: &mut Rng, out: &mut Departures) {
        self.bad &= now.since(self.last) < FADE_MAX;
        self.last = now;
        let change = if self.bad { self.bad_to_good } else { self.good_to_bad };
        self.bad ^= rng.chance(change);
        let loss = if self.bad { self.loss_when_bad } else { self.loss_when_good };
        if !rng.chance(loss) {
            out.push((now, datagram));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{number, run};
    use super::*;
    use crate::hops;

    #[test]
    fn the_share_lost_and_the_length_of_bursts_are_the_ones_asked_for() {
        let out = run(hops![BurstLoss::percent(5.0, 8.0)], 100_000, 4, Duration::ZERO);
        let lost = 100_000 - out.len();
        assert!((4_000..6_000).contains(&lost), "lost {lost}");
        let bursts = out.windows(2).filter(|w| number(&w[1].1) > number(&w[0].1) + 1).count();
        let mean = lost as f64 / bursts as f64;
        assert!((6.5..9.5).contains(&mean), "mean burst {mean}");
    }
}
