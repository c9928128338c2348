#![forbid(unsafe_code)]
//! Two parties who know at least one NodeId become two parties who share keys, and the keys then protect packets.
//! No I/O, no clock; randomness is passed in, so a seed reproduces every byte.
//!
//! The handshake (SPEC §3) is `Noise_XK_25519_ChaChaPoly_SHA256` in three datagrams that look like random bytes:
//!
//! ```text
//!     Initiator                                              Responder
//!     Initiator::start  ────────────── H1 ──────────────▶    Mac1Key::verifies, Responder::read_h1
//!     Initiator::read_h2 ◀───────────── H2 ──────────────    Responder::write_h2
//!     Initiator::write_h3 ───────────── H3 ──────────────▶   Responder::read_h3
//!          │ SessionKeys                                          │ SessionKeys
//!     Sealer, Opener    ◀──────────── packets ───────────▶   Sealer, Opener
//! ```
//!
//! What holds everywhere here:
//!
//! - A datagram is dropped for the price of one hash unless its sender knows the responder's NodeId (mac1, SPEC §3.1).
//! - A responder under load asks for a [`Cookie`] before it computes ([`Initiator::read_cookie`], SPEC §3.6).
//! - A rejected datagram changes nothing: whoever injects garbage cannot stop a handshake or a session.
//! - Packet keys, connection IDs and their masks come out of Noise `Split()` and nothing else (SPEC §3.5).
//! - Opening and sealing a packet allocates nothing.

mod cookie;
mod initiator;
mod keys;
mod mac1;
mod packet_number;
mod parameters;
mod payload;
pub mod protection;
mod replay;
mod resolver;
mod responder;

use std::ops::RangeInclusive;

use thiserror::Error;

pub use cookie::{COOKIE_DATAGRAM_BYTES, Cookie, CookieSecret, MAC2_BYTES};
pub use initiator::Initiator;
pub use keys::{DirectionKeys, SessionKeys};
pub use mac1::{MAC1_BYTES, Mac1Key, h1_id, mac1_of};
pub use parameters::Parameters;
pub use payload::{FinalHello, InitiatorHello, ResponderHello, negotiate};
pub use protection::{
    CID_BYTES, HEADER_BYTES, KEY_PACKETS_MAX, NotOpened, Opened, Opener, PACKET_BYTES_MIN,
    PACKET_OVERHEAD, REKEY_PACKETS, Sealer,
};
pub use replay::{REPLAY_WINDOW, ReplayWindow};
pub use responder::Responder;
pub use wraith_crypto::{InvalidNodeId, NodeId, SecretIdentity, Suite, Unauthentic};

/// Length of H1 (SPEC §3.4): long enough that H2 fits without amplification, short enough for any path.
pub const H1_BYTES: RangeInclusive<usize> = 900..=1200;
/// Length of H2 before it is capped by that of H1 (SPEC §3.4); the lower end is what the longest payload 2 needs.
pub const H2_BYTES: RangeInclusive<usize> = payload::H2_BYTES_MIN..=1200;
/// Length of H3 (SPEC §3.4).
pub const H3_BYTES: RangeInclusive<usize> = 300..=1200;

/// Why a handshake datagram was dropped. For counters and tests: nothing is ever answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Rejected {
    /// Not a length this datagram can have.
    #[error("impossible length")]
    Length,
    /// The mac1 does not match: not meant for us, or changed on the way.
    #[error("mac1 does not match")]
    Mac1,
    /// Not the datagram this state waits for.
    #[error("not expected now")]
    Unexpected,
    /// Noise did not authenticate it, or the key agreement was degenerate.
    #[error("does not authenticate")]
    Unauthentic,
    /// Authentic, but of another protocol version.
    #[error("unknown protocol version")]
    Version,
    /// Authentic, but not what the specification allows.
    #[error("malformed payload")]
    Malformed,
    /// Authentic, but the NodeId it names is not the one whose key was used.
    #[error("the identity is not the authenticated one")]
    Identity,
}

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
