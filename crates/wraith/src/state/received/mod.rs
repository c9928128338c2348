//! Received lists: a signed list of each finished transfer, with which the tree can be verified
//! later.
//!
//! Invariants:
//!
//! - A list appears as a whole or not at all.
//! - Only its owner can read it.
//! - No list is larger than the user's limit. All lists together are bounded; beyond that, the
//!   oldest are removed.
//! - A list that cannot be written causes a warning and never fails the transfer.

mod list;
mod recorder;
mod store;

pub use list::{Fault, Head, Line, Lines, Rest, What, open};
pub(super) use list::{Sum, field, number, word};
pub use recorder::Recorder;
pub use store::{ReceivedList, ReceivedStore};
