//! Reachability of a peer: the ways to it, as contained in tickets, contact messages, records and
//! calls. Outside of tickets, their form is
//!
//! ```text
//! addresses(1) ‖ address(19)* ‖ relays(1) ‖ relay*     and later in the message  count(1) ‖ way*
//! ```
//!
//! Older programs ignore the second part, where their own messages have zeros.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::relay_addr::{MAX_RELAYS, RelayAddr};
use crate::way::{CustomWay, Way};

/// Most addresses in a message or record.
pub(crate) const MAX_ADDRESSES: usize = 16;
/// Most ways of other carriers in a ticket, message or record.
pub const MAX_CUSTOM_WAYS: usize = 8;
/// Length of an encoded address in bytes.
pub(crate) const ADDRESS_LEN: usize = 19;

/// The ways to a peer. Within a kind, the most useful one comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach(Vec<Way>);

/// Returns the current reachability of this machine. The argument is its address as the asking side
/// sees it.
pub type MakeReach = Box<dyn Fn(Option<IpAddr>) -> Reach + Send + Sync>;

impl Reach {
    /// Returns all ways.
    pub fn ways(&self) -> &[Way] {
        &self.0
    }

    /// Returns the IP addresses.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().filter_map(Way::ip).collect()
    }

    /// Returns the relays.
    pub fn relays(&self) -> impl Iterator<Item = &RelayAddr> {
        self.0.iter().filter_map(Way::relay)
    }

    /// Returns the ways of other carriers.
    pub fn custom(&self) -> impl Iterator<Item = &CustomWay> {
        self.0.iter().filter_map(Way::custom)
    }

    /// Reports whether there is no way.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds ways, behind those of the same kind.
    #[must_use]
    pub fn with<W: Into<Way>>(mut self, ways: impl IntoIterator<Item = W>) -> Self {
        self.0.extend(ways.into_iter().map(Into::into));
        self
    }

    /// Puts the address at which the peer was met first. The peer is reachable there, even if the
    /// address is not valid elsewhere. The port is that of its first address, at which it listens.
    pub fn nearest_first(&mut self, mut met: SocketAddr) {
        if let Some(first) = self.0.iter().find_map(Way::ip) {
            met.set_port(first.port());
            self.0.retain(|way| way.ip() != Some(met));
            self.0.insert(0, met.into());
        }
    }

    /// Returns what fits into `room` bytes, in the order of the kinds. The first address takes
    /// precedence over relays, these over other carriers, and these over all other addresses.
    pub(crate) fn fitted(
        &self,
        mut room: usize,
        addresses_max: usize,
        address_len: impl Fn(SocketAddr) -> usize,
    ) -> Self {
        let mut fits = |len: usize| {
            let rest = room.checked_sub(len);
            room = rest.unwrap_or(room);
            rest.is_some()
        };
        let mut all = self.0.iter().filter_map(Way::ip).take(addresses_max);
        let first = all.next().filter(|address| fits(address_len(*address)));
        let relays = self.relays().take(MAX_RELAYS).filter(|relay| fits(relay.encoded_len()));
        let relays: Vec<_> = relays.cloned().collect();
        let custom = self.custom().filter(|way| fits(way.encoded_len()));
        let custom: Vec<_> = custom.take(MAX_CUSTOM_WAYS).cloned().collect();
        let others = all.take_while(|address| first.is_some() && fits(address_len(*address)));
        Self::default().with(first).with(others).with(relays).with(custom)
    }

    /// Returns what fits into `room` bytes of a message, both parts together.
    pub(crate) fn fitted_in_message(&self, room: usize) -> Self {
        let counts = 2 + usize::from(self.custom().next().is_some());
        self.fitted(room.saturating_sub(counts), MAX_ADDRESSES, |_| ADDRESS_LEN)
    }

    /// Appends the first part of a list that [fits](Self::fitted_in_message).
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let addresses = self.addresses();
        out.push(addresses.len() as u8);
        for address in addresses {
            let canonical = SocketAddr::new(address.ip().to_canonical(), address.port());
            out.extend_from_slice(&encode_address(canonical));
        }
        out.push(self.relays().count() as u8);
        self.relays().for_each(|relay| relay.encode(out));
    }

    /// Appends the second part, if there is a way for it.
    pub(crate) fn encode_custom(&self, out: &mut Vec<u8>) {
        let count = self.custom().count();
        out.extend((count > 0).then_some(count as u8));
        self.custom().for_each(|way| way.encode(out));
    }

    /// Decodes the first part at the start of `bytes` and returns the rest. `None` if it is
    /// malformed.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (count, rest) = bytes.split_first()?;
        let count = usize::from(*count);
        if count > MAX_ADDRESSES {
            return None;
        }
        let (addresses, rest) = rest.split_at_checked(count * ADDRESS_LEN)?;
        let (addresses, _) = addresses.as_chunks::<ADDRESS_LEN>();
        let addresses =
            addresses.iter().map(decode_address).collect::<Option<Vec<SocketAddr>>>()?;
        let (count, mut rest) = rest.split_first()?;
        let mut relays = Vec::new();
        if usize::from(*count) > MAX_RELAYS {
            return None;
        }
        for _ in 0..*count {
            let (relay, behind) = RelayAddr::decode(rest).ok()?;
            relays.push(relay);
            rest = behind;
        }
        Some((Self::from(addresses).with(relays), rest))
    }

    /// Adds the second part, at the start of `bytes`. Ways that are malformed or too many are
    /// passed over: they must not cost the peer its other ways.
    #[must_use]
    pub(crate) fn decode_custom(self, bytes: &[u8]) -> Self {
        let (count, mut rest) = bytes.split_first().unwrap_or((&0, &[]));
        let ways = (0..*count).map_while(|_| {
            let (way, behind) = CustomWay::decode(rest)?;
            rest = behind;
            Some(way)
        });
        self.with(ways.flatten().take(MAX_CUSTOM_WAYS))
    }
}

