//! Access keys: an invitation gives its holder one, and the mac1 of H1 is keyed with it (SPEC
//! §3.1). The derivation labels, which are wire format, still call an access key "door" and a mac1
//! "gate".
//!
//! Invariant: a sender without any of a responder's access keys costs the responder one hash of the
//! datagram, and one short hash per access key. To such an observer its handshakes look like random
//! bytes.

use wraith_crypto::{NodeId, kdf};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::H1_BYTES;
use crate::mac1::{Mac1Datagram, Mac1Key};

/// Secret shared by an invited initiator and its responder: 32 bytes, and the mac1 key derived from
/// them. Wiped when dropped.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct AccessKey {
    key: [u8; 32],
    mac1: Mac1Key,
    is_public: bool,
}

impl AccessKey {
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

    /// Derives the public access key, which anyone can derive from the NodeId. A responder that
    /// accepts it can be found with any of its tickets, even an old one.
    #[must_use]
    pub fn public(responder: NodeId) -> Self {
        let mut key = Self::of("wraith/2 door of everybody", &[responder.as_bytes()]);
        key.is_public = true;
        key
    }

    /// Returns true for the [public](Self::public) access key, which strangers can derive.
    #[must_use]
    pub const fn is_public(&self) -> bool {
        self.is_public
    }

    /// Returns a tag for records. Two keys have the same one with a chance of 1 in 65,536.
    #[must_use]
    pub fn tag(&self) -> [u8; 2] {
        let [first, second, ..] = kdf::derive("wraith/2 tag of a door", &self.key);
        [first, second]
    }

    fn of(context: &'static str, parts: &[&[u8]]) -> Self {
        let key = kdf::derive_parts(context, parts);
        let mac1 = Mac1Key::new(kdf::derive("wraith/2 gate 1", &key));
        Self { key, mac1, is_public: false }
    }

    /// Returns whether `datagram` has a permitted length for the first datagram of H1 and a mac1
    /// under this key. Constant time.
    #[must_use]
    pub fn accepts(&self, datagram: &Mac1Datagram<'_>) -> bool {
        H1_BYTES.contains(&datagram.bytes().len()) && self.mac1.verifies(datagram)
    }

    /// Writes the mac1 of the first datagram of H1, computed over everything before it.
    pub(crate) fn write_mac1(&self, first: &mut [u8]) {
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

wraith_crypto::redacted_debug!(AccessKey);

#[cfg(test)]
mod tests {
    use super::*;

    const BOB: NodeId = NodeId([5; 32]);

    fn first(key: &AccessKey, len: usize) -> Vec<u8> {
        let mut datagram = vec![0x5a; len];
        key.write_mac1(&mut datagram);
        datagram
    }

    #[test]
    fn mac1_is_the_keyed_hash_of_the_specification() {
        let key =
            kdf::derive("wraith/2 door of a ticket", &[[7; 16].as_slice(), &[5; 32]].concat());
        let mac1 = kdf::derive("wraith/2 gate 1", &key);
        let datagram = first(&AccessKey::of_ticket(&[7; 16], BOB), 800);
        assert_eq!(datagram[784..], kdf::keyed(&mac1, &kdf::hash(&[0x5a; 784]))[..16]);
    }

    #[test]
    fn a_datagram_is_accepted_under_its_own_access_key_and_no_other() {
        let other = NodeId([6; 32]);
        let keys = [
            AccessKey::of_ticket(&[7; 16], BOB),
            AccessKey::of_ticket(&[8; 16], BOB),
            AccessKey::of_ticket(&[7; 16], other),
            AccessKey::of_pair(&[7; 32], BOB),
            AccessKey::of_pair(&[8; 32], BOB),
            AccessKey::of_connection(&[7; 32]),
            AccessKey::public(BOB),
            AccessKey::public(other),
        ];
        for (i, key) in keys.iter().enumerate() {
            let datagram = first(key, 800);
            let with_mac1 = Mac1Datagram::of(&datagram).unwrap();
            let accepting: Vec<_> =
                (0..keys.len()).filter(|j| keys[*j].accepts(&with_mac1)).collect();
            assert_eq!(accepting, [i]);
        }
    }

    #[test]
    fn only_lengths_of_a_first_datagram_are_accepted() {
        let key = AccessKey::public(BOB);
        let accepts = |len| key.accepts(&Mac1Datagram::of(&first(&key, len)).unwrap());
        for len in [16, H1_BYTES.start() - 1, H1_BYTES.end() + 1, 1500] {
            assert!(!accepts(len));
        }
        assert!(accepts(*H1_BYTES.start()) && accepts(*H1_BYTES.end()));
    }

    #[test]
    fn a_datagram_with_a_changed_bit_is_not_accepted() {
        let key = AccessKey::public(BOB);
        let mut datagram = first(&key, 700);
        for bit in 0..datagram.len() * 8 {
            datagram[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.accepts(&Mac1Datagram::of(&datagram).unwrap()));
            datagram[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(key.accepts(&Mac1Datagram::of(&datagram).unwrap()));
    }
}
