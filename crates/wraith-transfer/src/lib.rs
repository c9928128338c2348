//! Offer, accept, fetch, receipt: the transfer engine (docs/SPEC.md §10).
//!
//! A sender calls `serve(connection, &SendOptions)`, a receiver `receive(connection, ReceiveOptions)`; both block on plain
//! threads until the transfer is over. [`Progress`] is polled, [`Events`] is told, [`Cancel`] stops it.
#![forbid(unsafe_code)]

mod contents;
mod control;
mod error;
mod events;
mod gather;
pub mod limits;
mod manifest_order;
pub mod message;
mod offer_limits;
mod pool;
mod receipt;
mod receive;
pub mod record;
mod send;
mod session;

pub use error::{Role, TransferError, close};
pub use events::{Cancel, Event, Events, FileStatus, Progress};
pub use message::Offer;
pub use receipt::{Forged, RECEIPT_BYTES, Receipt};
pub use receive::{Decide, Decision, ReceiveOptions, ReceiveReport, receive};
pub use send::{SendOptions, SendReport, serve};
pub use wraith_files::OnConflict;

/// SPEC §10.3.
fn transfer_id(secret: &[u8; 16]) -> [u8; 16] {
    let id = wraith_crypto::kdf::derive("wraith/1 transfer id", secret);
    *id.first_chunk().expect("a key has 32 bytes")
}
