//! [`RecordStore`]: the interface of a place that *stores*. A peer that wants to be found **puts** a record under a key, and the other peer
//! **gets** it. They need not be online at the same time.
//!
//! ```text
//!   contacts   transfers   tickets   long codes      authorization: `crate::contact`, `crate::code`
//!        └────────┬──┴────────┴──────┘
//!               record                               sealed, padded, under a new key each hour: `crate::record`
//!                 │
//!            RecordStore                             opaque bytes under an Ed25519 key: this file
//!                 │
//!         the Mainline DHT, or your own store
//! ```
//!
//! The model is BEP 44's mutable items: a value of at most [`MAX_VALUE_LEN`] bytes with a sequence
//! number, signed with the key that names it. Anyone may read a stored value, so its key must not
//! be guessable. Only an owner of the key's seed can write. A stored value cannot be deleted, but
//! it can be overwritten.
//!
//! Invariants: a store returns only values that verify under the requested key. Nothing outlives
//! the returned futures and boxes, and an idle store sends nothing.

use std::fmt;

use wraith_crypto::SecretIdentity;
use zeroize::Zeroizing;

use crate::place::{BoxFuture, PlaceError, PlaceName};

/// Longest value that a DHT node stores (BEP 44), in bytes.
pub const MAX_VALUE_LEN: usize = 1000;

/// Ed25519 public key that names a record.
pub type RecordKey = [u8; 32];

/// A store of records; see the module documentation.
pub trait RecordStore: Send + Sync + fmt::Debug + 'static {
    /// Returns the store's name.
    fn place(&self) -> PlaceName;

    /// Tests whether the store answers.
    ///
    /// # Errors
    /// The reason of the failure, within a few seconds.
    fn probe(&self) -> BoxFuture<'static, Result<(), PlaceError>>;

    /// Stores `record` under the key of `seed`, replacing records with lower sequence numbers. If
    /// the stored one is higher, the record gets the next number: a clock that was set back must
    /// not prevent publishing.
    ///
    /// # Errors
    /// The record was not stored.
    fn put(
        &self,
        seed: RecordSeed,
        record: StoredRecord,
    ) -> BoxFuture<'static, Result<(), PlaceError>>;

    /// Looks for the record under `key`. Nothing is sent before the first [`RecordLookup::next`].
    fn get(&self, key: RecordKey) -> Box<dyn RecordLookup>;

    /// Same as [`Self::get`] with few queries, for frequent searches. It asks only nodes that an
    /// earlier [`Self::get`] found, and may miss a record.
    fn get_from_known_nodes(&self, key: RecordKey) -> Box<dyn RecordLookup> {
        self.get(key)
    }
}

/// One search for a record. Drop ends it.
pub trait RecordLookup: Send {
    /// Returns the next verified record, each with a higher sequence number than the previous one,
    /// because some nodes hold old records. `None` after the last node. Cancel-safe.
    ///
    /// # Errors
    /// No node answered.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<StoredRecord>, PlaceError>>;
}

/// A value with its sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// A higher number replaces a lower one.
    pub seq: i64,
    /// At most [`MAX_VALUE_LEN`] bytes.
    pub value: Vec<u8>,
}

/// Seed of a record's key pair. An owner of the seed can write the record. Wiped on drop.
#[derive(Clone)]
pub struct RecordSeed(Zeroizing<[u8; 32]>);

impl RecordSeed {
    /// Uses 32 unguessable bytes as the seed.
    pub fn new(seed: [u8; 32]) -> Self {
        Self(Zeroizing::new(seed))
    }

    /// Returns the key that names the record.
    pub fn key(&self) -> RecordKey {
        self.signer().node_id().0
    }

    /// Returns the signer for that key.
    pub fn signer(&self) -> SecretIdentity {
        SecretIdentity::from_seed(*self.0)
    }
}

impl fmt::Debug for RecordSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordSeed(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_not_printed_and_its_key_is_not_the_seed() {
        let seed = RecordSeed::new([0xab; 32]);
        assert_eq!(format!("{seed:?}"), "RecordSeed(secret)");
        assert_ne!(seed.key(), [0xab; 32]);
    }
}