impl From<Vec<SocketAddr>> for Reach {
    fn from(addresses: Vec<SocketAddr>) -> Self {
        Self::default().with(addresses)
    }
}

/// Encodes an address as in the handshake: `family(1) ‖ ip(16, IPv4 in the first four) ‖ port(2)`.
pub(crate) fn encode_address(address: SocketAddr) -> [u8; ADDRESS_LEN] {
    let mut bytes = [0; ADDRESS_LEN];
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

/// Decodes an address. `None` if the family is unknown.
pub(crate) fn decode_address(bytes: &[u8; ADDRESS_LEN]) -> Option<SocketAddr> {
    let ip = match bytes {
        [4, a, b, c, d, ..] => IpAddr::V4(Ipv4Addr::new(*a, *b, *c, *d)),
        [6, rest @ ..] => IpAddr::V6(Ipv6Addr::from(*rest.first_chunk::<16>()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes([bytes[17], bytes[18]])))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn addresses(count: u16) -> Vec<SocketAddr> {
        (0..count).map(|n| SocketAddr::from(([192, 0, 2, 1], n + 1))).collect()
    }

    fn reach(count: u16, hosts: &[usize]) -> Reach {
        let relay = |len: &usize| RelayAddr::new(&"r".repeat(*len), 443, [1; 32], [2; 16]).unwrap();
        Reach::from(addresses(count)).with(hosts.iter().map(relay))
    }

    fn custom(len: usize) -> CustomWay {
        CustomWay::new(300, vec![7; len]).unwrap()
    }

    /// Encodes both parts, with `between` between them.
    fn encoded(reach: &Reach, room: usize, between: &[u8]) -> Vec<u8> {
        let fitted = reach.fitted_in_message(room);
        let mut bytes = Vec::new();
        fitted.encode(&mut bytes);
        bytes.extend_from_slice(between);
        fitted.encode_custom(&mut bytes);
        assert!(bytes.len() <= room.max(2) + between.len(), "{} of {room}", bytes.len());
        bytes
    }

    fn decoded(bytes: &[u8], between: usize) -> Option<Reach> {
        let (reach, rest) = Reach::decode(bytes)?;
        Some(reach.decode_custom(rest.get(between..)?))
    }

    #[test]
    fn all_that_has_room_survives() {
        let ways = [custom(0), custom(20)];
        for reach in [reach(0, &[]), reach(3, &[]), reach(0, &[64, 64]), reach(16, &[13, 20])] {
            let mut bytes = encoded(&reach, 800, &[]);
            bytes.push(9);
            assert_eq!(Reach::decode(&bytes), Some((reach.clone(), &[9][..])));
            let more = reach.with(ways.clone());
            let mut bytes = encoded(&more, 800, b"body");
            bytes.resize(900, 0);
            assert_eq!(decoded(&bytes, 4), Some(more));
        }
    }

    #[test]
    fn programs_without_the_second_part_read_the_first_and_send_zeros() {
        let more = reach(3, &[20]).with([custom(20)]);
        let bytes = encoded(&more, 800, &[]);
        let (known, rest) = Reach::decode(&bytes).unwrap();
        assert_eq!((known, rest[0]), (reach(3, &[20]), 1));
        let mut old = encoded(&reach(3, &[20]), 800, &[]);
        assert_eq!(decoded(&old, 0), Some(reach(3, &[20])), "no room for zeros");
        old.resize(800, 0);
        assert_eq!(decoded(&old, 0), Some(reach(3, &[20])));
    }

    #[test]
    fn a_relay_is_worth_more_than_addresses_but_the_first() {
        let kept = |of: &Reach, room| decoded(&encoded(of, room, &[]), 0).unwrap();
        assert_eq!(kept(&reach(40, &[20, 20, 20]), 360), reach(11, &[20, 20]));
        assert_eq!(kept(&reach(3, &[64]), 140), reach(1, &[64]));
        assert_eq!(kept(&reach(3, &[64]), 130), reach(3, &[]));
        assert_eq!(kept(&reach(3, &[64]), 0), reach(0, &[]));
        let others = reach(40, &[20]).with([custom(200), custom(200), custom(9)]);
        let fit = reach(2, &[20]).with([custom(200), custom(9)]);
        assert_eq!(kept(&others, 345), fit);
    }

    #[test]
    fn a_thousand_ways_of_unknown_kinds_cost_the_peer_none_of_the_known() {
        let many = (0..1000).map(|n| CustomWay::new(3 + n, vec![1; 40]).unwrap());
        let kept = decoded(&encoded(&reach(2, &[20]).with(many), 868, &[]), 0).unwrap();
        assert_eq!(kept.addresses(), addresses(2));
        assert_eq!((kept.relays().count(), kept.custom().count()), (1, MAX_CUSTOM_WAYS));
        let (known, _) = Reach::decode(&encoded(&reach(2, &[]), 868, &[])).unwrap();
        for hostile in [
            [&[255][..], &[9, 9, 0].repeat(280)].concat(),
            vec![1, 9, 9, 255, 1, 2, 3],
            vec![2, 0, 1, 1, 7, 0, 2, 1, 7],
            vec![200],
        ] {
            let read = known.clone().decode_custom(&hostile);
            assert_eq!(read.addresses(), addresses(2), "{hostile:?}");
            assert!(read.custom().count() <= MAX_CUSTOM_WAYS, "{hostile:?}");
        }
    }

    #[test]
    fn the_address_at_which_a_peer_was_met_comes_first_and_once() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let own = vec![address("10.0.0.1:9"), address("127.0.0.1:9")];
        let met = |at: &str, own: &[SocketAddr]| {
            let mut reach = Reach::from(own.to_vec());
            reach.nearest_first(address(at));
            reach.addresses()
        };
        assert_eq!(met("10.0.0.1:5555", &own), own);
        let link_local = address("[fe80::1]:9");
        assert_eq!(met("[fe80::1]:5555", &own), [link_local, own[0], own[1]]);
        assert!(met("10.0.0.1:5555", &[]).is_empty());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Some(reach) = decoded(&bytes, 0) {
                prop_assert!(reach.addresses().len() <= MAX_ADDRESSES);
                prop_assert!(reach.relays().count() <= MAX_RELAYS);
                prop_assert!(reach.custom().count() <= MAX_CUSTOM_WAYS);
            }
        }

        #[test]
        fn what_fits_survives_and_the_rest_is_dropped(
            count in 0..20_u16,
            hosts in prop::collection::vec(1..=64_usize, 0..4),
            ways in prop::collection::vec((3..=u16::MAX, prop::collection::vec(any::<u8>(), 0..99)), 0..12),
            room in 0..900_usize,
        ) {
            let ways = ways.into_iter().map(|(kind, bytes)| CustomWay::new(kind, bytes).unwrap());
            let all = reach(count, &hosts).with(ways);
            let kept = decoded(&encoded(&all, room, b"body"), 4).unwrap();
            prop_assert_eq!(&kept, &all.fitted_in_message(room));
            prop_assert!(all.addresses().starts_with(&kept.addresses()));
            prop_assert!(kept.ways().iter().all(|way| all.ways().contains(way)));
        }
    }
}
