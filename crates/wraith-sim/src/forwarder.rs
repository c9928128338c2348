//! Somebody who sees what two endpoints send and is faster than the path between them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use wraith_core::Time;

/// Where it sends from and receives.
pub(crate) const ADDRESS: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 88)), 888);
/// From an endpoint to it and on to the other.
pub(crate) const DELAY: Duration = Duration::from_micros(50);

/// Copies every datagram, so that the copy arrives first, from its own address. It changes nothing and keeps nothing back,
/// but for a while it can be the road that is taken.
#[derive(Clone, Copy, Debug)]
pub struct Forwarder {
    /// When it is gone, after the start.
    pub until: Duration,
    /// It passes on what the endpoints send to itself, too, so that both can believe the other has moved there.
    pub relays: bool,
    /// What it cannot carry is left to the path: UDP payloads beyond this.
    pub payload_max: usize,
}

impl Forwarder {
    /// Whether a datagram of `bytes` bytes to `to` is passed on.
    pub(crate) fn takes(&self, now: Time, to: SocketAddr, bytes: usize) -> bool {
        let carried = bytes <= self.payload_max && (self.relays || to != ADDRESS);
        carried && now < Time::ZERO + self.until
    }
}
