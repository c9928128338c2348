//! What a place that *stores* is: [`RecordStore`]. Who wants to be found **puts** a record under a key, who looks **gets** it, and
//! neither needs the other to be there at that moment.
//!
//! ```text
//!   contacts   transfers   tickets   long codes      who may find whom: `crate::contact`, `crate::code`
//!        └────────┬──┴────────┴──────┘
//!               record                               sealed, padded, under a new key each hour: `crate::record`
//!                 │
//!            RecordStore                             opaque bytes under an Ed25519 key: this file
//!                 │
//!         the Mainline DHT, or one of your own
//! ```
//!
//! It is the shape of BEP 44's mutable items: a value of at most [`MAX_VALUE_LEN`] bytes, signed with the key that names it, and
//! a sequence number. Anybody may read what is stored, so nothing that can be guessed may be asked for there; only who has the
//! seed can write. What was stored cannot be taken back, only overwritten.
//!
//! Invariants: a store hands out only what verifies under the key that was asked for. Nothing outlives the futures and boxes
//! returned here, and at rest a store sends nothing.

use std::fmt;

use wraith_crypto::SecretIdentity;
use zeroize::Zeroizing;

use crate::place::{BoxFuture, Place, PlaceError};

/// The longest value that a node of the DHT keeps (BEP 44).
pub const MAX_VALUE_LEN: usize = 1000;

/// The Ed25519 public key that a record stands under.
pub type RecordKey = [u8; 32];

/// Somewhere records can be left. See the module.
pub trait RecordStore: Send + Sync + fmt::Debug + 'static {
    /// What it is called.
    fn place(&self) -> Place;

    /// Whether anybody answers there.
    ///
    /// # Errors
    /// Why not, within a few seconds.
    fn probe(&self) -> BoxFuture<'static, Result<(), PlaceError>>;

    /// Stores `record` under the key of `seed`, in the place of whatever has a lower sequence number there. If what is there has a
    /// higher one, the record gets one above that: a clock that was set back must not keep anybody from publishing.
    ///
    /// # Errors
    /// It is not stored.
    fn put(
        &self,
        seed: RecordSeed,
        record: StoredRecord,
    ) -> BoxFuture<'static, Result<(), PlaceError>>;

    /// Looks for what is stored under `key`. Nothing happens before the first [`RecordLookup::next`].
    fn get(&self, key: RecordKey) -> Box<dyn RecordLookup>;

    /// The same with few questions, for who asks often: it asks only where [`Self::get`] has shown that the record may be, and may miss
    /// what is there.
    fn glance(&self, key: RecordKey) -> Box<dyn RecordLookup> {
        self.get(key)
    }
}

/// One look for a record. Dropping it ends it.
pub trait RecordLookup: Send {
    /// The next record that verifies, each with a higher sequence number than the one before: some who store hold an old one.
    /// None when everybody was asked. Cancel-safe.
    ///
    /// # Errors
    /// Nobody could be asked.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<StoredRecord>, PlaceError>>;
}

/// A value under its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// A higher one replaces a lower one.
    pub seq: i64,
    /// At most [`MAX_VALUE_LEN`] bytes.
    pub value: Vec<u8>,
}

/// What the key pair of a record is made of: who has it can write the record. Wiped when dropped.
#[derive(Clone)]
pub struct RecordSeed(Zeroizing<[u8; 32]>);

impl RecordSeed {
    /// Takes 32 bytes that cannot be guessed.
    pub fn new(seed: [u8; 32]) -> Self {
        Self(Zeroizing::new(seed))
    }

    /// The key that the record is found under.
    pub fn key(&self) -> RecordKey {
        self.signer().node_id().0
    }

    /// Signs for that key.
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
