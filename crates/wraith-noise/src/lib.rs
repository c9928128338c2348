#![forbid(unsafe_code)]
//! The cryptographic handshake of the wraith protocol, and the protection of the packets after it.
//! The initiator has to know the responder's NodeId (its public identity). Afterwards both sides
//! have the same keys. The crate has no I/O and no clock, and the caller passes the randomness in,
//! so a seed reproduces every byte.
//!
//! The handshake (SPEC §3) is `Noise_XKhfs_25519+MLKEM768_ChaChaPoly_SHA256`. Its three messages
//! (H1, H2, H3) are five datagrams that look like random bytes:
//!
//! ```text
//!     Initiator                                                    Responder
//!     Initiator::start  ──── H1, first datagram ────▶    AccessKey::accepts, PendingH1::new
//!                       ──── H1, second datagram ───▶    Responder::read_h1
//!     Initiator::read_h2 ◀── H2, in two datagrams ───    Responder::write_h2
//!     Initiator::write_h3 ────────── H3 ────────────▶    Responder::read_h3
//!          │ SessionKeys                                          │ SessionKeys
//!     Sealer, Opener    ◀──────── packets ──────────▶    Sealer, Opener
//! ```
//!
//! Invariants:
//!
//! - A datagram from a sender without an access key of the responder is dropped at the cost of a
//!   hash (SPEC §3.1).
//! - A responder under load demands a [`Cookie`] before any public-key operation
//!   ([`Initiator::read_cookie`], SPEC §3.6).
//! - A rejected datagram changes nothing, so injected datagrams cannot stop a handshake or a
//!   connection.
//! - Ephemeral keys travel as Elligator2 representatives ([`EphemeralKey`]); their spare bits are
//!   authenticated, too.
//! - Packet keys, connection IDs and their masks are derived from nothing but Noise `Split()` (SPEC
//!   §3.5), and so from X25519 and ML-KEM-768 together.
//! - An attacker that steals all keys at one moment cannot read packets sealed after both
//!   directions have passed the next [`Ratchet`] (SPEC §4.6).
//! - Sealing or opening a packet allocates nothing.

mod access_key;
mod cookie;
mod flight;
mod h1;
mod initiator;
mod keys;
mod mac1;
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

pub use access_key::AccessKey;
pub use cookie::{COOKIE_DATAGRAM_BYTES, Cookie, CookieSecret};
pub use flight::draw_len;
pub use h1::{MAC2_BYTES, h1_id};
pub use initiator::Initiator;
pub use keys::{DirectionKeys, SessionKeys};
pub use mac1::{DatagramFingerprint, MAC1_BYTES, Mac1Datagram};
pub use parameters::Parameters;
pub use payload::{FinalHello, InitiatorHello, ResponderHello, negotiate};
pub use protection::{
    CID_BYTES, HEADER_BYTES, KEY_PACKETS_MAX, Opened, Opener, PACKET_BYTES_MIN, PACKET_OVERHEAD,
    PacketOpenError, REKEY_PACKETS, Sealer,
};
pub use ratchet::{
    InvalidShares, RATCHET_REQUEST_BYTES, RATCHET_RESPONSE_BYTES, Ratchet, respond_to_ratchet,
};
pub use replay::{REPLAY_WINDOW, ReplayWindow, Window};
pub use responder::{PendingH1, Responder};
pub use wraith_crypto::elligator::EphemeralKey;
pub use wraith_crypto::{InvalidNodeId, NodeId, Policy, SecretIdentity, Suite, Unauthentic};

/// Key agreement of a connection. An attacker has to break both algorithms.
pub const KEY_AGREEMENT: &str = "X25519+ML-KEM-768";
/// Version of the handshake (SPEC §3.3). Peers with any other version are rejected.
pub const HANDSHAKE_VERSION: u8 = payload::VERSION;
/// Length of each of the two datagrams of H1 (SPEC §3.4). Two datagrams of the least length have
/// room for message 1, and for H2 without amplification.
pub const H1_BYTES: RangeInclusive<usize> = 660..=1200;
/// Range from which the lengths of an ordinary H1 are drawn.
pub const H1_BYTES_ORDINARY: RangeInclusive<usize> = 700..=1200;
/// Range from which the lengths of a short H1 are drawn, for paths that drop ordinary ones.
pub const H1_BYTES_SHORT: RangeInclusive<usize> = 660..=720;
/// Least length of a datagram of H2 (SPEC §3.4). Each is at most as long as its counterpart in H1.
pub const H2_BYTES_MIN: usize = 200;
/// Length of H3 (SPEC §3.4). It is at most that of the longest datagram of H1.
pub const H3_BYTES: RangeInclusive<usize> = 300..=1200;

/// Reason for dropping a handshake datagram, for counters and tests. The sender gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum HandshakeError {
    /// The datagram does not have a permitted length.
    #[error("impossible length")]
    Length,
    /// mac1 does not match: the sender lacks the key, or the datagram was modified in transit.
    #[error("the MAC of the datagram does not match")]
    Mac1,
    /// The handshake is not waiting for this datagram.
    #[error("unexpected datagram")]
    Unexpected,
    /// Noise authentication failed, or the key agreement was degenerate.
    #[error("does not authenticate")]
    Unauthentic,
    /// Authentic, but of another protocol version.
    #[error("unknown protocol version")]
    Version,
    /// Authentic, but the payload violates the specification.
    #[error("malformed payload")]
    Malformed,
    /// Authentic, but the claimed NodeId does not match the authenticated static key.
    #[error("the claimed identity does not match the authenticated key")]
    Identity,
}

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
