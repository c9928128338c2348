//! What a stranger meets first: mac1 (SPEC §3.1), and the mask over the ephemeral key (SPEC §3.2).
//!
//! Both are keyed with the responder's NodeId and what was said so far. Somebody who does not know the NodeId can
//! neither tell a handshake datagram from random bytes nor make us compute more than one hash.

use std::fmt;

use wraith_crypto::{NodeId, equal, kdf};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::H1_BYTES;
use crate::cookie::H1_MACS_BYTES;

/// Length of mac1 at the end of every handshake datagram.
pub const MAC1_BYTES: usize = 16;
/// Length of the masked ephemeral key in front of H1 and H2.
pub(crate) const EPHEMERAL_BYTES: usize = 32;

/// The mac1 of a handshake datagram: its last 16 bytes, which differ for every datagram and so name it. `None` if it is
/// shorter.
#[must_use]
pub fn mac1_of(datagram: &[u8]) -> Option<[u8; MAC1_BYTES]> {
    datagram.last_chunk().copied()
}

/// What stays the same when an H1 is repeated with another mac2, and so names the attempt (SPEC §3.4): the beginning of the
/// hash that the keys of H2 and H3 are made from. `None` if it is shorter.
#[must_use]
pub fn h1_id(h1: &[u8]) -> Option<[u8; 16]> {
    let (message, _) = h1.split_last_chunk::<H1_MACS_BYTES>()?;
    kdf::hash(message).first_chunk().copied()
}

/// BLAKE3 of an H1 without its two MACs, which is what the keys of H2 and H3 are made from.
///
/// # Panics
/// If it is shorter than those.
pub(crate) fn h1_hash(h1: &[u8]) -> [u8; 32] {
    kdf::hash(&h1[..h1.len() - H1_MACS_BYTES])
}

/// The keys of H1 for one responder, derived once and kept by its endpoint.
#[derive(Clone, ZeroizeOnDrop)]
pub struct Mac1Key(DatagramKeys);

impl Mac1Key {
    /// `g1` and `m1` of this responder.
    #[must_use]
    pub fn for_responder(responder: NodeId) -> Self {
        Self(DatagramKeys::first(responder))
    }

    /// Whether `datagram` has the length of an H1 and its sender knew our NodeId. Costs one hash at most and allocates
    /// nothing. Who passes may still be lying: only [`crate::Responder::read_h1`] authenticates.
    #[must_use]
    pub fn verifies(&self, datagram: &[u8]) -> bool {
        H1_BYTES.contains(&datagram.len()) && self.0.verifies(datagram)
    }

    pub(crate) const fn keys(&self) -> &DatagramKeys {
        &self.0
    }
}

impl fmt::Debug for Mac1Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mac1Key").finish_non_exhaustive()
    }
}

/// Key of mac1 and mask key of one handshake datagram. They are as public as the NodeId, but that may be a secret.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct DatagramKeys {
    mac1: [u8; 32],
    mask: [u8; 32],
}

impl DatagramKeys {
    /// For H1.
    pub(crate) fn first(responder: NodeId) -> Self {
        Self {
            mac1: kdf::derive("wraith/1 gate 1", responder.as_bytes()),
            mask: kdf::derive("wraith/1 ephemeral mask 1", responder.as_bytes()),
        }
    }

    /// For H2, given [`h1_hash`].
    pub(crate) fn second(responder: NodeId, h1: &[u8; 32]) -> Self {
        let parts: [&[u8]; 2] = [responder.as_bytes(), h1];
        Self {
            mac1: kdf::derive_parts("wraith/1 gate 2", &parts),
            mask: kdf::derive_parts("wraith/1 ephemeral mask 2", &parts),
        }
    }

    /// For H3, given [`h1_hash`] and BLAKE3(H2). H3 has no ephemeral key, so the mask is unused.
    pub(crate) fn third(responder: NodeId, h1: &[u8; 32], h2: &[u8; 32]) -> Self {
        Self {
            mac1: kdf::derive_parts("wraith/1 gate 3", &[responder.as_bytes(), h1, h2]),
            mask: [0; 32],
        }
    }

    /// Writes mac1 over everything before it into the last 16 bytes.
    pub(crate) fn write_mac1(&self, datagram: &mut [u8]) {
        let (rest, mac1) = datagram.split_at_mut(datagram.len() - MAC1_BYTES);
        mac1.copy_from_slice(&kdf::keyed(&self.mac1, rest)[..MAC1_BYTES]);
    }

    /// Whether mac1 is right. False if there is no room for one.
    pub(crate) fn verifies(&self, datagram: &[u8]) -> bool {
        let Some((rest, mac1)) = datagram.split_last_chunk::<MAC1_BYTES>() else { return false };
        equal(&kdf::keyed(&self.mac1, rest)[..MAC1_BYTES], mac1)
    }

    /// Masks the ephemeral in front of `message` (H1 or H2 without MACs), or takes the mask off again.
    pub(crate) fn toggle_mask(&self, message: &mut [u8]) {
        let (ephemeral, sealed) = message.split_at_mut(EPHEMERAL_BYTES);
        for (byte, mask) in ephemeral.iter_mut().zip(kdf::keyed(&self.mask, sealed)) {
            *byte ^= mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_mac1(len: usize) -> (Mac1Key, Vec<u8>) {
        let key = Mac1Key::for_responder(NodeId([5; 32]));
        let mut datagram = vec![0x5a; len];
        key.keys().write_mac1(&mut datagram);
        (key, datagram)
    }

    #[test]
    fn mac1_is_the_keyed_hash_of_the_specification() {
        let (_, datagram) = with_mac1(900);
        let g1 = kdf::derive("wraith/1 gate 1", &[5; 32]);
        assert_eq!(datagram[884..], kdf::keyed(&g1, &[0x5a; 884])[..16]);
        assert_eq!(mac1_of(&datagram).unwrap(), datagram[884..]);
        assert_eq!(mac1_of(&[0; 15]), None);
    }

    #[test]
    fn only_the_named_responder_takes_it_and_only_lengths_of_h1() {
        let other = Mac1Key::for_responder(NodeId([6; 32]));
        for len in [16, 899, 900, 1200, 1201] {
            let (key, datagram) = with_mac1(len);
            assert_eq!(key.verifies(&datagram), H1_BYTES.contains(&len));
            assert!(!other.verifies(&datagram));
        }
        for len in 0..16 {
            assert!(!with_mac1(900).0.verifies(&vec![0; len]));
        }
    }

    #[test]
    fn no_changed_bit_passes_mac1() {
        let (key, mut datagram) = with_mac1(900);
        for bit in 0..datagram.len() * 8 {
            datagram[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.verifies(&datagram));
            datagram[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(key.verifies(&datagram));
    }

    #[test]
    fn the_mask_comes_off_as_it_went_on() {
        let keys = DatagramKeys::second(NodeId([5; 32]), &[9; 32]);
        let mut message: Vec<u8> = (0..100).collect();
        keys.toggle_mask(&mut message);
        assert_ne!(message[..32], *(0..32).collect::<Vec<u8>>());
        assert_eq!(message[32..], *(32..100).collect::<Vec<u8>>());
        keys.toggle_mask(&mut message);
        assert_eq!(message, (0..100).collect::<Vec<u8>>());
    }
}
