//! The addresses of this machine: selection and order for a ticket.

use std::net::{IpAddr, SocketAddr};

use wraith_discovery::{MAX_ADDRESSES, Ticket};

/// Returns the addresses at which a socket bound to `bound` is reachable. That is `bound` itself if
/// it is a specific address. Otherwise it is every interface address, the most useful first and
/// loopback last (for a receiver on the same machine).
pub(crate) fn reachable(bound: SocketAddr) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let ips = interfaces.into_iter().map(|i| i.ip()).filter(|ip| bound.is_ipv6() || ip.is_ipv4());
    ordered(ips.collect()).into_iter().map(|ip| SocketAddr::new(ip, bound.port())).collect()
}

/// Sorts by usefulness, drops addresses that no other host can use, and keeps room for loopback.
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

/// A link-local address is useless without its interface, which a ticket cannot name.
fn is_link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// Inserts the observed and mapped addresses into `own`, before loopback, which is tried last. All
/// observed ports of one IP address are kept: from several, the next ports of a NAT can be
/// predicted (SPEC §14.4). There is room for all observed addresses.
pub(crate) fn with_seen(
    own: Vec<SocketAddr>,
    seen: impl IntoIterator<Item = SocketAddr>,
) -> Vec<SocketAddr> {
    let (loopback, mut all): (Vec<_>, Vec<_>) =
        own.into_iter().partition(|address| address.ip().is_loopback());
    let mut news: Vec<SocketAddr> = Vec::new();
    for seen in seen {
        if !seen.ip().is_loopback() && !all.contains(&seen) && !news.contains(&seen) {
            news.push(seen);
        }
    }
    all.truncate(MAX_ADDRESSES.saturating_sub(news.len() + loopback.len()));
    all.extend(news);
    all.extend(loopback);
    all
}

/// Guesses the address of a socket at `port` from its observed IP address, if no better address
/// with that IP is known. The guess is right if the router forwards or preserves the port.
pub(crate) fn guess<'a>(
    known: impl IntoIterator<Item = &'a SocketAddr>,
    ip: IpAddr,
    port: u16,
) -> Option<SocketAddr> {
    known.into_iter().all(|address| address.ip() != ip).then_some(SocketAddr::new(ip, port))
}

/// Returns the ticket with the address at which its sender was met in front. The sender is
/// reachable there, even at an address that is useless elsewhere and therefore in no ticket.
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
    fn a_specific_bind_address_is_the_only_one() {
        let bound = "127.0.0.1:9".parse().unwrap();
        assert_eq!(reachable(bound), [bound]);
    }

    fn addresses(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn observed_addresses_come_before_loopback_without_duplicates() {
        let own = addresses(&["10.0.0.1:9", "127.0.0.1:9"]);
        let with = |seen: &[&str]| with_seen(own.clone(), addresses(seen));
        assert_eq!(
            with(&["192.0.2.1:8"]),
            addresses(&["10.0.0.1:9", "192.0.2.1:8", "127.0.0.1:9"])
        );
        assert_eq!(with(&["10.0.0.1:9", "127.0.0.7:9"]), own);
    }

    #[test]
    fn all_observed_ports_of_an_address_are_kept_in_order() {
        let seen = ["192.0.2.1:40000", "192.0.2.1:40001", "192.0.2.1:40000"];
        let expected = ["10.0.0.1:9", "192.0.2.1:40000", "192.0.2.1:40001"];
        assert_eq!(with_seen(addresses(&["10.0.0.1:9"]), addresses(&seen)), addresses(&expected));
    }

    #[test]
    fn observed_addresses_have_room_on_a_machine_with_many_addresses() {
        let all = (1..=40).map(|n| IpAddr::from([10, 0, 0, n])).chain(ips(&["127.0.0.1"]));
        let own = ordered(all.collect()).into_iter().map(|ip| SocketAddr::new(ip, 9)).collect();
        let seen = addresses(&["192.0.2.1:8", "192.0.2.1:7"]);
        let with = with_seen(own, seen.clone());
        assert_eq!(with.len(), MAX_ADDRESSES);
        assert_eq!(with[MAX_ADDRESSES - 3..MAX_ADDRESSES - 1], seen);
        assert!(with[MAX_ADDRESSES - 1].ip().is_loopback());
    }

    #[test]
    fn no_port_is_guessed_if_one_is_known() {
        let known = addresses(&["192.0.2.1:40000"]);
        assert_eq!(guess(&known, "192.0.2.1".parse().unwrap(), 9), None);
        let other = "192.0.2.2".parse().unwrap();
        assert_eq!(guess(&known, other, 9), Some(SocketAddr::new(other, 9)));
    }
}
