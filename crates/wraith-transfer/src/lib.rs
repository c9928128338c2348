//! Offer, accept, fetch, receipt: the transfer engine (docs/SPEC.md §10).
//!
//! A sender calls `serve(connection, &SendOptions)`, a receiver `receive(connection, ReceiveOptions)`; both block on plain
//! threads until the transfer is over. [`Progress`] is polled, [`Events`] is told, [`Cancel`] stops it.
#![forbid(unsafe_code)]

mod contents;
mod error;
mod events;
mod gather;
mod limits;
mod manifest_order;
mod message;
mod receipt;
mod record;

pub use error::{Role, TransferError, close};
pub use events::{Cancel, Event, Events, FileStatus, Progress};
pub use message::{Malformed, Offer};
pub use receipt::{Forged, RECEIPT_BYTES, Receipt};
