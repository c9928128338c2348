//! The transfer engine: offer, accept, fetch, receipt (docs/SPEC.md §10). No other crate uses both
//! files and connections.
//!
//! A sender calls [`serve`], a receiver [`receive`]. Both block, working on a few plain threads,
//! until the transfer is over. [`Progress`] is polled, [`Events`] is called back, and [`Cancel`]
//! stops the transfer at any stage, without delay. After any kind of end, a new transfer with the
//! same secret into the same directory continues where the last one stopped.
//!
//! ```text
//! sender                                                            receiver
//! walk ─▶ manifest stream ────────────────────────────────────────▶ compare with the disk
//!   plan ◀─────────────────────────────── control stream: Want ◀─── table of wanted files
//!   worker 1: read, hash ─▶ data stream ──────────────────────────▶ verify, write, journal
//!   worker 2: read, hash ─▶ data stream ──────────────────────────▶ verify, write, journal
//!                                         control stream: Receipt ◀ sign
//! ```
//!
//! Invariants, against any peer:
//!
//! - Memory is bounded on both sides ([`limits`]).
//! - Every file is requested and sent at most once.
//! - A file gets its final name only after it was verified chunk by chunk and as a whole.
//! - Both sides get the reason for the end of a transfer.
#![forbid(unsafe_code)]

mod buffer_pool;
mod cancel;
mod content_digest;
mod control;
mod delta;
mod dialler_hello;
mod error;
mod events;
mod exception;
pub mod limits;
mod local_folders;
mod lock;
mod lost_reason;
mod manifest_order;
pub mod message;
mod offer_limits;
mod parallel;
mod progress;
mod rate;
mod receipt;
mod receive;
pub mod record;
mod record_buffer;
mod role;
mod roots;
mod send;
mod session;
mod stream_kind;
mod wanted;

pub use cancel::{Cancel, CancelSubscription};
pub use content_digest::ContentDigest;
pub use dialler_hello::{receive_dialler_hello, send_dialler_hello};
pub use error::{IoFailure, TransferError, close};
pub use events::{Event, Events, InPlace};
pub use exception::{Exception, FileStatus};
pub use lost_reason::LostReason;
pub use message::Offer;
pub use parallel::{BindConnection, ParallelConnections};
pub use progress::{ActiveFile, Checked, Progress};
pub use rate::Rate;
pub use receipt::{Durability, Forged, RECEIPT_BYTES, Receipt};
pub use receive::{
    Action, Conflicts, Decide, Decision, Planned, Preview, PreviewOutcome, Previewed, Proposal,
    ReceiveOptions, ReceiveReport, Shown, StreamTarget, receive,
};
pub use role::Role;
pub use send::{SendOptions, SendReport, SentRoots, StreamSource, serve};
pub use stream_kind::StreamKind;
pub use wraith_files::{Change, Entry, Kind, OnConflict, RelPath, Root, Tree};
pub use wraith_transport::Addr;

/// The README example, compiled as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
