//! The IP addresses of a socket: selection and order for a ticket.

use std::net::{IpAddr, SocketAddr};

use wraith_discovery::{MAX_ADDRESSES, Ticket};

use super::own_addresses::own_addresses;

/// Own addresses before the observed ones. Where there are more, the others are least likely to be
/// the right ones.
const OWN_FIRST: usize = 8;
/// Addresses that a peer gets over a connection or through a meeting place at a time.
const LIST_LEN: usize = 16;

/// Returns the addresses at which a socket bound to `bound` is reachable. That is `bound` itself if
/// it is a specific address. Otherwise it is every interface address, the most useful first and
/// loopback last (for a receiver on the same machine).
pub(crate) fn reachable(bound: SocketAddr) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    let ips = own_addresses().into_iter().filter(|ip| bound.is_ipv6() || ip.is_ipv4());
    ips.map(|ip| SocketAddr::new(ip, bound.port())).collect()
}

/// Returns the addresses that a ticket has no room for, except loopback.
pub(crate) fn left_out(ticket: &Ticket, bound: SocketAddr) -> Vec<SocketAddr> {
    let (mut own, told) = (reachable(bound), ticket.addresses());
    own.retain(|address| !address.ip().is_loopback() && !told.contains(address));
    own
}

/// Returns the list number `turn` for a peer that gets few addresses at a time. The most useful
/// ones are in each list, and the others take turns.
pub(crate) fn in_turn(mut all: Vec<SocketAddr>, turn: u64) -> Vec<SocketAddr> {
    if all.len() > LIST_LEN {
        let others = &mut all[OWN_FIRST..];
        let step = LIST_LEN - OWN_FIRST;
        others.rotate_left((turn as usize * step) % others.len());
        all.truncate(LIST_LEN);
    }
    all
}

/// Inserts the observed and mapped addresses into `own`: behind the most useful ones, and before
/// loopback, which is tried last. All observed ports of one IP address are kept: from several, the
/// next ports of a NAT can be predicted (SPEC §14.4).
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
    let behind = all.len().min(OWN_FIRST);
    all.splice(behind..behind, news);
    all.extend(loopback);
    all.truncate(MAX_ADDRESSES);
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let own: Vec<_> = (1..=60).map(|n| SocketAddr::from(([10, 0, 0, n], 9))).collect();
        let seen = addresses(&["192.0.2.1:8", "192.0.2.1:7"]);
        let with = with_seen(own.clone(), seen.clone());
        assert_eq!(with.len(), MAX_ADDRESSES);
        assert_eq!((&with[..8], &with[8..10], &with[10..12]), (&own[..8], &*seen, &own[8..10]));
    }

    #[test]
    fn a_peer_that_gets_few_addresses_at_a_time_gets_all_in_turn() {
        let all: Vec<_> = (1..=40).map(|n| SocketAddr::from(([10, 0, 0, n], 9))).collect();
        let mut told = std::collections::HashSet::new();
        for turn in 0..4 {
            let list = in_turn(all.clone(), turn);
            assert_eq!((list.len(), &list[..8]), (16, &all[..8]));
            told.extend(list);
        }
        assert_eq!(told.len(), all.len());
        assert_eq!(in_turn(all[..16].to_vec(), 3), all[..16]);
    }

    #[test]
    fn no_port_is_guessed_if_one_is_known() {
        let known = addresses(&["192.0.2.1:40000"]);
        assert_eq!(guess(&known, "192.0.2.1".parse().unwrap(), 9), None);
        let other = "192.0.2.2".parse().unwrap();
        assert_eq!(guess(&known, other, 9), Some(SocketAddr::new(other, 9)));
    }
}
