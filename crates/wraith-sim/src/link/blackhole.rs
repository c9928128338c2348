//! An outage: nothing passes for a while.

use std::time::Duration;

use wraith_core::Time;

use super::{Datagram, Departures, Hop};
use crate::Rng;

/// Drops everything for a while: a tunnel, an unplugged cable, a restarting router.
#[derive(Clone, Debug)]
pub struct Blackhole {
    from: Time,
    until: Time,
}

impl Blackhole {
    /// Drops from `after` the start on, for `lasting`.
    pub fn new(after: Duration, lasting: Duration) -> Self {
        let from = Time::ZERO + after;
        Self { from, until: from + lasting }
    }

    /// Drops from `after` the start on, for ever.
    pub fn forever(after: Duration) -> Self {
        Self { from: Time::ZERO + after, until: Time::MAX }
    }
}

impl Hop for Blackhole {
    fn pass(&mut self, now: Time, datagram: Datagram, _: &mut Rng, out: &mut Departures) {
        if now < self.from || now >= self.until {
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
    fn a_blackhole_drops_only_datagrams_in_its_window() {
        let hop = Blackhole::new(Duration::from_millis(2), Duration::from_millis(3));
        let out = run(hops![hop], 8, 4, Duration::from_millis(1));
        assert_eq!(out.iter().map(|(_, d)| number(d)).collect::<Vec<_>>(), [0, 1, 5, 6, 7]);
    }
}
