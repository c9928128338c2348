//! Where the controller of a path comes from.

use std::fmt;
use std::time::Duration;

use super::controller::Controller;
use crate::Time;

/// Makes the controller of each path of a connection.
///
/// One factory serves all connections of an endpoint: what flows share, such as a common budget, belongs into it.
pub trait ControllerFactory: fmt::Debug + Send + Sync {
    /// What it is called in logs and statistics, in lower case: `bbr`.
    fn name(&self) -> &'static str;

    /// A fresh controller for the path that `start` describes.
    fn build(&self, start: &Start) -> Box<dyn Controller>;
}

/// What is known of a path when its controller is made.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Start {
    /// The path is used from now on.
    pub now: Time,
    /// UDP payload bytes of a full datagram.
    pub mtu: u16,
    /// Seed of the controller's random numbers, so that a simulation can be repeated.
    pub seed: u64,
    /// The round trip to assume before the first sample.
    pub initial_rtt: Duration,
}

impl Start {
    /// A path of full datagrams of `mtu` bytes, with seed 0 and the round trip that RFC 9002 §6.2.2 assumes.
    pub fn new(now: Time, mtu: u16) -> Self {
        Self { now, mtu, seed: 0, initial_rtt: Duration::from_millis(333) }
    }
}
