#![forbid(unsafe_code)]
//! Two parties who know at least one NodeId become two parties who share keys, and the keys then protect packets.
//! No I/O, no clock; randomness is passed in, so a seed reproduces every byte.
//!
//! The handshake (SPEC §3) is `Noise_XKhfs_25519+MLKEM768_ChaChaPoly_SHA256` in five datagrams that look like random bytes:
//!
//! ```text
//!     Initiator                                                    Responder
//!     Initiator::start  ──── H1, first datagram ────▶    DoorKey::opens, FirstDatagram::new
//!                       ──── H1, second datagram ───▶    FirstDatagram::is_followed_by, Responder::read_h1
//!     Initiator::read_h2 ◀── H2, in two datagrams ───    Responder::write_h2
//!     Initiator::write_h3 ────────── H3 ────────────▶    Responder::read_h3
//!          │ SessionKeys                                          │ SessionKeys
//!     Sealer, Opener    ◀──────── packets ──────────▶    Sealer, Opener
//! ```
//!
//! What holds everywhere here:
//!
//! - A datagram is dropped for the price of a hash unless its sender has a key to a door of the responder (SPEC §3.1).
//! - A responder under load asks for a [`Cookie`] before it computes ([`Initiator::read_cookie`], SPEC §3.6).
//! - A rejected datagram changes nothing: whoever injects garbage cannot stop a handshake or a session.
//! - Ephemeral keys travel as Elligator2 representatives ([`EphemeralKey`]); the bits that are spare are authenticated, too.
//! - Packet keys, connection IDs and their masks come out of Noise `Split()` and nothing else (SPEC §3.5), and so out of X25519
//!   and ML-KEM-768 together.
//! - Whoever steals all keys at one moment cannot read what is sealed once both directions have moved on behind the next
//!   [`Ratchet`] (SPEC §4.6).
//! - Opening and sealing a packet allocates nothing.

mod cookie;
mod door;
mod flight;
mod gate;
mod h1;
mod initiator;
mod keys;
mod ml_kem;
mod packet_number;
mod parameters;
mod payload;
pub mod primitives;
pub mod protection;
mod ratchet;
mod replay;
mod resolver;
mod responder;

use std::ops::RangeInclusive;

use thiserror::Error;

pub use cookie::{COOKIE_DATAGRAM_BYTES, Cookie, CookieSecret};
pub use door::DoorKey;
pub use flight::draw_len;
pub use gate::{DatagramName, GATE_BYTES, Gated};
pub use h1::{MAC2_BYTES, h1_id};
pub use initiator::Initiator;
pub use keys::{DirectionKeys, SessionKeys};
pub use parameters::Parameters;
pub use payload::{FinalHello, InitiatorHello, ResponderHello, negotiate};
pub use protection::{
    CID_BYTES, HEADER_BYTES, KEY_PACKETS_MAX, NotOpened, Opened, Opener, PACKET_BYTES_MIN,
    PACKET_OVERHEAD, REKEY_PACKETS, Sealer,
};
pub use ratchet::{
    BadShares, RATCHET_REQUEST_BYTES, RATCHET_RESPONSE_BYTES, Ratchet, answer_ratchet,
};
pub use replay::{REPLAY_WINDOW, ReplayWindow, Window};
pub use responder::{FirstDatagram, Responder};
pub use wraith_crypto::elligator::EphemeralKey;
pub use wraith_crypto::{InvalidNodeId, NodeId, Policy, SecretIdentity, Suite, Unauthentic};

/// What the keys of a connection come from: both have to be broken.
pub const KEY_AGREEMENT: &str = "X25519+ML-KEM-768";
/// The version of the handshake (SPEC §3.3). No other is spoken.
pub const HANDSHAKE_VERSION: u8 = payload::VERSION;
/// Length of either datagram of H1 (SPEC §3.4): together they have room for message 1 and H2 fits without amplification; short
/// enough for any path.
pub const H1_BYTES: RangeInclusive<usize> = 700..=1200;
/// The shortest datagram of H2 (SPEC §3.4). Each is at most as long as the one of H1 in its place.
pub const H2_BYTES_MIN: usize = 200;
/// Length of H3 (SPEC §3.4).
pub const H3_BYTES: RangeInclusive<usize> = 300..=1200;

/// Why a handshake datagram was dropped. For counters and tests: nothing is ever answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Rejected {
    /// Not a length this datagram can have.
    #[error("impossible length")]
    Length,
    /// The gate does not match: its sender was not invited, or it was changed on the way.
    #[error("the gate does not match")]
    Gate,
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
