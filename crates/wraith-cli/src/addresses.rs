//! The addresses of this machine, for the ticket.

use std::net::{IpAddr, SocketAddr};

use wraith_discovery::MAX_ADDRESSES;

/// Where a socket bound to `bound` can be reached: the address itself when it is a particular one, else every address of
/// this machine's interfaces, the most useful first and loopback last (for a receiver on this very machine).
pub fn reachable(bound: SocketAddr) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let ips = interfaces.into_iter().map(|i| i.ip()).filter(|ip| bound.is_ipv6() || ip.is_ipv4());
    ordered(ips.collect()).into_iter().map(|ip| SocketAddr::new(ip, bound.port())).collect()
}

/// Sorts by usefulness, drops what no other machine and no program can use, and keeps room for loopback.
fn ordered(mut ips: Vec<IpAddr>) -> Vec<IpAddr> {
    ips.retain(|ip| !is_link_local(ip) && !ip.is_unspecified() && !ip.is_multicast());
    ips.sort_by_key(|ip| (ip.is_loopback(), ip.is_ipv6(), *ip));
    ips.dedup();
    let loopback = ips.iter().position(IpAddr::is_loopback).unwrap_or(ips.len());
    let first_loopback = ips.get(loopback).copied();
    ips.truncate(MAX_ADDRESSES);
    if let (Some(ip), true) = (first_loopback, loopback >= MAX_ADDRESSES) {
        ips[MAX_ADDRESSES - 1] = ip;
    }
    ips
}

/// A link-local address means nothing without the interface it belongs to, which a ticket cannot name.
fn is_link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// What kind of path leads to an address, in one word for people and scripts.
pub fn path_kind(remote: SocketAddr) -> &'static str {
    let private = match remote.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_loopback() => return "loopback",
        IpAddr::V6(ip) if ip.is_loopback() => return "loopback",
        IpAddr::V4(ip) => ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
    };
    if private { "lan" } else { "direct" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(list: &[&str]) -> Vec<IpAddr> {
        list.iter().map(|ip| ip.parse().unwrap()).collect()
    }

    #[test]
    fn loopback_comes_last_and_link_local_not_at_all() {
        let all = ips(&["127.0.0.1", "fe80::1", "2001:db8::1", "169.254.1.1", "10.0.0.2", "::1"]);
        assert_eq!(ordered(all), ips(&["10.0.0.2", "2001:db8::1", "127.0.0.1", "::1"]));
    }

    #[test]
    fn a_machine_with_many_addresses_still_offers_loopback() {
        let mut all: Vec<IpAddr> = (1..=40).map(|n| IpAddr::from([10, 0, 0, n])).collect();
        all.push("127.0.0.1".parse().unwrap());
        let kept = ordered(all);
        assert_eq!(kept.len(), MAX_ADDRESSES);
        assert!(kept[MAX_ADDRESSES - 1].is_loopback());
    }

    #[test]
    fn a_particular_address_stands_alone() {
        let bound = "127.0.0.1:9".parse().unwrap();
        assert_eq!(reachable(bound), [bound]);
    }

    #[test]
    fn paths_are_told_apart() {
        let kind = |text: &str| path_kind(text.parse().unwrap());
        assert_eq!(kind("127.0.0.1:1"), "loopback");
        assert_eq!(kind("[::ffff:192.168.1.1]:1"), "lan");
        assert_eq!(kind("[2001:db8::1]:1"), "direct");
    }
}
