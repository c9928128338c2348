//! Reads the journal of a partial file, by its layout alone. Chunks that the journal lists as
//! verified must never be fetched again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Instant;

use super::process::HANG;

const HEADER_BYTES: usize = 128;
const RECORD_BYTES: usize = 48;
/// Marks a record of a hole, and one of content of an earlier version of the file.
const HOLE: u64 = 1 << 63;
const EARLIER: u64 = 1 << 62;

/// Returns the number of verified chunks in the journal of a file; 0 without a journal.
pub fn verified_chunks(folder: &Path, name: &str) -> u64 {
    let journal = folder.join(format!(".{name}.wraith-journal"));
    let Ok(bytes) = fs::read(journal) else { return 0 };
    // A record that a kill cut off does not count.
    let records = bytes.get(HEADER_BYTES..).unwrap_or_default().chunks_exact(RECORD_BYTES);
    let index = |record: &[u8]| u64::from_le_bytes(record[..8].try_into().unwrap());
    let is_verified = |first: &u64| first & (HOLE | EARLIER) != EARLIER;
    records.map(index).filter(is_verified).collect::<BTreeSet<_>>().len() as u64
}

/// Waits until this many chunks of a file are verified, so that the transfer is under way.
pub fn wait_until_verified(folder: &Path, name: &str, chunks: u64) {
    let start = Instant::now();
    while verified_chunks(folder, name) < chunks {
        assert!(start.elapsed() < HANG, "{name} does not arrive");
        thread::yield_now();
    }
}
