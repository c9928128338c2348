//! The addresses of this machine: which of them go into a ticket, and in what order.

use std::net::{IpAddr, SocketAddr};

use wraith_discovery::{MAX_ADDRESSES, Ticket};

/// Where a socket bound to `bound` can be reached: the address itself when it is a particular one, else every address of
/// this machine's interfaces, the most useful first and loopback last (for a receiver on this very machine).
pub(crate) fn reachable(bound: SocketAddr) -> Vec<SocketAddr> {
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

/// `addresses` with one that somebody else sees or grants, if it is a new one: before loopback, which is tried last.
pub(crate) fn with_seen(
    mut addresses: Vec<SocketAddr>,
    seen: Option<SocketAddr>,
) -> Vec<SocketAddr> {
    if let Some(seen) = seen
        && !seen.ip().is_loopback()
        && addresses.iter().all(|address| address.ip() != seen.ip())
    {
        let loopback = addresses.iter().position(|address| address.ip().is_loopback());
        addresses.insert(loopback.unwrap_or(addresses.len()), seen);
    }
    addresses
}

/// The ticket with the address where its sender was met in front: there it can be reached, even by an address that means
/// nothing elsewhere and is in no ticket.
pub(crate) fn nearest_first(ticket: &Ticket, from: Option<SocketAddr>) -> Ticket {
    let mut addresses = ticket.addresses().to_vec();
    if let (Some(mut from), Some(port)) = (from, addresses.first().map(SocketAddr::port)) {
        from.set_port(port);
        addresses.retain(|address| *address != from);
        addresses.insert(0, from);
    }
    Ticket::new(ticket.node_id(), ticket.capability().clone(), addresses)
        .with_relays(ticket.relays().to_vec())
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
    fn an_address_that_somebody_sees_comes_before_loopback_and_once() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let own = vec![address("10.0.0.1:9"), address("127.0.0.1:9")];
        let with = |seen: Option<&str>| with_seen(own.clone(), seen.map(address));
        assert_eq!(with(Some("192.0.2.1:8")), [own[0], address("192.0.2.1:8"), own[1]]);
        for nothing_new in [None, Some("10.0.0.1:8"), Some("127.0.0.7:9")] {
            assert_eq!(with(nothing_new), own);
        }
    }
}
