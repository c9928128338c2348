//! The unit of per-source limits: the addresses that one stranger can use at no cost.
//!
//! A stranger can use all ports of its address, and all 2^64 addresses of the smallest IPv6 network
//! that is assigned. Therefore one source is an IPv4 address or an IPv6 /64. Link-local addresses
//! of all neighbours share one /64, so each link-local address is a source of its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;

use crate::PathAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    V4(Ipv4Addr),
    /// The first 64 bits of an IPv6 address.
    V6(u64),
    LinkLocal(Ipv6Addr),
    Via(NonZeroU32),
}

impl Source {
    pub(crate) fn of(address: PathAddr) -> Self {
        match address {
            PathAddr::Ip(address) => match address.ip().to_canonical() {
                IpAddr::V4(ip) => Self::V4(ip),
                IpAddr::V6(ip) if ip.is_unicast_link_local() => Self::LinkLocal(ip),
                IpAddr::V6(ip) => Self::V6((ip.to_bits() >> 64) as u64),
            },
            PathAddr::Via(number) => Self::Via(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn ip(address: &str) -> Source {
        Source::of(address.parse::<SocketAddr>().expect("an address and port").into())
    }

    #[test]
    fn the_ports_of_an_ipv4_address_are_one_source_however_it_is_written() {
        assert_eq!(ip("192.0.2.1:1"), ip("192.0.2.1:65535"));
        assert_eq!(ip("192.0.2.1:1"), ip("[::ffff:192.0.2.1]:1"));
        assert_ne!(ip("192.0.2.1:1"), ip("192.0.2.2:1"));
    }

    #[test]
    fn the_addresses_of_a_64_are_one_source() {
        assert_eq!(ip("[2001:db8:1:2::3]:1"), ip("[2001:db8:1:2:ffff:ffff:ffff:ffff]:9"));
        assert_ne!(ip("[2001:db8:1:2::3]:1"), ip("[2001:db8:1:3::3]:1"));
    }

    #[test]
    fn neighbours_on_a_link_are_sources_of_their_own() {
        assert_eq!(ip("[fe80::1%2]:1"), ip("[fe80::1%2]:9"));
        assert_ne!(ip("[fe80::1%2]:1"), ip("[fe80::2%2]:1"));
    }

    #[test]
    fn a_number_is_a_source_of_its_own() {
        let via = |number| Source::of(PathAddr::Via(NonZeroU32::new(number).expect("not zero")));
        assert_eq!(via(1), via(1));
        assert_ne!(via(1), via(2));
    }
}
