//! wraith for other languages: objects, records and async functions from which UniFFI generates the
//! bindings for Python, Kotlin and Swift (`bindings/` in the repository). This crate has no logic
//! of its own: each of its objects wraps an object of the crate `wraith` for use from another
//! language.
//!
//! ```text
//!  Python, Kotlin, Swift             this crate                      wraith
//!  asyncio, coroutines, async  ──▶  Arc<Object>, owned records  ──▶  Node, Offer, Incoming, Transfer
//! ```
//!
//! The application asks for each event; this crate calls no function of the application to report
//! one. All tasks run on the tokio runtime of this crate.
//!
//! Invariants:
//! - No call panics, for any arguments, and in any order of calls. Invalid values, handles that are
//!   used up, and exceptions of the other language are returned as a [`WraithError`], or for raw
//!   connections as a [`TransportError`].
//! - Dropping an object cancels its work, as in the crate `wraith`.
//! - Dropping the future of a call ends only the wait for its result, and the work of the object
//!   continues. Calls that stop the work say so in their documentation. A cancelled Python task or
//!   Kotlin coroutine drops its future.
//! - The other language polls a future from any of its own threads. Each poll enters this crate's
//!   runtime first (`runtime.rs`).

#![warn(missing_docs)]

mod accept;
mod connection;
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
mod ratchet;
mod runtime;
mod sealed_box;
mod secret;
mod service;
mod session;
mod vault;

pub use accept::{AcceptOptions, ConflictRule, OnConflict};
pub use connection::{
    CloseCause, CloseReason, ConnectOptions, Connection, ConnectionStream, ServiceAddress,
    TransportError,
};
pub use content::{Content, Recipient, Target};
pub use error::WraithError;
pub use event::{Event, FileStatus};
pub use fetch::{FetchOptions, FetchSummary, Incoming, OfferInfo, PreviewEntry, Transfer};
pub use fragment::{Reassembler, ReassemblerOptions, Splitter};
pub use handshake::{Handshake, HandshakeOptions};
pub use hash::{Blake3Hasher, hash};
pub use identity::{Identity, verify};
pub use listen::{AcceptFilter, Listener};
pub use node::{Contact, Node, NodeOptions, Relay, shutdown_all_nodes};
pub use offer::{Offer, OfferOptions, OfferSummary};
pub use progress::Progress;
pub use ratchet::{PreKeys, Ratchet, Started, initiator_of, respond, respond_in_vault};
pub use sealed_box::{open_box, seal_box};
pub use secret::{SecretKey, SecretText};
pub use service::{Callers, Service, ServiceOptions};
pub use session::{Opened, Rejection, SavedSession, Session};
pub use vault::{Durability, KeyVault, VaultError, file_vault, memory_vault};

uniffi::setup_scaffolding!("wraith");
