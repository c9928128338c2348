//! The addresses of this machine, the most useful for a peer first.
//!
//! A ticket has room for few addresses, and machines with containers and VPNs have many networks.
//! So the first address of each network comes before the second of any:
//!
//! | order | addresses |
//! |---|---|
//! | 1 | the source addresses of packets to the internet |
//! | 2 | the first address of each network that is up, real hardware first |
//! | 3 | further addresses of these networks |
//! | 4 | addresses of networks without a link, such as a bridge without members |
//! | 5 | loopback, for a peer on the same machine |

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;

/// Addresses for documentation (RFC 5737, RFC 3849). They have the same route as the internet, and
/// no packet is sent to them.
const INTERNET: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];

/// An address of this machine.
#[derive(Clone, Debug)]
struct OwnAddress {
    ip: IpAddr,
    interface: String,
    /// It is the source address of packets to the internet.
    is_default: bool,
    /// Its network has a carrier.
    is_up: bool,
    /// Its network is real hardware.
    is_hardware: bool,
}

/// Returns all addresses at which another host may reach this machine, and loopback.
pub(super) fn own_addresses() -> Vec<IpAddr> {
    let defaults = INTERNET.map(source_towards);
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let all = interfaces.into_iter().map(|address| OwnAddress {
        ip: address.ip(),
        is_default: defaults.contains(&Some(address.ip())),
        is_up: address.is_oper_up(),
        is_hardware: Path::new("/sys/class/net").join(&address.name).join("device").exists(),
        interface: address.name,
    });
    ordered(all.collect())
}

/// Returns the source address that the system selects for packets to `to`.
fn source_towards(to: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match to {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(SocketAddr::new(to, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Sorts by usefulness and drops addresses that no other host can use.
fn ordered(mut all: Vec<OwnAddress>) -> Vec<IpAddr> {
    all.retain(|OwnAddress { ip, .. }| {
        !is_link_local(ip) && !ip.is_unspecified() && !ip.is_multicast()
    });
    all.sort_by_key(|own| (own.ip.is_ipv6(), own.ip));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut keyed: Vec<_> = all
        .into_iter()
        .map(|own| {
            let count = counts.entry(own.interface).or_default();
            *count += 1;
            let loopback = own.ip.is_loopback();
            let key = (loopback, !own.is_default, !own.is_up, *count, !own.is_hardware);
            (key, own.ip)
        })
        .collect();
    // Stable: addresses with equal keys stay sorted, IPv4 first.
    keyed.sort_by_key(|(key, _)| *key);
    let mut ips: Vec<_> = keyed.into_iter().map(|(_, ip)| ip).collect();
    ips.dedup();
    ips
}

/// A link-local address is useless without its interface, which a ticket cannot name.
fn is_link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(interface: &str, ip: &str) -> OwnAddress {
        let (ip, interface) = (ip.parse().unwrap(), interface.to_owned());
        OwnAddress { ip, interface, is_default: false, is_up: true, is_hardware: false }
    }

    fn ips(list: &[&str]) -> Vec<IpAddr> {
        list.iter().map(|ip| ip.parse().unwrap()).collect()
    }

    #[test]
    fn loopback_comes_last_and_link_local_not_at_all() {
        let all = ["127.0.0.1", "fe80::1", "2001:db8::1", "169.254.1.1", "10.0.0.2", "::1"];
        let all =
            all.map(|ip| own(if ["127.0.0.1", "::1"].contains(&ip) { "lo" } else { "eth0" }, ip));
        assert_eq!(ordered(all.into()), ips(&["10.0.0.2", "2001:db8::1", "127.0.0.1", "::1"]));
    }

    #[test]
    fn the_first_address_of_each_network_comes_before_the_second_of_any() {
        let mut all = vec![
            own("eth0", "192.0.2.7"),
            own("eth0", "192.0.2.8"),
            own("wg0", "10.9.0.1"),
            own("veth1", "2001:db8::1"),
            own("docker0", "10.1.0.1"),
            own("eth1", "198.51.100.1"),
            own("eth1", "2001:db8:1::1"),
        ];
        all[4].is_up = false;
        (all[0].is_hardware, all[1].is_hardware) = (true, true);
        all[5].is_default = true;
        let expected = [
            "198.51.100.1",
            "192.0.2.7",
            "10.9.0.1",
            "2001:db8::1",
            "192.0.2.8",
            "2001:db8:1::1",
            "10.1.0.1",
        ];
        assert_eq!(ordered(all), ips(&expected));
    }

    #[test]
    fn the_addresses_of_this_machine_contain_loopback() {
        assert!(own_addresses().iter().any(IpAddr::is_loopback));
    }
}
