//! The address of a peer as the core knows it: small, `Copy`, and compared for every datagram.
//!
//! The core needs three things of an address: whether two are equal, how to say it to whoever moves datagrams, and, if it
//! is one of the Internet, what to tell the peer about it. Anything richer (the name of a relay, a key, a URL) is kept by
//! whoever moves the datagrams, under a number.
//!
//! Invariant: everything that is bounded or proven per address treats a `Via` as one: like one IP address and port in
//! amplification and path validation, like all of an IPv4 address or an IPv6 /64 in half-open handshakes.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;

/// Where datagrams to a peer go, and where they came from.
///
/// As large as [`SocketAddr`], 32 bytes.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug)]
pub enum PathAddr {
    /// UDP to an IP address and port.
    Ip(SocketAddr),
    /// Something else, known under this number to whoever moves datagrams there. Two numbers are two addresses.
    Via(NonZeroU32),
}

impl PathAddr {
    /// The IP address and port, if it is one.
    pub const fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            Self::Via(_) => None,
        }
    }
}

impl From<SocketAddr> for PathAddr {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

impl From<NonZeroU32> for PathAddr {
    fn from(number: NonZeroU32) -> Self {
        Self::Via(number)
    }
}

impl fmt::Display for PathAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Via(number) => write!(f, "via {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_as_small_as_a_socket_address() {
        assert_eq!(size_of::<PathAddr>(), size_of::<SocketAddr>());
        assert_eq!(size_of::<PathAddr>(), 32);
    }

    #[test]
    fn it_prints_what_it_names() {
        let ip = SocketAddr::from(([192, 0, 2, 1], 4711));
        assert_eq!(PathAddr::from(ip).to_string(), "192.0.2.1:4711");
        assert_eq!(PathAddr::from(ip).ip(), Some(ip));
        let via = PathAddr::Via(NonZeroU32::new(7).unwrap());
        assert_eq!(via.to_string(), "via 7");
        assert_eq!(via.ip(), None);
    }
}
