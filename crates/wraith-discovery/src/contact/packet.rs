//! Packets between a caller and a listener: `salt(16) ‖ sealed(kind(1) ‖ body ‖ zeros)`. At one
//! place, all packets have the same length, so a response is never longer than its request and
//! lengths reveal nothing.
//!
//! ```text
//! call   = 1 ‖ unix seconds(8) ‖ reach
//! answer = 2 ‖ salt of the call(16) ‖ reach
//! ```
//!
//! The key depends on the pair, the sender and the salt, which is random and never reused. No
//! packet repeats, and a packet that is reflected to its sender does not open. An answer contains
//! the salt of its call.

use wraith_crypto::{AeadKey, NodeId, Suite, TAG_BYTES};
use zeroize::Zeroizing;

use super::pair::ContactPair;
use crate::reach::Reach;

/// Length of the salt in bytes.
pub const SALT_LEN: usize = 16;

/// Content of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContactMessage {
    /// A caller's packet: its clock and addresses.
    Call { unix_seconds: u64, reach: Reach },
    /// A listener's answer: its addresses.
    Answer { call: [u8; SALT_LEN], reach: Reach },
}

/// Seals a message from `pair.own` as a packet of `len` bytes.
pub fn seal(
    pair: &ContactPair,
    salt: [u8; SALT_LEN],
    message: &ContactMessage,
    len: usize,
) -> Vec<u8> {
    let mut packet = salt.to_vec();
    let reach = match message {
        ContactMessage::Call { unix_seconds, reach } => {
            packet.push(1);
            packet.extend_from_slice(&unix_seconds.to_be_bytes());
            reach
        }
        ContactMessage::Answer { call, reach } => {
            packet.push(2);
            packet.extend_from_slice(call);
            reach
        }
    };
    let reach = reach.fitted_in_message(len - TAG_BYTES - packet.len());
    reach.encode(&mut packet);
    reach.encode_custom(&mut packet);
    packet.resize(len - TAG_BYTES, 0);
    let key = key(pair, pair.own(), &salt);
    let tag = key.seal(Default::default(), &[], &mut packet[SALT_LEN..]);
    packet.extend_from_slice(&tag);
    packet
}

/// Opens a packet from `pair.peer` and returns its salt and content. The caller checks the packet's
/// length.
pub fn open(pair: &ContactPair, packet: &[u8]) -> Option<([u8; SALT_LEN], ContactMessage)> {
    let (salt, sealed) = packet.split_first_chunk::<SALT_LEN>()?;
    let mut sealed = Zeroizing::new(sealed.to_vec());
    key(pair, pair.peer(), salt).open(Default::default(), &[], &mut sealed).ok()?;
    let plain = sealed.get(..sealed.len().checked_sub(TAG_BYTES)?)?;
    let message = match plain.split_first()? {
        (1, body) => {
            let (unix_seconds, body) = body.split_first_chunk()?;
            let unix_seconds = u64::from_be_bytes(*unix_seconds);
            ContactMessage::Call { unix_seconds, reach: read(body)? }
        }
        (2, body) => {
            let (call, body) = body.split_first_chunk()?;
            ContactMessage::Answer { call: *call, reach: read(body)? }
        }
        _ => return None,
    };
    Some((*salt, message))
}

/// Decodes the ways at the end of a message, before its zeros.
fn read(body: &[u8]) -> Option<Reach> {
    Reach::decode(body).map(|(reach, rest)| reach.decode_custom(rest))
}

fn key(pair: &ContactPair, from: NodeId, salt: &[u8; SALT_LEN]) -> AeadKey {
    AeadKey::library(Suite::ChaCha20Poly1305, &pair.packet_key(from, salt))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wraith_crypto::SecretIdentity;

    use std::net::SocketAddr;

    use super::*;
    use crate::reach::MAX_ADDRESSES;
    use crate::relay_addr::RelayAddr;
    use crate::way::CustomWay;

    const LAN_LEN: usize = 476;
    const RENDEZVOUS_LEN: usize = 409;

    fn pairs() -> [ContactPair; 2] {
        let [a, b] = [1, 2].map(|n| SecretIdentity::from_seed([n; 32]));
        [ContactPair::new(&a, b.node_id()).unwrap(), ContactPair::new(&b, a.node_id()).unwrap()]
    }

    fn messages() -> [ContactMessage; 3] {
        let addresses = ["192.0.2.1:9", "[2001:db8::1]:65535"].map(|a| a.parse().unwrap()).to_vec();
        let most = (0..MAX_ADDRESSES as u16).map(|n| SocketAddr::from(([10, 0, 0, 1], n)));
        let relay = RelayAddr::new("relay.example", 443, [1; 32], [2; 16]).unwrap();
        let way = CustomWay::new(300, *b"elsewhere").unwrap();
        let all = Reach::from(addresses).with([relay]).with([way]);
        let most = Reach::default().with(most);
        [
            ContactMessage::Call { unix_seconds: u64::MAX, reach: Reach::default() },
            ContactMessage::Answer { call: [7; 16], reach: all },
            ContactMessage::Answer { call: [8; 16], reach: most },
        ]
    }

    #[test]
    fn packets_open_at_the_other_side_only_and_have_one_length_at_a_place() {
        let [a, b] = pairs();
        let other = ContactPair::new(&SecretIdentity::from_seed([3; 32]), b.own()).unwrap();
        for len in [LAN_LEN, RENDEZVOUS_LEN] {
            for message in messages() {
                let packet = seal(&a, [9; 16], &message, len);
                assert_eq!(packet.len(), len);
                assert_eq!(open(&b, &packet), Some(([9; 16], message)));
                assert_eq!(open(&a, &packet), None, "one's own words sent back are nothing");
                assert_eq!(open(&other, &packet), None);
            }
        }
    }

    #[test]
    fn the_same_call_looks_different_each_time() {
        let [a, _] = pairs();
        let message = ContactMessage::Call { unix_seconds: 1, reach: Reach::default() };
        let (one, two) =
            (seal(&a, [1; 16], &message, LAN_LEN), seal(&a, [2; 16], &message, LAN_LEN));
        let same = one.iter().zip(&two).filter(|(a, b)| a == b).count();
        assert!(same < 20, "{same} of {LAN_LEN} bytes are equal");
    }

    proptest! {
        #[test]
        fn arbitrary_packets_do_not_open(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert_eq!(open(&pairs()[0], &bytes), None);
        }

        #[test]
        fn malformed_sealed_content_does_not_panic(
            kind in 0..4_u8,
            body in prop::collection::vec(any::<u8>(), LAN_LEN - SALT_LEN - TAG_BYTES - 1),
        ) {
            let [a, b] = pairs();
            let mut packet = [&[5; SALT_LEN][..], &[kind], &body].concat();
            let tag = key(&a, a.own(), &[5; 16]).seal(Default::default(), &[], &mut packet[16..]);
            packet.extend_from_slice(&tag);
            if let Some((_, ContactMessage::Answer { reach, .. })) = open(&b, &packet) {
                prop_assert!(reach.addresses().len() <= MAX_ADDRESSES);
            }
        }

        #[test]
        fn a_modified_packet_does_not_open(at in 0..LAN_LEN, bit in 0..8) {
            let [a, b] = pairs();
            let mut packet = seal(&a, [1; 16], &ContactMessage::Call { unix_seconds: 1, reach: Reach::default() }, LAN_LEN);
            packet[at] ^= 1_u8 << bit;
            prop_assert_eq!(open(&b, &packet), None);
        }
    }
}
