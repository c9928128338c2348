//! Validation of a router's grant.
//!
//! Invariant: a [`Grant`] has a global address, a nonzero port, and a lifetime between
//! [`LIFETIME_MIN`] and [`LIFETIME_MAX`].

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

/// Requested lifetime. It is long enough to survive a router that is slow to answer. It is short
/// enough that a port does not stay open for hours after the machine was switched off.
pub(crate) const LIFETIME: Duration = Duration::from_secs(20 * 60);
/// Shortest lifetime accepted. RFC 6887 §15 sets a server's minimum to two minutes. A lifetime
/// below 20 s would cost more than one datagram every ten seconds.
const LIFETIME_MIN: Duration = Duration::from_secs(20);
/// Longest lifetime accepted (RFC 6887 §15). A longer one is no reason to renew less often.
const LIFETIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A validated mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub external: SocketAddrV4,
    pub lifetime: Duration,
}

impl Grant {
    /// Validates the router's answer.
    pub fn validated(external: SocketAddrV4, lifetime: Duration) -> Result<Self, Refusal> {
        if !is_global(*external.ip()) {
            return Err(Refusal::NotGlobal(*external.ip()));
        }
        if external.port() == 0 {
            return Err(Refusal::Malformed);
        }
        if lifetime < LIFETIME_MIN {
            return Err(Refusal::TooBrief(lifetime));
        }
        Ok(Self { external, lifetime: lifetime.min(LIFETIME_MAX) })
    }
}

/// Reason for rejecting a router's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No answer arrived in time.
    #[error("no answer")]
    NoAnswer,
    /// The router cannot be reached: closed port, no route, and similar errors.
    #[error("it cannot be reached ({0})")]
    Unreachable(io::ErrorKind),
    /// The router understood the request and refused it. The number is the protocol's own code.
    #[error("it refuses (code {0})")]
    Refused(u16),
    /// The router does not support the protocol.
    #[error("it does not support this protocol")]
    Unsupported,
    /// The answer is empty, too long, or points to another host.
    #[error("its answer is malformed")]
    Malformed,
    /// The external address is not reachable from the internet.
    #[error("its own address, {0}, is not public: it is behind another NAT, or not connected")]
    NotGlobal(Ipv4Addr),
    /// The lifetime is too short to be of use.
    #[error("it grants a port for only {} s, which is too short", .0.as_secs())]
    TooBrief(Duration),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Unreachable(error.kind())
    }
}

/// Reports whether hosts on the internet could reach this address. The documentation ranges are
/// treated as global, because only a lab router has such an address.
fn is_global(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let reserved = a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b));
    !(reserved || ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_multicast())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLOBAL: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(203, 0, 113, 7), 4444);

    #[test]
    fn addresses_that_nobody_on_the_internet_reaches_are_not_believed() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "169.254.1.1",
            "172.16.0.1",
            "192.0.0.2",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            let ip: Ipv4Addr = text.parse().unwrap();
            let grant = Grant::validated(SocketAddrV4::new(ip, 4444), LIFETIME);
            assert_eq!(grant, Err(Refusal::NotGlobal(ip)), "{text}");
        }
        for text in
            ["1.1.1.1", "100.63.0.1", "100.128.0.1", "172.32.0.1", "192.0.1.1", "198.20.0.1"]
        {
            let ip: Ipv4Addr = text.parse().unwrap();
            assert!(Grant::validated(SocketAddrV4::new(ip, 4444), LIFETIME).is_ok(), "{text}");
        }
    }

    #[test]
    fn port_zero_and_lifetimes_out_of_range_are_not_believed() {
        let lifetime = |seconds| Grant::validated(GLOBAL, Duration::from_secs(seconds));
        let portless = SocketAddrV4::new(*GLOBAL.ip(), 0);
        assert_eq!(Grant::validated(portless, LIFETIME), Err(Refusal::Malformed));
        assert_eq!(lifetime(0), Err(Refusal::TooBrief(Duration::ZERO)));
        assert!(lifetime(19).is_err());
        assert_eq!(lifetime(20).unwrap().lifetime, LIFETIME_MIN);
        assert_eq!(lifetime(u64::from(u32::MAX)).unwrap().lifetime, LIFETIME_MAX);
    }
}
