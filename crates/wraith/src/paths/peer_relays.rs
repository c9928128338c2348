//! Policy for relays that a peer names, in a ticket, a record or a call.
//!
//! Invariant: without the user's consent, a peer cannot make this machine connect to a host of a
//! private network or of the machine itself. A name is resolved once for each connection, and only
//! checked addresses are used.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use thiserror::Error;
use tokio::net::lookup_host;
use wraith_relay::{Associating, Connect, ConnectRelay, Connecting, Direct};

use crate::node_core::Proxies;

/// Reason why a relay that a peer names is not used. A retry gets the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum NotAllowed {
    #[error(
        "the other side chose it, and with --relay-only this machine connects only to its own relays; name it with --relay, or allow it with --peer-relays public"
    )]
    NotOwn,
    #[error(
        "the other side chose it, and it is on a private network or on this machine; name it with --relay, or allow it with --peer-relays any"
    )]
    NotPublic,
}

impl NotAllowed {
    /// Reports whether `error` is a refusal of this policy.
    pub fn is_in(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

/// Connects to public addresses only.
#[derive(Clone)]
pub(super) struct PublicOnly(pub Arc<Proxies>);

impl fmt::Debug for PublicOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PublicOnly").field(&self.0).finish()
    }
}

impl Connect for PublicOnly {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let refused = || io::Error::other(NotAllowed::NotPublic);
            if self.0.for_host(host).is_some() {
                // The proxy resolves names, in its own network.
                return match host.parse::<IpAddr>() {
                    Ok(ip) if !is_public(ip) => Err(refused()),
                    _ => self.0.connect(host, port).await,
                };
            }
            let mut last = refused();
            for address in lookup_host((host, port)).await?.filter(|at| is_public(at.ip())) {
                match Direct.connect(&address.ip().to_string(), port).await {
                    Ok(connected) => return Ok(connected),
                    Err(error) => last = error,
                }
            }
            Err(last)
        })
    }
}

impl ConnectRelay for PublicOnly {
    fn associate<'a>(&'a self, host: &'a str, port: u16) -> Option<Associating<'a>> {
        self.0.associate(host, port)
    }
}

/// Reports whether an address is one of the internet (RFC 6890), not of a local network or of this
/// machine.
fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            !(ip.is_private()
                || ip.is_loopback()
                || ip.is_link_local()
                || ip.is_documentation()
                || (a == 100 && (64..128).contains(&b))
                || (a == 192 && b == 0 && c == 0)
                || (a == 198 && (18..20).contains(&b))
                || a == 0
                || a >= 224)
        }
        IpAddr::V6(ip) => match ip.segments() {
            // Addresses that contain an IPv4 address: NAT64 (RFC 6052) and 6to4 (RFC 3056).
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
                is_public(IpAddr::V4((u32::from(high) << 16 | u32::from(low)).into()))
            }
            [0x2001, second, ..] => second >= 0x200 && second != 0xdb8,
            [first, ..] => first & 0xe000 == 0x2000,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for ip in
            ["9.9.9.9", "2620:fe::fe", "::ffff:9.9.9.9", "64:ff9b::909:909", "2002:909:909::1"]
        {
            assert!(is_public(ip.parse().unwrap()), "{ip}");
        }
        for ip in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "198.18.0.1",
            "192.0.0.8",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "2001:db8::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "2001::1",
        ] {
            assert!(!is_public(ip.parse().unwrap()), "{ip}");
        }
    }

    #[tokio::test]
    async fn a_private_host_is_not_contacted_under_any_name() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let direct = PublicOnly(Arc::new(Proxies::none()));
        for host in ["127.0.0.1", "localhost", "::ffff:127.0.0.1"] {
            let error = direct.connect(host, port).await.unwrap_err();
            assert!(NotAllowed::is_in(&error), "{host}: {error}");
        }
        let proxy = Proxies::one(&format!("http://127.0.0.1:{port}")).unwrap();
        let proxied = PublicOnly(Arc::new(proxy));
        let error = proxied.connect("192.168.1.1", 443).await.unwrap_err();
        assert!(NotAllowed::is_in(&error), "{error}");
        assert!(listener.accept().is_err(), "it is not contacted");
    }
}
