//! Packet protection (SPEC §4): packets are sealed and opened in place, in the send and receive
//! buffers.
//!
//! ```text
//!  0        8        12                       n-16      n
//!  | CID(8) | pn(4)  | sealed frames          | tag(16) |
//! ```
//!
//! On each side, a packet costs one AEAD operation and two AES blocks, without allocations.
//!
//! All packets of one direction carry the same connection ID, which never appears in the clear. The
//! connection ID is masked differently in each packet, and only the two ends have the mask key.
//!
//! Each key phase has its own keys (SPEC §4.5). The secret of the next phase is derived from the
//! secret of the current one, which is then wiped. A leaked secret therefore does not open packets
//! of earlier phases.

mod opener;
mod phase;
mod sealer;

pub use opener::{Opened, Opener};
pub use sealer::Sealer;
use thiserror::Error;
use wraith_crypto::TAG_BYTES;

pub use crate::keys::CID_BYTES;

/// Length of the header in bytes: connection ID, key phase and packet number.
pub const HEADER_BYTES: usize = CID_BYTES + 4;
/// Bytes of a packet besides its frames: header and tag.
pub const PACKET_OVERHEAD: usize = HEADER_BYTES + TAG_BYTES;
/// Least length of a packet: it carries at least one byte of frames.
pub const PACKET_BYTES_MIN: usize = PACKET_OVERHEAD + 1;

/// Packets after which a sender changes the key. It moves to the next phase before it has sealed
/// this many in one phase (SPEC §4.5).
pub const REKEY_PACKETS: u64 = 1 << 20;
/// Maximum number of packets sealed with one key (SPEC §4.5; the confidentiality limit for AES-GCM
/// in RFC 9001 §6.6). A sender that cannot change the key by then closes the connection.
pub const KEY_PACKETS_MAX: u64 = 1 << 23;
/// Number of packets that fail authentication before an [`Opener`] stops opening any: beyond it a
/// forgery might succeed. This is the integrity limit of ChaCha20-Poly1305 (RFC 9001 §6.6), the
/// lower one.
pub(crate) const FORGERIES_MAX: u64 = 1 << 36;

/// Reason why a datagram was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PacketOpenError {
    /// The datagram is not a packet of this connection: it lacks the connection ID, or is too
    /// short. It is unmodified, so the caller may try it as something else.
    #[error("not a packet of this connection")]
    OtherConnection,
    /// The masked connection ID matches, which happens by chance with probability 2^-64. But the
    /// packet is a duplicate, or its tag does not verify. Its header is unmodified, the rest is
    /// unspecified.
    #[error("not authentic")]
    Unauthentic,
}

/// Returns the sample for the header protection masks: the tag (SPEC §4.3). `None` if the datagram
/// is shorter than a tag.
fn sample(datagram: &[u8]) -> Option<&[u8; TAG_BYTES]> {
    datagram.last_chunk()
}

#[cfg(test)]
mod tests;
