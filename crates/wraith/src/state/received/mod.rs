//! What was received: a signed list of each finished transfer, so that the tree can be checked again later.
//!
//! Invariants: a list appears whole or not at all; only its owner can read it; none has more bytes than the user
//! allows, and all together have a bound, beyond which the oldest are removed; and a list that cannot be written costs a
//! warning, never the transfer.

mod list;
mod recorder;
mod store;

pub use list::{Fault, Head, Line, Lines, Rest, What, open};
pub(super) use list::{Sum, field, number, word};
pub use recorder::Recorder;
pub use store::{ReceivedList, ReceivedStore};
