//! Data packets (SPEC §4): sealed in place in the send buffer, opened in place in the receive buffer.
//!
//! ```text
//!  0        8        12                       n-16      n
//!  | CID(8) | pn(4)  | sealed frames          | tag(16) |
//! ```
//!
//! A packet costs one AEAD and two AES blocks on either side and allocates nothing. The connection ID is the same for all packets of
//! a connection's direction and never seen: its mask differs for each packet, and only the two ends have the key of it. Keys change by phase (SPEC §4.5):
//! the secret of the next phase is made from that of the present one, which is then gone, so a secret that leaks does
//! not open what was sent before.

mod opener;
mod phase;
mod sealer;

pub use opener::{Opened, Opener};
pub use sealer::Sealer;
use thiserror::Error;
use wraith_crypto::TAG_BYTES;

/// Length of a connection ID.
pub const CID_BYTES: usize = 8;
/// Length of the header: connection ID, key phase and packet number.
pub const HEADER_BYTES: usize = CID_BYTES + 4;
/// What a packet spends beside its frames: header and tag.
pub const PACKET_OVERHEAD: usize = HEADER_BYTES + TAG_BYTES;
/// A packet carries at least one byte of frames.
pub const PACKET_BYTES_MIN: usize = PACKET_OVERHEAD + 1;

/// A sender moves to the next key phase before it sealed this many packets in one (SPEC §4.5).
pub const REKEY_PACKETS: u64 = 1 << 20;
/// A key never seals more packets than this (SPEC §4.5; RFC 9001 §6.6 gives this confidentiality limit for AES-GCM).
/// Whoever cannot move on closes the connection.
pub const KEY_PACKETS_MAX: u64 = 1 << 23;
/// After this many packets that did not verify, an [`Opener`] opens none any more: beyond it a forgery might succeed
/// (RFC 9001 §6.6, the integrity limit of ChaCha20-Poly1305, the lower one).
pub(crate) const FORGERIES_MAX: u64 = 1 << 36;

/// Why a datagram was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotOpened {
    /// It is not a packet of this connection: it does not carry its connection ID, or is too short. It is untouched and may
    /// be tried as something else.
    #[error("not a packet of this connection")]
    Foreign,
    /// It carries the connection ID under its mask, which nothing else does but by an accident of 2^-64; it was received
    /// before, or its tag does not verify. Its header is untouched, the rest is unspecified.
    #[error("not authentic")]
    Unauthentic,
}

/// The sample that header protection masks are made of: the tag (SPEC §4.3). `None` if there is none.
fn sample(datagram: &[u8]) -> Option<&[u8; TAG_BYTES]> {
    datagram.last_chunk()
}

#[cfg(test)]
mod tests;
