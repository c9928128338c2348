//! Door keys: the invitation that keys the mac1 of H1 (SPEC §3.1).
//!
//! Invariant: a sender without any of a responder's door keys costs the responder one hash of the
//! datagram, and one short hash per door. To such an observer its handshakes look like random
//! bytes.

use std::fmt;

use wraith_crypto::{NodeId, kdf};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::H1_BYTES;
use crate::mac1::{Mac1Datagram, Mac1Key};

/// Secret shared by an invited initiator and its responder: 32 bytes, and the mac1 key derived from
/// them. Wiped when dropped.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct DoorKey {
    key: [u8; 32],
    mac1: Mac1Key,
}

impl DoorKey {
    /// Derives the key for holders of a ticket of `responder` with this capability secret.
    #[must_use]
    pub fn of_ticket(capability: &[u8; 16], responder: NodeId) -> Self {
        Self::of("wraith/2 door of a ticket", &[capability, responder.as_bytes()])
    }

    /// Derives the key for the contact that shares this pair secret with `responder` (SPEC §12).
    #[must_use]
    pub fn of_pair(pair: &[u8; 32], responder: NodeId) -> Self {
        Self::of("wraith/2 door of a pair", &[pair, responder.as_bytes()])
    }

    /// Derives the key for the peer of an existing connection. `exported` is 32 bytes that only its
    /// two ends have.
    #[must_use]
    pub fn of_connection(exported: &[u8; 32]) -> Self {
        Self::of("wraith/2 door of a connection", &[exported])
    }

    /// Derives the key for everyone with the NodeId. With this door, anyone who has ever seen a
    /// ticket of the responder can find it.
    #[must_use]
    pub fn of_everybody(responder: NodeId) -> Self {
        Self::of("wraith/2 door of everybody", &[responder.as_bytes()])
    }

    fn of(context: &'static str, parts: &[&[u8]]) -> Self {
        let key = kdf::derive_parts(context, parts);
        Self { key, mac1: Mac1Key::new(kdf::derive("wraith/2 gate 1", &key)) }
    }

    /// Returns whether `datagram` has a permitted length for the first datagram of H1 and a mac1
    /// made with this key. Constant time.
    #[must_use]
    pub fn opens(&self, datagram: &Mac1Datagram<'_>) -> bool {
        H1_BYTES.contains(&datagram.bytes().len()) && self.mac1.verifies(datagram)
    }

    /// Writes the mac1 of the first datagram of H1, computed over everything before it.
    pub(crate) fn write_gate(&self, first: &mut [u8]) {
        self.mac1.write(first);
    }

    /// Returns the mac1 key of the second datagram of H1, given the [`h1_hash`](crate::h1::h1_hash)
    /// of the first.
    pub(crate) fn second(&self, h1_hash: &[u8; 32]) -> Mac1Key {
        let parts: [&[u8]; 2] = [&self.key, h1_hash];
        Mac1Key::new(kdf::derive_parts("wraith/2 gate 1, second datagram", &parts))
    }

    pub(crate) const fn as_bytes(&self) -> &[u8; 32] {
        &self.key
    }
}

impl fmt::Debug for DoorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DoorKey").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOB: NodeId = NodeId([5; 32]);

    fn first(door: &DoorKey, len: usize) -> Vec<u8> {
        let mut datagram = vec![0x5a; len];
        door.write_gate(&mut datagram);
        datagram
    }

    #[test]
    fn the_gate_is_the_keyed_hash_of_the_specification() {
        let key =
            kdf::derive("wraith/2 door of a ticket", &[[7; 16].as_slice(), &[5; 32]].concat());
        let mac1 = kdf::derive("wraith/2 gate 1", &key);
        let datagram = first(&DoorKey::of_ticket(&[7; 16], BOB), 800);
        assert_eq!(datagram[784..], kdf::keyed(&mac1, &kdf::hash(&[0x5a; 784]))[..16]);
    }

    #[test]
    fn a_door_opens_to_its_own_key_and_to_no_other() {
        let other = NodeId([6; 32]);
        let doors = [
            DoorKey::of_ticket(&[7; 16], BOB),
            DoorKey::of_ticket(&[8; 16], BOB),
            DoorKey::of_ticket(&[7; 16], other),
            DoorKey::of_pair(&[7; 32], BOB),
            DoorKey::of_pair(&[8; 32], BOB),
            DoorKey::of_connection(&[7; 32]),
            DoorKey::of_everybody(BOB),
            DoorKey::of_everybody(other),
        ];
        for (i, door) in doors.iter().enumerate() {
            let datagram = first(door, 800);
            let gated = Mac1Datagram::of(&datagram).unwrap();
            let open: Vec<_> = (0..doors.len()).filter(|j| doors[*j].opens(&gated)).collect();
            assert_eq!(open, [i]);
        }
    }

    #[test]
    fn only_lengths_of_a_first_datagram_open_it() {
        let door = DoorKey::of_everybody(BOB);
        let opens = |len| door.opens(&Mac1Datagram::of(&first(&door, len)).unwrap());
        for len in [16, H1_BYTES.start() - 1, H1_BYTES.end() + 1, 1500] {
            assert!(!opens(len));
        }
        assert!(opens(*H1_BYTES.start()) && opens(*H1_BYTES.end()));
    }

    #[test]
    fn no_changed_bit_passes_the_gate() {
        let door = DoorKey::of_everybody(BOB);
        let mut datagram = first(&door, 700);
        for bit in 0..datagram.len() * 8 {
            datagram[bit / 8] ^= 1 << (bit % 8);
            assert!(!door.opens(&Mac1Datagram::of(&datagram).unwrap()));
            datagram[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(door.opens(&Mac1Datagram::of(&datagram).unwrap()));
    }
}
