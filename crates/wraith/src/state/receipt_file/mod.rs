//! Receipt files of a sender: the receiver's receipt, with everything it covers.
//!
//! Invariant: the file proves itself. With only the file and the receiver's NodeId (its public
//! key), any party can check what the receiver signed, name by name. Any changed byte is detected.

mod format;
mod writer;

pub use format::{ReceiptReader, open_receipt};
pub(crate) use writer::ReceiptWriter;
