//! Storage key and sealing key of a record in an hour.
//!
//! ```text
//! slot   = derive("wraith/1 … record", secret of both sides ‖ writer ‖ purpose)
//! seed   = derive("wraith/1 record key", slot ‖ hour(8))                 the Ed25519 seed of the storage key
//! sealed = salt(16) ‖ ChaCha20-Poly1305(content)                         always 900 bytes
//! ```
//!
//! `sealed` uses the key `derive("wraith/1 record seal", slot ‖ hour(8) ‖ salt)` with nonce 0. The
//! salt is random and new in every record.

use std::fmt;

use wraith_crypto::{AeadKey, NodeId, Suite, TAG_BYTES, kdf};
use zeroize::Zeroizing;

use super::content::Content;
use super::lengths::{SALT_LEN, VALUE_LEN};
use crate::Capability;
use crate::contact::ContactPair;
use crate::place::PlaceError;
use crate::store::{RecordSeed, StoredRecord};
use crate::wall_clock::unix_millis;

/// Secret of one side's record for the other, in all hours. Wiped on drop.
#[derive(Clone)]
pub struct Slot(Zeroizing<[u8; 32]>);

impl Slot {
    /// Derives the slot for the addresses of `writer`, read by its peer in a pair: contacts, or the
    /// two sides of a transfer.
    pub fn of_listener(pair: &ContactPair, writer: NodeId) -> Self {
        Self::derived("wraith/1 pair record", &[pair.secret(), writer.as_bytes(), &[1]])
    }

    /// Derives the slot for a call from `writer` to its peer in a pair.
    pub fn of_caller(pair: &ContactPair, writer: NodeId) -> Self {
        Self::derived("wraith/1 pair record", &[pair.secret(), writer.as_bytes(), &[2]])
    }

    /// Derives the slot for the sender's addresses, read by holders of its ticket.
    pub fn of_ticket(sender: NodeId, capability: &Capability) -> Self {
        Self::derived("wraith/1 ticket record", &[capability.as_bytes(), sender.as_bytes()])
    }

    /// Derives the slot of the creator (1) or the joiner (2) of a long code. `secret` already
    /// belongs to the hour.
    pub fn of_code(secret: &[u8; 32], role: u8) -> Self {
        Self::derived("wraith/1 code record", &[secret, &[role]])
    }

    fn derived(context: &'static str, parts: &[&[u8]]) -> Self {
        Self(Zeroizing::new(kdf::derive_parts(context, parts)))
    }

    /// Derives the seed of the record's key in this hour.
    pub fn seed(&self, hour: u64) -> RecordSeed {
        let parts = [&self.0[..], &hour.to_be_bytes()];
        RecordSeed::new(kdf::derive_parts("wraith/1 record key", &parts))
    }

