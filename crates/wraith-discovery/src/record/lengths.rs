//! Lengths of a record and its parts.

use wraith_crypto::TAG_BYTES;

/// Length of every record in bytes: below BEP 44's 1000, so that a datagram with it stays below
/// 1200.
pub const VALUE_LEN: usize = 900;
/// Length of the salt in bytes.
pub const SALT_LEN: usize = 16;
/// Length of every content in bytes. It holds the longest ticket, its receiver and a few relays.
pub const CONTENT_LEN: usize = VALUE_LEN - SALT_LEN - TAG_BYTES;
