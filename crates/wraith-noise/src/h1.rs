//! Layout of the first handshake message (H1): position of the MACs in its first datagram, and the
//! ID of the handshake attempt (SPEC §3).

use wraith_crypto::kdf;

use crate::mac1::MAC1_BYTES;

/// Length of mac2, the MAC keyed with a cookie. It precedes mac1 at the end of the first
/// datagram of H1.
pub const MAC2_BYTES: usize = 16;
/// Length of both MACs after the Noise message in the first datagram of H1.
pub(crate) const H1_MACS_BYTES: usize = MAC2_BYTES + MAC1_BYTES;

/// Returns the ID of a handshake attempt (SPEC §3.4). It stays the same when the first datagram of
/// H1 is repeated with another mac2. Returns `None` if the datagram is shorter than its MACs.
#[must_use]
pub fn h1_id(first: &[u8]) -> Option<[u8; 16]> {
    h1_hash(first)?.first_chunk().copied()
}

/// Returns BLAKE3 of the first datagram of an H1 without its two MACs.
pub(crate) fn h1_hash(first: &[u8]) -> Option<[u8; 32]> {
    let (message, _) = first.split_last_chunk::<H1_MACS_BYTES>()?;
    Some(kdf::hash(message))
}
