//! Packets about a nameplate: `salt(16) ‖ sealed(length(2) ‖ hello(33) ‖ message ‖ zeros)`. All
//! have 476 bytes, so a response is never longer than its request and lengths reveal nothing.
//!
//! The key is derived from the nameplate and the salt. The key is not a real secret, because
//! nameplates can be tried. It makes packets look random, and lets the waiting side drop packets
//! for other nameplates.

use wraith_crypto::{AeadKey, Suite, TAG_BYTES, kdf};

use crate::place::MAX_MESSAGE_LEN;

const SALT_LEN: usize = 16;
const LENGTH_LEN: usize = 2;
/// Length of the hello that starts a conversation about a nameplate. Every packet of the
/// conversation carries it.
pub const OPENING_LEN: usize = 33;
const PLAIN_LEN: usize = LENGTH_LEN + OPENING_LEN + MAX_MESSAGE_LEN;
/// Length of every packet in bytes.
pub const PACKET_LEN: usize = SALT_LEN + PLAIN_LEN + TAG_BYTES;

/// Message of a claim, and the answer of the creator that has the nameplate. The messages of a
/// code exchange have other types (SPEC §11.4).
pub const CLAIM: &[u8] = &[8];
pub const TAKEN: &[u8] = &[9];

/// Seals a packet of the conversation that started with `hello`, at this nameplate. The message is
/// empty for the hello itself. The salt must be random and never reused. `None` if the message is
/// too long.
pub fn seal(
    nameplate: u32,
    salt: [u8; 16],
    hello: &[u8; OPENING_LEN],
    message: &[u8],
) -> Option<[u8; PACKET_LEN]> {
    let mut packet = [0; PACKET_LEN];
    packet[..SALT_LEN].copy_from_slice(&salt);
    let (plain, tag) = packet[SALT_LEN..].split_at_mut(PLAIN_LEN);
    plain[..LENGTH_LEN].copy_from_slice(&(message.len() as u16).to_be_bytes());
    plain[LENGTH_LEN..][..OPENING_LEN].copy_from_slice(hello);
    plain[LENGTH_LEN + OPENING_LEN..].get_mut(..message.len())?.copy_from_slice(message);
    tag.copy_from_slice(&key(nameplate, &salt).seal(Default::default(), &[], plain));
    Some(packet)
}

/// Opens a packet for this nameplate and returns its hello and message.
pub fn open(nameplate: u32, packet: &[u8]) -> Option<([u8; OPENING_LEN], Vec<u8>)> {
    let mut packet: [u8; PACKET_LEN] = packet.try_into().ok()?;
    let (salt, sealed) = packet.split_first_chunk_mut::<SALT_LEN>()?;
    key(nameplate, salt).open(Default::default(), &[], sealed).ok()?;
    let (length, rest) = sealed[..PLAIN_LEN].split_first_chunk()?;
    let (hello, rest) = rest.split_first_chunk()?;
    let message = rest.get(..usize::from(u16::from_be_bytes(*length)))?;
    Some((*hello, message.to_vec()))
}

fn key(nameplate: u32, salt: &[u8; SALT_LEN]) -> AeadKey {
    let key = kdf::derive_parts("wraith/1 lan packet", &[&nameplate.to_be_bytes(), salt]);
    AeadKey::library(Suite::ChaCha20Poly1305, &key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HELLO: [u8; OPENING_LEN] = [8; OPENING_LEN];

    #[test]
    fn packets_open_under_their_nameplate_only_and_all_have_one_length() {
        for message in [vec![], vec![1; 33], vec![3; MAX_MESSAGE_LEN]] {
            let packet = seal(7, [9; 16], &HELLO, &message).unwrap();
            assert_eq!(packet.len(), 476);
            assert_eq!(open(7, &packet), Some((HELLO, message)));
            assert_eq!(open(8, &packet), None);
        }
        assert_eq!(seal(7, [9; 16], &HELLO, &[3; MAX_MESSAGE_LEN + 1]), None);
    }

    #[test]
    fn the_same_message_looks_different_each_time() {
        let [a, b] = [1, 2].map(|salt| seal(7, [salt; 16], &HELLO, &[]).unwrap());
        let same = a.iter().zip(&b).filter(|(a, b)| a == b).count();
        assert!(same < 20, "{same} of {PACKET_LEN} bytes are equal");
    }

    proptest! {
        #[test]
        fn arbitrary_packets_do_not_open(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert_eq!(open(7, &bytes), None);
        }

        #[test]
        fn malformed_sealed_content_does_not_panic(
            plain in prop::collection::vec(any::<u8>(), PLAIN_LEN),
            length in 0..600_u16,
        ) {
            let mut packet = [0; PACKET_LEN];
            let body = &mut packet[SALT_LEN..];
            body[..PLAIN_LEN].copy_from_slice(&plain);
            body[..2].copy_from_slice(&length.to_be_bytes());
            let (plain, tag) = body.split_at_mut(PLAIN_LEN);
            tag.copy_from_slice(&key(7, &[0; 16]).seal(Default::default(), &[], plain));
            let _ = open(7, &packet);
        }

        #[test]
        fn a_modified_packet_does_not_open(at in 0..PACKET_LEN, bit in 0..8) {
            let mut packet = seal(7, [1; 16], &HELLO, &[]).unwrap();
            packet[at] ^= 1_u8 << bit;
            prop_assert_eq!(open(7, &packet), None);
        }
    }
}
