//! Receipt files of a sender: the receiver's receipt, with everything it covers.
//!
//! Invariant: the file is self-verifying. With only the file and the receiver's NodeId, any party
//! can check what that identity signed, name by name. Any changed byte is detected.

mod format;
mod keeper;

pub use format::{ReceiptLines, open_receipt};
pub(crate) use keeper::Keeper;
