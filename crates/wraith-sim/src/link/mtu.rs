//! The path MTU: larger datagrams are lost without a message, so only lost probes show the MTU.

use std::time::Duration;

use wraith_core::Time;

use super::{Datagram, Departures, Hop};
use crate::Rng;

/// Silently drops datagrams above the path MTU: the ICMP message never arrives.
#[derive(Clone, Debug)]
pub struct Mtu {
    payload_max: usize,
    later: Option<(Time, usize)>,
}

impl Mtu {
    /// Carries UDP payloads up to `bytes`.
    pub const fn payload(bytes: usize) -> Self {
        Self { payload_max: bytes, later: None }
    }

    /// Changes the limit to `bytes` at `after` the start: the route has changed.
    #[must_use]
    pub fn then(mut self, after: Duration, bytes: usize) -> Self {
        self.later = Some((Time::ZERO + after, bytes));
        self
    }
}

impl Hop for Mtu {
    fn pass(&mut self, now: Time, datagram: Datagram, _: &mut Rng, out: &mut Departures) {
        if let Some((_, bytes)) = self.later.take_if(|(from, _)| *from <= now) {
            self.payload_max = bytes;
        }
        if datagram.bytes.len() <= self.payload_max {
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
    fn datagrams_up_to_the_limit_pass_and_larger_ones_vanish() {
        assert_eq!(run(hops![Mtu::payload(1472)], 3, 1472, Duration::ZERO).len(), 3);
        assert_eq!(run(hops![Mtu::payload(1472)], 3, 1473, Duration::ZERO).len(), 0);
    }

    #[test]
    fn the_limit_can_change_on_the_way() {
        let hop = Mtu::payload(1472).then(Duration::from_millis(5), 1300);
        let out = run(hops![hop], 10, 1400, Duration::from_millis(1));
        assert_eq!(out.iter().map(|(_, d)| number(d)).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }
}
