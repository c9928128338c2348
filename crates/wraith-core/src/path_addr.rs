//! The address of a peer: small, `Copy`, and compared for every datagram.
//!
//! The core compares addresses, passes them to the caller, and reports Internet addresses to the
//! peer. The number in a [`PathAddr::Via`] stands for a path of the caller, such as a relay with a
//! name, key or URL.
//!
//! Invariant: every limit and proof per address treats a `Via` as one address. For amplification
//! and path validation, a `Via` is treated as one IP address and port. For half-open handshakes, it
//! is treated as a whole IPv4 address or IPv6 /64.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;

use wraith_crypto::from_variants;

/// The source or destination address of datagrams.
///
/// As large as [`SocketAddr`], 32 bytes.
#[derive(Copy, Clone, Eq, PartialEq, Hash, Debug)]
pub enum PathAddr {
    /// UDP to an IP address and port.
    Ip(SocketAddr),
    /// Any other transport, under a number that the caller assigns. Two numbers are two addresses.
    Via(NonZeroU32),
}

impl PathAddr {
    /// Returns the IP address and port of an `Ip`.
    pub const fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            Self::Via(_) => None,
        }
    }
}

from_variants!(PathAddr { SocketAddr => Ip, NonZeroU32 => Via });

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
    fn display_shows_the_address_or_number() {
        let ip = SocketAddr::from(([192, 0, 2, 1], 4711));
        assert_eq!(PathAddr::from(ip).to_string(), "192.0.2.1:4711");
        assert_eq!(PathAddr::from(ip).ip(), Some(ip));
        let via = PathAddr::Via(NonZeroU32::new(7).unwrap());
        assert_eq!(via.to_string(), "via 7");
        assert_eq!(via.ip(), None);
    }
}
