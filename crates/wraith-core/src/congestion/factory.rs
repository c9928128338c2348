//! Creation of congestion controllers, one per path.

use std::fmt;
use std::time::Duration;

use super::controller::Controller;
use crate::Time;

/// Creates the controller of each path of a connection.
///
/// One factory serves all connections of an endpoint, so state that flows share, such as a common
/// budget, belongs in the factory.
pub trait ControllerFactory: fmt::Debug + Send + Sync {
    /// Returns its name in logs and statistics, in lower case: `bbr`.
    fn name(&self) -> &'static str;

    /// Creates a controller for the path that `start` describes.
    fn build(&self, start: &Start) -> Box<dyn Controller>;
}

/// Initial parameters of a path.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Start {
    /// Start time of the path.
    pub now: Time,
    /// UDP payload size of a full datagram, in bytes.
    pub mtu: u16,
    /// Seed of the controller's random numbers, so that a simulation can be repeated.
    pub seed: u64,
    /// Round trip assumed before the first sample.
    pub initial_rtt: Duration,
}

impl Start {
    /// Creates parameters for full datagrams of `mtu` bytes, with seed 0 and the initial round trip
    /// of RFC 9002 §6.2.2.
    pub fn new(now: Time, mtu: u16) -> Self {
        Self { now, mtu, seed: 0, initial_rtt: Duration::from_millis(333) }
    }
}
