//! Validity of addresses that a peer or a third party names as targets.

use std::net::{IpAddr, SocketAddr};

/// Returns true if `address` can belong to a single host: not multicast, broadcast or unspecified,
/// and with a port.
#[must_use]
pub fn is_target(address: SocketAddr) -> bool {
    let ip = match address.ip().to_canonical() {
        // 0.0.0.0/8 is "this host on this network". 240.0.0.0/4 is reserved and contains the
        // broadcast address.
        IpAddr::V4(ip) => !ip.is_multicast() && ip.octets()[0] != 0 && ip.octets()[0] < 240,
        IpAddr::V6(ip) => !ip.is_multicast() && !ip.is_unspecified(),
    };
    ip && address.port() != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multicast_broadcast_unspecified_and_port_zero_are_no_targets() {
        for no in [
            "224.0.0.251:5353",
            "239.1.1.1:1",
            "255.255.255.255:9",
            "0.0.0.0:1",
            "0.1.2.3:1",
            "240.0.0.1:1",
            "192.0.2.1:0",
            "[::]:1",
            "[ff02::1]:1",
            "[::ffff:224.0.0.1]:1",
            "[::ffff:0.0.0.0]:1",
            "[2001:db8::1]:0",
        ] {
            assert!(!is_target(no.parse().unwrap()), "{no}");
        }
        for yes in ["192.0.2.1:1", "10.0.0.1:65535", "[2001:db8::1]:1", "[fe80::1%2]:9"] {
            assert!(is_target(yes.parse().unwrap()), "{yes}");
        }
    }
}
