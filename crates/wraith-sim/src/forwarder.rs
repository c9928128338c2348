//! An on-path attacker that forwards the datagrams of two endpoints faster than the path between
//! them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use wraith_core::Time;

/// Its own address.
pub(crate) const ADDRESS: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 88)), 888);
/// One-way delay between the two endpoints through it.
pub(crate) const DELAY: Duration = Duration::from_micros(50);

/// Sends a copy of every datagram from its own address, so that the copy arrives first. It changes
/// and withholds nothing, but for a while it can become the path.
#[derive(Clone, Copy, Debug)]
pub struct Forwarder {
    /// Time of its disappearance, after the start.
    pub until: Duration,
    /// Whether it also forwards datagrams sent to itself, so that both sides can believe that the
    /// peer has moved there.
    pub relays: bool,
    /// Largest UDP payload that it forwards; the path carries larger ones.
    pub payload_max: usize,
}

impl Forwarder {
    /// Returns whether it forwards a datagram of `bytes` bytes to `to`.
    pub(crate) fn takes(&self, now: Time, to: SocketAddr, bytes: usize) -> bool {
        let carried = bytes <= self.payload_max && (self.relays || to != ADDRESS);
        carried && now < Time::ZERO + self.until
    }
}
