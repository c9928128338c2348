//! BLAKE3 hashes. The root of a file's tree is its BLAKE3 hash.

use std::sync::Mutex;

use blake3::Hasher;
use wraith_crypto::Wiped;

use crate::border::export;
use crate::table::{Kind, Table};

/// Bytes of a hash.
pub const WRAITH_HASH_BYTES: usize = 32;

/// An incremental hash computation.
pub type wraith_hasher_t = u64;

static wraith_hasher_t: Table<Mutex<Wiped<Hasher>>> = Table::new(Kind::Hasher);

export!(
    /// Returns the BLAKE3 hash of `data`: 32 bytes.
    pub fn wraith_hash(data: Bytes, out: Buffer) -> Outcome {
        out.room(WRAITH_HASH_BYTES)?;
        out.write(&wraith_crypto::kdf::hash(data))
    }

    /// Starts an incremental hash.
    pub fn wraith_hasher_new() -> Outcome<wraith_hasher_t> {
        wraith_hasher_t.add(Wiped::new(Hasher::new()))
    }

    /// Appends data to the hash.
    pub fn wraith_hasher_update(hasher: Locked<wraith_hasher_t>, data: Bytes) -> Outcome {
        hasher.update(data);
        Ok(())
    }

    /// Returns the hash of all data so far: 32 bytes. More data can follow.
    pub fn wraith_hasher_finish(hasher: Locked<wraith_hasher_t>, out: Buffer) -> Outcome {
        out.room(WRAITH_HASH_BYTES)?;
        out.write(hasher.finalize().as_bytes())
    }

    /// Frees the hasher.
    pub fn wraith_hasher_free(hasher: wraith_hasher_t) -> Outcome {
        wraith_hasher_t.free(hasher)
    }
);
