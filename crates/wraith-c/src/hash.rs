//! BLAKE3 hashes. The root of a file's tree is its BLAKE3 hash.

use std::sync::Mutex;

use blake3::Hasher;
use wraith_crypto::Wiped;

use crate::border::entry;
use crate::status::wraith_status_t;
use crate::table::{Kind, Table};

/// Bytes of a hash.
pub const WRAITH_HASH_BYTES: usize = 32;

/// An incremental hash computation.
pub type wraith_hasher_t = u64;

static HASHERS: Table<Mutex<Wiped<Hasher>>> = Table::new(Kind::Hasher);

/// Returns the BLAKE3 hash of `data`: 32 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_hash(
    data: *const u8,
    len: usize,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let (data, output) = (call.bytes(data, len)?, call.output(out, out_cap, out_len)?);
        output.room(WRAITH_HASH_BYTES)?;
        output.write(&wraith_crypto::kdf::hash(data))
    })
}

/// Starts an incremental hash.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_hasher_new(out: *mut wraith_hasher_t) -> wraith_status_t {
    entry!(|call| {
        let out = call.out(out)?;
        out.write(HASHERS.insert(Mutex::new(Wiped::new(Hasher::new())))?);
        Ok(())
    })
}

/// Appends data to the hash.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_hasher_update(
    hasher: wraith_hasher_t,
    data: *const u8,
    len: usize,
) -> wraith_status_t {
    entry!(|call| {
        let data = call.bytes(data, len)?;
        HASHERS.with(hasher, |hasher| {
            hasher.update(data);
            Ok(())
        })
    })
}

/// Returns the hash of all data so far: 32 bytes. More data can follow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_hasher_finish(
    hasher: wraith_hasher_t,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let output = call.output(out, out_cap, out_len)?;
        output.room(WRAITH_HASH_BYTES)?;
        let hash = HASHERS.with(hasher, |hasher| Ok(hasher.finalize()))?;
        output.write(hash.as_bytes())
    })
}

/// Frees the hasher.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_hasher_free(hasher: wraith_hasher_t) -> wraith_status_t {
    entry!(|_call| HASHERS.remove(hasher).map(drop))
}
