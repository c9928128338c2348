//! Reachability of a peer: its addresses and relays, as contained in contact messages, records and
//! calls:
//!
//! ```text
//! addresses(1) ‖ address(19)* ‖ relays(1) ‖ relay*
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::relay_addr::{MAX_RELAYS, RelayAddr};

/// Most addresses in a message or record.
pub(crate) const MAX_ADDRESSES: usize = 16;
/// Length of an encoded address in bytes.
pub(crate) const ADDRESS_LEN: usize = 19;

/// Addresses of a listener, most useful first.
pub type Addresses = Vec<SocketAddr>;

/// Addresses and relays of a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Addresses to dial, most useful first; at most [`MAX_ADDRESSES`] are sent.
    pub addresses: Addresses,
    /// Relays, best first; at most [`MAX_RELAYS`] are sent.
    pub relays: Vec<RelayAddr>,
}

/// Returns the current reachability of this machine. The argument is its address as the asking side
/// sees it.
pub type MakeReach = Box<dyn Fn(Option<IpAddr>) -> Reach + Send + Sync>;

impl Reach {
    /// Reports whether there are neither addresses nor relays.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.relays.is_empty()
    }

    /// Appends at most `room` bytes, and at least two. Entries that do not fit are dropped from the
    /// end. Relays take precedence over all addresses except the first.
    pub(crate) fn encode(&self, room: usize, out: &mut Vec<u8>) {
        let (mut left, mut relays) = (room.saturating_sub(2), Vec::new());
        let first = usize::from(!self.addresses.is_empty()) * ADDRESS_LEN;
        for relay in self.relays.iter().take(MAX_RELAYS) {
            if relay.encoded_len() + first <= left {
                left -= relay.encoded_len();
                relays.push(relay);
            }
        }
        let most = MAX_ADDRESSES.min(left / ADDRESS_LEN).min(self.addresses.len());
        out.push(most as u8);
        for address in &self.addresses[..most] {
            out.extend_from_slice(&encode_address(*address));
        }
        out.push(relays.len() as u8);
        relays.iter().for_each(|relay| relay.encode(out));
    }

    /// Decodes the start of `bytes` and returns the rest. `None` if it is malformed.
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
        Some((Self { addresses, relays }, rest))
    }
}

impl From<Addresses> for Reach {
    fn from(addresses: Addresses) -> Self {
        Self { addresses, relays: Vec::new() }
    }
}

/// Encodes an address as in the handshake: `family(1) ‖ ip(16, IPv4 in the first four) ‖ port(2)`.
pub(crate) fn encode_address(address: SocketAddr) -> [u8; ADDRESS_LEN] {
    let mut bytes = [0; ADDRESS_LEN];
    match address.ip().to_canonical() {
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

    fn reach(addresses: u16, hosts: &[usize]) -> Reach {
        let addresses = (0..addresses).map(|n| SocketAddr::from(([192, 0, 2, 1], n + 1)));
        let relay = |len: &usize| RelayAddr::new(&"r".repeat(*len), 443, [1; 32], [2; 16]).unwrap();
        Reach { addresses: addresses.collect(), relays: hosts.iter().map(relay).collect() }
    }

    fn encoded(reach: &Reach, room: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        reach.encode(room, &mut bytes);
        assert!(bytes.len() <= room.max(2), "{} of {room}", bytes.len());
        bytes
    }

    #[test]
    fn all_that_has_room_survives() {
        for reach in [reach(0, &[]), reach(3, &[]), reach(0, &[64, 64]), reach(16, &[13, 20])] {
            let mut bytes = encoded(&reach, 800);
            bytes.push(9);
            assert_eq!(Reach::decode(&bytes), Some((reach, &[9][..])));
        }
    }

    #[test]
    fn a_relay_is_worth_more_than_addresses_but_the_first() {
        let kept = |of: &Reach, room| Reach::decode(&encoded(of, room)).unwrap().0;
        assert_eq!(kept(&reach(40, &[20, 20, 20]), 360), reach(11, &[20, 20]));
        assert_eq!(kept(&reach(3, &[64]), 140), reach(1, &[64]));
        assert_eq!(kept(&reach(3, &[64]), 130), reach(3, &[]));
        assert_eq!(kept(&reach(3, &[64]), 0), reach(0, &[]));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Some((reach, _)) = Reach::decode(&bytes) {
                prop_assert!(reach.addresses.len() <= MAX_ADDRESSES);
                prop_assert!(reach.relays.len() <= MAX_RELAYS);
            }
        }
    }
}
