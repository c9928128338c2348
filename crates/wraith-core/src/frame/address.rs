//! An IP address and port in 19 bytes: `family(1) ‖ ip(16, IPv4 in the first four) ‖ port(2)` (SPEC §3.3).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Encoded length of an address.
pub(crate) const ADDRESS_BYTES: usize = 19;

/// Encodes `address` for the wire.
pub(crate) fn encode(address: SocketAddr) -> [u8; ADDRESS_BYTES] {
    let mut bytes = [0; ADDRESS_BYTES];
    match address.ip() {
        IpAddr::V4(ip) => {
            bytes[0] = 4;
            bytes[1..5].copy_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            bytes[0] = 6;
            bytes[1..17].copy_from_slice(&ip.octets());
        }
    }
    bytes[17..].copy_from_slice(&address.port().to_be_bytes());
    bytes
}

/// Decodes an address. Returns `None` for an unknown address family.
pub(crate) fn decode(bytes: &[u8; ADDRESS_BYTES]) -> Option<SocketAddr> {
    let (family, rest) = bytes.split_first()?;
    let (ip, port) = rest.split_first_chunk::<16>()?;
    let ip = match family {
        4 => IpAddr::V4(Ipv4Addr::new(ip[0], ip[1], ip[2], ip[3])),
        6 => IpAddr::V6(Ipv6Addr::from(*ip)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes(*port.first_chunk()?)))
}
