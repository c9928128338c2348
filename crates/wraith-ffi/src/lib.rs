//! wraith for other languages: objects, records and async functions from which UniFFI generates the
//! bindings for Python, Kotlin and Swift (`bindings/` in the repository). This crate has no logic
//! of its own: each object wraps one of the crate `wraith` in a form that crosses a language
//! border.
//!
//! ```text
//!  Python, Kotlin, Swift             this crate                      wraith
//!  asyncio, coroutines, async  ──▶  Arc<Object>, owned records  ──▶  Node, Offer, Incoming, Transfer
//!                                   events are pulled, never pushed; tasks run on this crate's runtime
//! ```
//!
//! Invariants:
//! - No call panics, for any arguments in any order. Invalid values, used-up handles and foreign
//!   exceptions are returned as a [`WraithError`].
//! - Dropping an object cancels its work, as in Rust.
//! - Dropping the future of a call only stops the waiting, unless the call's documentation says
//!   that it stops the work. Cancelling a Python task or a Kotlin coroutine drops the future.
//! - Every future is polled inside this crate's runtime, from any thread of the other language.

#![warn(missing_docs)]

mod accept;
mod content;
mod error;
mod event;
mod fetch;
mod fragment;
mod handshake;
mod hash;
mod identity;
mod listen;
mod node;
mod offer;
mod progress;
mod random;
mod ratchet;
mod runtime;
mod sealed_box;
mod secret;
mod session;
mod stored;
mod stored_ratchet;
mod used_once;
mod vault;

pub use accept::{AcceptOptions, ConflictRule, OnConflict};
pub use content::{Content, Recipient, Target};
pub use error::WraithError;
pub use event::{Event, FileStatus};
pub use fetch::{FetchOptions, Incoming, OfferInfo, PreviewEntry, Received, Transfer};
pub use fragment::{Reassembler, ReassemblerOptions, Splitter};
pub use handshake::{Handshake, HandshakeOptions};
pub use hash::{Blake3Hasher, hash};
pub use identity::{Identity, verify};
pub use listen::{Admit, Listener};
pub use node::{Contact, Node, NodeOptions, Relay};
pub use offer::{Offer, OfferOptions, Sent};
pub use progress::Progress;
pub use ratchet::{PreKeys, Ratchet, Started, respond};
pub use sealed_box::{open_box, seal_box};
pub use secret::{SecretKey, SecretText};
pub use session::{Opened, Rejection, SavedSession, Session};
pub use stored::StoredSession;
pub use stored_ratchet::{
    StoredPreKeys, StoredRatchet, StoredStarted, initiator_of, respond_stored,
};
pub use vault::{Durability, KeyVault, VaultError, file_vault, memory_vault};

uniffi::setup_scaffolding!("wraith");
