//! Fixed fields of messages: big-endian numbers, byte arrays, and addresses in the protocol's
//! format `family(1) ‖ ip(16, IPv4 in the first four) ‖ port(2)` (SPEC §3.3).
//!
//! Invariant: a reader never reads past the end; a missing field is `None`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Length of an address in bytes.
pub const ADDRESS_BYTES: usize = 1 + 16 + 2;

/// Reads fields in order.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn u8(&mut self) -> Option<u8> {
        Some(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub fn address(&mut self) -> Option<SocketAddr> {
        let (family, ip, port) = (self.u8()?, self.array::<16>()?, self.u16()?);
        let ip = match family {
            4 => IpAddr::V4(Ipv4Addr::from(*ip.first_chunk::<4>()?)),
            6 => IpAddr::V6(Ipv6Addr::from(ip)),
            _ => return None,
        };
        Some((ip, port).into())
    }

    /// Returns the remaining bytes.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Returns `value` if no bytes remain.
    pub fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

/// Appends an address.
pub fn put_address(out: &mut Vec<u8>, address: SocketAddr) {
    match address.ip() {
        IpAddr::V4(ip) => {
            out.push(4);
            out.extend_from_slice(&ip.octets());
            out.extend_from_slice(&[0; 12]);
        }
        IpAddr::V6(ip) => {
            out.push(6);
            out.extend_from_slice(&ip.octets());
        }
    }
    out.extend_from_slice(&address.port().to_be_bytes());
}
