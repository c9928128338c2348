//! Received lists: a signed list of the entries of each finished transfer. With it, `wraith verify`
//! later checks the received tree.
//!
//! Invariants:
//!
//! - A list appears as a whole or not at all.
//! - Only its owner can read it.
//! - No list is larger than the user's limit. The size of all lists together is bounded too: beyond
//!   that bound, the oldest lists are removed.
//! - A list that cannot be written causes a warning and never fails the transfer.

mod format;
mod recorder;
mod store;

pub use format::{
    OmittedCounts, ProofError, ReceiptEntry, ReceiptEntryKind, ReceiptHeader, ReceivedListReader,
    open,
};
pub(super) use format::{Sum, field, number, word};
pub use recorder::ReceivedListRecorder;
pub use store::{ReceivedList, ReceivedStore};
