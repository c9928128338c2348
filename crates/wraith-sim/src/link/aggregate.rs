//! Batching: datagrams wait for the next tick and leave together, as ACKs over Wi-Fi do.

use std::time::Duration;

use wraith_core::Time;

use super::{Datagram, Departures, Hop};
use crate::Rng;

/// Delivers in batches, at multiples of an interval: Wi-Fi aggregation, interrupt coalescing, a
/// busy receiver.
#[derive(Clone, Debug)]
pub struct Aggregate(Duration);

impl Aggregate {
    /// Delivers every `interval`.
    pub const fn every(interval: Duration) -> Self {
        Self(interval)
    }
}

impl Hop for Aggregate {
    fn pass(&mut self, now: Time, datagram: Datagram, _: &mut Rng, out: &mut Departures) {
        let interval = u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX).max(1);
        let at = now.as_nanos().div_ceil(interval).saturating_mul(interval);
        out.push((Time::from_nanos(at), datagram));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{micros, run};
    use super::*;
    use crate::hops;

    #[test]
    fn arrivals_between_two_ticks_leave_together() {
        let hop = Aggregate::every(Duration::from_micros(10));
        let out = run(hops![hop], 4, 4, Duration::from_micros(4));
        let times: Vec<_> = out.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [micros(0), micros(10), micros(10), micros(20)]);
    }
}
