#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod codec;
pub mod fragment;
mod handshake;
mod hash;
mod key;
mod protocol;
mod random;
pub mod ratchet;
mod reason;
pub mod sealed_box;
mod session;
pub mod vault;

pub use codec::StateError;
pub use handshake::{
    HANDSHAKE_MESSAGE_BYTES_MAX, HANDSHAKE_PAYLOAD_BYTES_MAX, Handshake, HandshakeBuilder,
    HandshakeError, ReadOutcome,
};
pub use hash::HashFunction;
pub use key::StaticKey;
pub use protocol::{Pattern, Protocol, UnknownProtocol};
pub use random::{NoRandomness, system_rng};
pub use reason::Reason;
pub use session::{
    AAD_BYTES_MAX, Batch, BatchError, EPOCH_MESSAGES, EPOCHS_AHEAD_MAX, MESSAGE_OVERHEAD,
    OpenError, OpenedBatch, RESERVED_NUMBERS, RekeyLimits, SESSION_WINDOW, SavedSession, SealError,
    Session, TEXT_BYTES_MAX,
};
#[cfg(all(unix, feature = "file-vault"))]
pub use vault::FileVault;
pub use vault::StoreError;
/// The random generator of the system, for each argument `rng` of this crate. It is cryptographic,
/// needs no seed and cannot fail: without randomness the process ends.
pub use wraith_crypto::rand::System as SystemRng;
pub use wraith_crypto::{NodeId, SecretIdentity, Suite};
