//! Who may knock: the gate of H1 (SPEC §3.1), keyed with what only an invited initiator has.
//!
//! Invariant: who has none of a responder's door keys costs it one hash of the datagram and one short one a door, and can
//! tell its handshakes from random bytes by nothing.

use std::fmt;

use wraith_crypto::{NodeId, equal, kdf};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::H1_BYTES;
use crate::cookie::MAC2_BYTES;

/// Length of the gate at the end of every handshake datagram.
pub const GATE_BYTES: usize = 16;
/// What follows the Noise message in the first datagram of H1.
pub(crate) const H1_MACS_BYTES: usize = MAC2_BYTES + GATE_BYTES;

/// What an invited initiator has and its responder keeps a door for: 32 bytes, and the key of the gate that they make. Wiped
/// when dropped.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct DoorKey {
    key: [u8; 32],
    gate: [u8; 32],
}

impl DoorKey {
    /// For who has a ticket of `responder` with this capability secret.
    #[must_use]
    pub fn of_ticket(capability: &[u8; 16], responder: NodeId) -> Self {
        Self::of("wraith/2 door of a ticket", &[capability, responder.as_bytes()])
    }

    /// For the contact of `responder` with which it shares this pair secret (SPEC §12).
    #[must_use]
    pub fn of_pair(pair: &[u8; 32], responder: NodeId) -> Self {
        Self::of("wraith/2 door of a pair", &[pair, responder.as_bytes()])
    }

    /// For the peer of a connection that there is, with 32 bytes that only its two ends have.
    #[must_use]
    pub fn of_connection(exported: &[u8; 32]) -> Self {
        Self::of("wraith/2 door of a connection", &[exported])
    }

    /// For everybody who knows the NodeId: such a responder is found by whoever has ever seen a ticket of it.
    #[must_use]
    pub fn of_everybody(responder: NodeId) -> Self {
        Self::of("wraith/2 door of everybody", &[responder.as_bytes()])
    }

    fn of(context: &'static str, parts: &[&[u8]]) -> Self {
        let key = kdf::derive_parts(context, parts);
        Self { key, gate: kdf::derive("wraith/2 gate 1", &key) }
    }

    /// Whether `gate` was made with this key. Takes constant time.
    #[must_use]
    pub fn opens(&self, gate: &H1Gate) -> bool {
        equal(&kdf::keyed(&self.gate, &gate.digest)[..GATE_BYTES], &gate.value)
    }

    /// Writes the gate of the first datagram of H1 over everything before it.
    pub(crate) fn write_gate(&self, first: &mut [u8]) {
        GateKey(self.gate).write(first);
    }

    /// The key of the gate of the second datagram of H1, given [`h1_hash`] of the first.
    pub(crate) fn second(&self, h1_hash: &[u8; 32]) -> GateKey {
        GateKey(kdf::derive_parts("wraith/2 gate 1, second datagram", &[&self.key, h1_hash]))
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

/// The end of a datagram that may be the first of an H1, to be shown to one door after the other.
#[derive(Debug)]
pub struct H1Gate {
    /// BLAKE3 of everything before the gate.
    digest: [u8; 32],
    value: [u8; GATE_BYTES],
}

impl H1Gate {
    /// `None` if `datagram` does not have the length of a first datagram of H1.
    #[must_use]
    pub fn of(datagram: &[u8]) -> Option<Self> {
        let (rest, value) = datagram.split_last_chunk()?;
        let fits = H1_BYTES.contains(&datagram.len());
        fits.then(|| Self { digest: kdf::hash(rest), value: *value })
    }
}

/// The gate of a handshake datagram: its last 16 bytes, which differ for every datagram and so name it. `None` if it is
/// shorter.
#[must_use]
pub fn gate_of(datagram: &[u8]) -> Option<[u8; GATE_BYTES]> {
    datagram.last_chunk().copied()
}

/// What stays the same when the first datagram of an H1 is repeated with another mac2, and so names the attempt (SPEC §3.4).
/// `None` if it is shorter than its MACs.
#[must_use]
pub fn h1_id(first: &[u8]) -> Option<[u8; 16]> {
    h1_hash(first)?.first_chunk().copied()
}

/// BLAKE3 of the first datagram of an H1 without its two MACs.
pub(crate) fn h1_hash(first: &[u8]) -> Option<[u8; 32]> {
    let (message, _) = first.split_last_chunk::<H1_MACS_BYTES>()?;
    Some(kdf::hash(message))
}

/// The key of one datagram's gate. Wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub(crate) struct GateKey(pub(crate) [u8; 32]);

impl GateKey {
    /// Writes the gate over everything before it into the last 16 bytes.
    pub(crate) fn write(&self, datagram: &mut [u8]) {
        let (rest, gate) = datagram.split_at_mut(datagram.len() - GATE_BYTES);
        gate.copy_from_slice(&kdf::keyed(&self.0, &kdf::hash(rest))[..GATE_BYTES]);
    }

    /// Whether the gate is right. False if there is no room for one.
    pub(crate) fn verifies(&self, datagram: &[u8]) -> bool {
        let Some((rest, gate)) = datagram.split_last_chunk::<GATE_BYTES>() else { return false };
        equal(&kdf::keyed(&self.0, &kdf::hash(rest))[..GATE_BYTES], gate)
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
        let gate = kdf::derive("wraith/2 gate 1", &key);
        let datagram = first(&DoorKey::of_ticket(&[7; 16], BOB), 800);
        assert_eq!(datagram[784..], kdf::keyed(&gate, &kdf::hash(&[0x5a; 784]))[..16]);
        assert_eq!(gate_of(&datagram).unwrap(), datagram[784..]);
        assert_eq!(gate_of(&[0; 15]), None);
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
            let gate = H1Gate::of(&first(door, 800)).unwrap();
            let open: Vec<_> = (0..doors.len()).filter(|j| doors[*j].opens(&gate)).collect();
            assert_eq!(open, [i]);
        }
    }

    #[test]
    fn only_lengths_of_a_first_datagram_are_looked_at() {
        for len in [0, 15, 16, H1_BYTES.start() - 1, H1_BYTES.end() + 1, 1500] {
            assert!(H1Gate::of(&vec![0; len]).is_none());
        }
        assert!(H1Gate::of(&vec![0; *H1_BYTES.start()]).is_some());
    }

    #[test]
    fn no_changed_bit_passes_the_gate() {
        let door = DoorKey::of_everybody(BOB);
        let mut datagram = first(&door, 700);
        for bit in 0..datagram.len() * 8 {
            datagram[bit / 8] ^= 1 << (bit % 8);
            assert!(!door.opens(&H1Gate::of(&datagram).unwrap()));
            datagram[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(door.opens(&H1Gate::of(&datagram).unwrap()));
    }
}