    /// Seals `content` as the record of this hour.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn seal(&self, hour: u64, content: &Content) -> Result<StoredRecord, PlaceError> {
        let mut salt = [0; SALT_LEN];
        getrandom::fill(&mut salt).map_err(|_| PlaceError::no_randomness())?;
        let mut sealed = content.encode();
        let tag = self.key(hour, &salt).seal(Default::default(), &[], &mut sealed);
        let seq = i64::try_from(unix_millis()).unwrap_or(i64::MAX);
        Ok(StoredRecord { seq, value: [&salt[..], &sealed, &tag].concat() })
    }

    /// Opens a record of this hour. `None` if it is malformed or belongs to another slot.
    pub fn open(&self, hour: u64, value: &[u8]) -> Option<Content> {
        if value.len() != VALUE_LEN {
            return None;
        }
        let (salt, sealed) = value.split_first_chunk::<SALT_LEN>()?;
        let mut sealed = Zeroizing::new(sealed.to_vec());
        self.key(hour, salt).open(Default::default(), &[], &mut sealed).ok()?;
        Content::decode(sealed.get(..sealed.len().checked_sub(TAG_BYTES)?)?)
    }

    fn key(&self, hour: u64, salt: &[u8; SALT_LEN]) -> AeadKey {
        let parts = [&self.0[..], &hour.to_be_bytes(), salt];
        let key = Zeroizing::new(kdf::derive_parts("wraith/1 record seal", &parts));
        AeadKey::library(Suite::ChaCha20Poly1305, &key)
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slot(secret)")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use wraith_crypto::SecretIdentity;

    use super::super::content::Kind;
    use super::*;
    use crate::reach::Reach;
    use crate::store::MAX_VALUE_LEN;

    fn content() -> Content {
        let reach = Reach::from(vec!["192.0.2.1:9".parse().unwrap()]);
        Content::new(Kind::Reach, 1000, 600, reach)
    }

    fn slots() -> Vec<Slot> {
        let [a, b, c] = [1, 2, 3].map(|n| SecretIdentity::from_seed([n; 32]));
        let ab = ContactPair::new(&a, b.node_id()).unwrap();
        let cb = ContactPair::new(&c, b.node_id()).unwrap();
        let transfer = ContactPair::of_transfer(&a, b.node_id(), &[1; 16]).unwrap();
        let of_ticket = |n| Slot::of_ticket(a.node_id(), &Capability::from_bytes([n; 16]));
        vec![
            Slot::of_listener(&ab, a.node_id()),
            Slot::of_listener(&ab, b.node_id()),
            Slot::of_caller(&ab, a.node_id()),
            Slot::of_listener(&cb, b.node_id()),
            Slot::of_listener(&transfer, a.node_id()),
            of_ticket(1),
            of_ticket(2),
            Slot::of_code(&[1; 32], 1),
            Slot::of_code(&[1; 32], 2),
        ]
    }

    #[test]
    fn every_pair_direction_purpose_and_hour_has_a_key_of_its_own() {
        let slots = slots();
        let keys: HashSet<_> =
            (0..3).flat_map(|hour| slots.iter().map(move |slot| slot.seed(hour).key())).collect();
        assert_eq!(keys.len(), 3 * slots.len());
    }

    #[test]
    fn both_sides_compute_the_same_slot() {
        let [a, b] = [1, 2].map(|n| SecretIdentity::from_seed([n; 32]));
        let ours = Slot::of_listener(&ContactPair::new(&a, b.node_id()).unwrap(), a.node_id());
        let theirs = Slot::of_listener(&ContactPair::new(&b, a.node_id()).unwrap(), a.node_id());
        assert_eq!(ours.seed(7).key(), theirs.seed(7).key());
        let record = ours.seal(7, &content()).unwrap();
        assert_eq!(theirs.open(7, &record.value), Some(content()));
    }

    #[test]
    fn a_record_opens_in_its_slot_and_hour_only() {
        let slots = slots();
        let record = slots[0].seal(7, &content()).unwrap();
        const { assert!(VALUE_LEN <= MAX_VALUE_LEN) };
        assert_eq!(record.value.len(), VALUE_LEN);
        assert_eq!(slots[0].open(8, &record.value), None, "of another hour");
        assert!(slots[1..].iter().all(|slot| slot.open(7, &record.value).is_none()));
        assert_eq!(slots[0].open(7, &record.value[1..]), None);
        let longer = [&record.value[..], &[0]].concat();
        assert_eq!(slots[0].open(7, &longer), None);
    }

    #[test]
    fn a_withdrawn_record_looks_like_any_other_and_no_two_are_alike() {
        let slot = &slots()[0];
        let full = slot.seal(7, &content()).unwrap().value;
        let again = slot.seal(7, &content()).unwrap().value;
        let empty = slot.seal(7, &Content::withdrawn(1000)).unwrap().value;
        assert_eq!(full.len(), empty.len());
        let same = full.iter().zip(&again).filter(|(a, b)| a == b).count();
        assert!(same < 30, "{same} of {VALUE_LEN} bytes are equal");
    }

    proptest! {
        #[test]
        fn a_modified_record_does_not_open(at in 0..VALUE_LEN, bit in 0..8) {
            let slot = &slots()[0];
            let mut value = slot.seal(7, &content()).unwrap().value;
            value[at] ^= 1_u8 << bit;
            prop_assert_eq!(slot.open(7, &value), None);
        }
    }
}
