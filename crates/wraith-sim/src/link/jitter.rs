//! Jitter: a delay that varies from datagram to datagram, as a test of RTT estimators and
//! reordering windows.

use std::time::Duration;

use wraith_core::Time;

use super::{Datagram, Departures, Hop};
use crate::Rng;

/// Adds a uniform random delay up to a maximum. Keeps the order, as the queue of a busy router
/// does, except with [`Jitter::reordering`].
#[derive(Clone, Debug)]
pub struct Jitter {
    max: Duration,
    in_order: bool,
    last: Time,
}

impl Jitter {
    /// Adds up to `max`.
    pub const fn new(max: Duration) -> Self {
        Self { max, in_order: true, last: Time::ZERO }
    }
    /// Adds up to `millis` milliseconds.
    pub const fn ms(millis: u64) -> Self {
        Self::new(Duration::from_millis(millis))
    }
    /// Adds up to `micros` microseconds.
    pub const fn micros(micros: u64) -> Self {
        Self::new(Duration::from_micros(micros))
    }
    /// Allows datagrams to overtake each other.
    #[must_use]
    pub const fn reordering(mut self) -> Self {
        self.in_order = false;
        self
    }
}

impl Hop for Jitter {
    fn pass(&mut self, now: Time, datagram: Datagram, rng: &mut Rng, out: &mut Departures) {
        let mut at = now + rng.up_to(self.max);
        if self.in_order {
            at = at.max(self.last);
            self.last = at;
        }
        out.push((at, datagram));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{number, run};
    use super::*;
    use crate::hops;

    #[test]
    fn order_is_kept_unless_reordering_is_asked_for() {
        let every = Duration::from_micros(10);
        let numbers = |hop: Jitter| -> Vec<u32> {
            run(hops![hop], 300, 10, every).iter().map(|(_, d)| number(d)).collect()
        };
        assert!(numbers(Jitter::ms(1)).is_sorted());
        let reordered = numbers(Jitter::ms(1).reordering());
        assert!(!reordered.is_sorted());
        assert_eq!(reordered.len(), 300);
    }

    #[test]
    fn nothing_is_held_longer_than_the_maximum() {
        let out = run(hops![Jitter::micros(50).reordering()], 500, 10, Duration::from_micros(1));
        for (at, datagram) in out {
            let sent = Time::from_nanos(u64::from(number(&datagram)) * 1000);
            assert!(at >= sent && at.since(sent) <= Duration::from_micros(50));
        }
    }
}
