//! Direct paths that are too narrow for a handshake, as far as the kernel knows their MTU: from the
//! interface, or from an ICMP message of a router.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use rustix::net::sockopt::ip_mtu;

/// Least IPv4 MTU at which a direct connection is certain: the longest datagram of a short H1 (SPEC
/// §3.4) and the headers. IPv6 always has 1280 bytes.
const IPV4_MTU_MIN: u32 = 720 + 20 + 8;

/// A path that is too narrow for a direct connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NarrowPath {
    to: SocketAddr,
    mtu: u32,
}

impl NarrowPath {
    /// Returns the first of these addresses with a path that is too narrow.
    pub fn find(addresses: &[SocketAddr]) -> Option<Self> {
        addresses.iter().find_map(|&to| {
            let mtu = path_mtu(to)?;
            (mtu < IPV4_MTU_MIN).then_some(Self { to, mtu })
        })
    }
}

impl fmt::Display for NarrowPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { to, mtu } = self;
        write!(
            f,
            "the path to {to} carries IP packets of up to {mtu} bytes, and a direct connection needs {IPV4_MTU_MIN}"
        )
    }
}

/// Returns the MTU of the path to an IPv4 address. Sends nothing.
fn path_mtu(to: SocketAddr) -> Option<u32> {
    if !to.is_ipv4() {
        return None;
    }
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(to).ok()?;
    ip_mtu(&socket).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_wide_and_a_narrow_path_is_named_with_its_mtu() {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        assert!(path_mtu(loopback).is_some_and(|mtu| mtu >= 1280));
        assert_eq!(NarrowPath::find(&[loopback]), None);
        let text = NarrowPath { to: loopback, mtu: 576 }.to_string();
        assert!(text.contains("127.0.0.1:9") && text.contains("576"), "{text}");
    }
}
