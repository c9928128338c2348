//! What a sender keeps of a transfer: the receiver's receipt, with everything it is about.
//!
//! Invariant: the file proves itself. Whoever has it and the receiver's NodeId can check what that identity has signed for, name by
//! name, without anything else; and no byte of it can be another without being noticed.

mod format;
mod keeper;

pub use format::{ReceiptLines, open_receipt};
pub(crate) use keeper::Keeper;
