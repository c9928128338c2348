//! Propagation delay: the part of the round trip that does not depend on queues.

use std::time::Duration;

use wraith_core::Time;

use super::{Datagram, Departures, Hop};
use crate::Rng;

/// Holds every datagram for the same time.
#[derive(Clone, Debug)]
pub struct Delay(Duration);

impl Delay {
    /// A delay of `delay` one way.
    pub const fn new(delay: Duration) -> Self {
        Self(delay)
    }
    /// A delay in milliseconds, one way.
    pub const fn ms(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }
    /// A delay in microseconds, one way.
    pub const fn micros(micros: u64) -> Self {
        Self(Duration::from_micros(micros))
    }
}

impl Hop for Delay {
    fn pass(&mut self, now: Time, datagram: Datagram, _: &mut Rng, out: &mut Departures) {
        out.push((now + self.0, datagram));
    }
}
