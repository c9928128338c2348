//! Receipt files of a sender: the receiver's receipt, with everything it covers.
//!
//! Invariant: the file proves itself. With only the file and the receiver's NodeId (its public
//! key), any party can check what the receiver signed, name by name. Any changed byte is detected.

mod format;
mod keeper;

pub use format::{ReceiptLines, open_receipt};
pub(crate) use keeper::Keeper;
